/* SPDX-License-Identifier: MIT */
#include "profile/statistics/estimate.h"

#include <math.h>

struct interval share_of(const double part[SHARE_GROUPS], const double all[SHARE_GROUPS],
			 double samples)
{
	double parts = 0, sum = 0, squares = 0, error;
	struct interval share = { 0 };
	unsigned groups = 0;

	for (unsigned i = 0; i < SHARE_GROUPS; i++) {
		parts += part[i];
		sum += all[i];
		groups += all[i] > 0;
	}
	if (groups < 2)
		return (struct interval){ .value = sum > 0 ? parts / sum : 0, .high = 1 };
	share.value = parts / sum;
	for (unsigned i = 0; i < SHARE_GROUPS; i++)
		squares += pow(part[i] - share.value * all[i], 2);
	error = student_quantile(groups - 1) * sqrt(squares * groups / (groups - 1)) / sum;
	share.low = fmax(0, share.value - error);
	share.high = fmin(1, fmax(share.value + error, 3 / fmax(samples, 3)));
	return share;
}
