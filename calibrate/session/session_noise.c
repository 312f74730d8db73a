/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "calibrate/session/session.h"

unsigned session_noise_summary(const struct session *s, char *buf, size_t size)
{
	const struct session_noise *n = &s->noise;

	if (size)
		buf[0] = '\0';
	if (n->noisy)
		snprintf(buf, size, "%u of %u cells were noisy (%s)", n->noisy, n->cells,
			 n->reason);
	return n->noisy;
}
