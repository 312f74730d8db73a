/* SPDX-License-Identifier: MIT */
/*
 * What a call of the probe function costs here: by a function of our own that has a probe.
 */
#ifndef PROBES_PROFILE_SAMPLE_PRICE_H
#define PROBES_PROFILE_SAMPLE_PRICE_H

#include <stdbool.h>

/* price_measure - sets the prices of watch_common; takes about a millisecond. */
void price_measure(void);

/* price_is_own - whether a site is one of the functions that are measured by. */
bool price_is_own(const void *site);

#endif
