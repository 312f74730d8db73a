/* SPDX-License-Identifier: MIT */
/* What wakes the thread of phases. */
#ifndef PROBES_PROFILE_EDGES_BELL_H
#define PROBES_PROFILE_EDGES_BELL_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* bell_ring - async-signal-safe, and takes no lock. Keeps errno, and the vectors. */
void bell_ring(void);

/* bell_rings - how often it rang. */
uint32_t bell_rings(void);

/*
 * bell_wait - until it has rung more often than that, or until a time of CLOCK_MONOTONIC. False: it
 * is that late. May come back early.
 */
bool bell_wait(uint32_t rings, const struct timespec *until);

#endif
