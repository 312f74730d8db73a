/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "calibrate/session.h"

unsigned session_noise_summary(const struct session *s, char *buf, size_t size)
{
	const struct session_noise *n = &s->noise;

	if (size)
		buf[0] = '\0';
	if (n->stayed)
		snprintf(buf, size, "%u of %u cells stayed noisy (%s)", n->stayed, n->cells,
			 n->reason);
	return n->stayed;
}
