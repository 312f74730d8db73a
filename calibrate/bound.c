/* SPDX-License-Identifier: MIT */
#include "calibrate/bound.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

double bound_upper(uint64_t tears, uint64_t toggles, double confidence)
{
	if (toggles == 0 || tears >= toggles)
		return 1;
	/* The general formula loses its digits near 0; here it has a closed form. */
	if (tears == 0)
		return -expm1(log1p(-confidence) / (double)toggles);
	return gsl_cdf_beta_Pinv(confidence, (double)tears + 1, (double)(toggles - tears));
}
