/* SPDX-License-Identifier: MIT */
/*
 * A profile from its start to its end, and in a child.
 */
#ifndef PROBES_PROFILE_EPOCHS_PROFILING_H
#define PROBES_PROFILE_EPOCHS_PROFILING_H

#include <stdbool.h>

#include "probes/profile/epochs/books.h"

/* profiling_start - finds probes, opens all windows, starts the thread. Negative errno. */
int profiling_start(const struct options *options);

/* profiling_stop - nothing is probed any more; profiling_start() may come again. Negative errno. */
int profiling_stop(void);

/* profiling_forked - in the child, behind epochs_count_out(): nothing was counted, and there is a
 * thread again, or nothing is probed. */
void profiling_forked(bool again);

/* profiling_finish - the last epoch ends. The lock is held. */
void profiling_finish(void);

#endif
