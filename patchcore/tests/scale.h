/* SPDX-License-Identifier: MIT */
#ifndef PATCHCORE_TESTS_SCALE_H
#define PATCHCORE_TESTS_SCALE_H

#include <stdlib.h>

/* How much longer than usual tests are to last: TMAX_STRESS_SCALE, 1 unless it says otherwise. */
static inline double test_scale(void)
{
	const char *text = getenv("TMAX_STRESS_SCALE");
	double value = text ? atof(text) : 1;

	return value > 0 ? value : 1;
}

#endif
