/* SPDX-License-Identifier: MIT */
/* What agents and commands call kinds of probes, and what errors mean. */
#ifndef AGENT_COUNTS_WORDS_H
#define AGENT_COUNTS_WORDS_H

#include "probes/include/fastinst.h"

/* kind_name - of a probe, as lines have it. */
const char *kind_name(enum fi_kind kind);

/* error_cause - what went wrong, and what helps, of a negative errno of libfastinst. */
const char *error_cause(int error);

#endif
