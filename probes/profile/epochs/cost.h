/* SPDX-License-Identifier: MIT */
/*
 * What the profile costs, by its own measure: in all, and from moment to moment.
 */
#ifndef PROBES_PROFILE_EPOCHS_COST_H
#define PROBES_PROFILE_EPOCHS_COST_H

#include <stdint.h>

/* cost_of_start - CPU seconds of the calling thread since the agent's start, or the child's. */
double cost_of_start(void);

/* cost_spent - ticks: the thread of epochs, what turned probes off, calls of the probe function. */
double cost_spent(void);

/* cost_toggling - of them, what turning probes on and off took. */
double cost_toggling(void);

/* cost_settle - note what was spent and used until now, also behind the last epoch. */
void cost_settle(void);

/* cost_share, cost_toggling_share - of the CPU time of the program. */
double cost_share(void);
double cost_toggling_share(void);

#endif
