/* SPDX-License-Identifier: MIT */
/*
 * Events for "fastinst trace": see probes/trace/ring.h.
 */
#ifndef PROBES_AGENT_TRACE_H
#define PROBES_AGENT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* trace_start - from now on probes that are turned on are traced, into that folder; NULL: no more.
 */
int trace_start(const char *folder);

/* trace_unload - where no thread writes events any more: no thread that ends comes back here. */
void trace_unload(void);

/* trace_wanted - whether a folder is known. */
bool trace_wanted(void);

/* trace_on - turn probes on as those of events. Where no command reads them any more, none. */
int trace_on(const uint32_t *ids, size_t n);

#endif
