/* SPDX-License-Identifier: MIT */
/*
 * A profile from its start to its end, and in a child.
 */
#ifndef PROBES_PROFILE_EPOCHS_PROFILING_H
#define PROBES_PROFILE_EPOCHS_PROFILING_H

#include <stdbool.h>
#include <stdio.h>

#include "probes/profile/epochs/books.h"

/* profiling_start - finds probes, opens all windows, starts the thread. Negative errno. */
int profiling_start(const struct options *options);

/* profiling_runs - whether this process is profiled, and not over. Changes with the lock held. */
bool profiling_runs(void);

/* profiling_finish - the last epoch ends. -ETIMEDOUT: the lock is not to be had. */
int profiling_finish(void);

/* profiling_stop - nothing is probed any more; profiling_start() may come again. Negative errno. */
int profiling_stop(void);

/* profiling_forked - in the child, behind epochs_count_out(): nothing was counted, and there is a
 * thread again, or nothing is probed. */
void profiling_forked(bool again);

/* report_profile - what was learned, in the lines of probes/profile/session/report.h. */
void report_profile(FILE *out);

#endif
