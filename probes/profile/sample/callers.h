/* SPDX-License-Identifier: MIT */
/*
 * How often which function was called from where, of the calls that rings have told.
 *
 * Of the caller who has the lock of epochs.
 */
#ifndef PROBES_PROFILE_SAMPLE_CALLERS_H
#define PROBES_PROFILE_SAMPLE_CALLERS_H

#include <stdbool.h>
#include <stdint.h>

#include "probes/profile/sample/watch.h"

struct caller_count {
	uint64_t id, from, calls, timed;
	double time; /* ticks */
	uint32_t place;
};

/* callers_count - one more. False: there are too many. */
bool callers_count(const struct caller *caller);

/* callers_list - those that there are. */
const struct caller_count *callers_list(uint32_t *n);

/* callers_forget - none has called. */
void callers_forget(void);

#endif
