/* SPDX-License-Identifier: MIT */
/*
 * What calls of probe functions take where the program makes them. Most find caches cold, so that
 * is more than the price that is measured at start. Each thread reads its clock at the end of one
 * call in METERED, too.
 */
#ifndef PROBES_PROFILE_SAMPLE_METER_H
#define PROBES_PROFILE_SAMPLE_METER_H

#include "probes/profile/sample/watch.h"

#define METERED 16

/* meter_mean - ticks inside of the probe function per metered call of the thread; 0: none was. */
double meter_mean(const struct ring *ring);

/*
 * meter_price - ticks of a call of the probe function: the price that was measured at start, times
 * what calls took since then over what they took when it was measured. No less than that price.
 */
double meter_price(void);

/* meter_forget - by the ring's thread. */
void meter_forget(struct ring *ring);

#endif
