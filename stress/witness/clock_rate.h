/* SPDX-License-Identifier: MIT */
#ifndef STRESS_WITNESS_CLOCK_RATE_H
#define STRESS_WITNESS_CLOCK_RATE_H

/*
 * clock_rate - core cycles per TSC tick of the CPU that the caller runs on.
 *
 * Takes about 2 ms, in which a core that was asleep also comes up to speed. The
 * caller should be pinned.
 */
double clock_rate(void);

#endif
