/* SPDX-License-Identifier: MIT */
/*
 * Ticks, seconds, and how the time of the program goes beside them.
 */
#ifndef PROBES_PROFILE_EPOCHS_CLOCKS_H
#define PROBES_PROFILE_EPOCHS_CLOCKS_H

#include <stdint.h>

uint64_t clocks_ticks(void);

/* clocks_measure - ticks per second, within a percent: only windows and epochs are chosen by it. */
double clocks_measure(void);

void clocks_sleep(uint64_t ticks);

/* clocks_parallel - learn how many threads of the program run, of late. Once an epoch. */
void clocks_parallel(void);

/*
 * clocks_since - from start to now, which are CPU time of the program, as wall time in which it
 * runs: windows are chosen in that, and epochs measured by the program's clock, which is faster
 * with several threads at work.
 */
uint64_t clocks_since(uint64_t start, uint64_t now);

#endif
