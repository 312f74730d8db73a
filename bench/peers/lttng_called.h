/* SPDX-License-Identifier: MIT */
/* The tracepoint of lttng.c, as its macros want it: included several times. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER tmax_bench

/* Looked for beside LTTng's own headers first, so it has a name that is not theirs. */
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_called.h"

#if !defined(PEERS_LTTNG_CALLED_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PEERS_LTTNG_CALLED_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(tmax_bench, called, LTTNG_UST_TP_ARGS(int, id),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, id, id)))

#endif

#include <lttng/tracepoint-event.h>
