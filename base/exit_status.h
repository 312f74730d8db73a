/* SPDX-License-Identifier: MIT */
/* What the programs exit with. Documented in tmax(7) and fastinst(7). */
#ifndef BASE_EXIT_STATUS_H
#define BASE_EXIT_STATUS_H

enum {
	EXIT_HELPED = -1, /* help was asked for and printed: 0 for the caller */
	EXIT_PASS = 0,
	EXIT_TEARS = 1,	       /* tears found where there should be none */
	EXIT_INCONCLUSIVE = 2, /* not enough was measured to say */
	EXIT_NO_CONF = 3,      /* no usable machine config */
	EXIT_USAGE = 64,
	EXIT_MISSING = 69, /* something needed is missing here */
	EXIT_INTERNAL = 70,
	EXIT_CANNOT_CREATE = 73,
	EXIT_CANNOT_WRITE = 74,
	EXIT_INTERRUPTED = 130,
};

#endif
