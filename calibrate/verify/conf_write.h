/* SPDX-License-Identifier: MIT */
/* What came of a calibration, for the library (machine.conf) and for people. */
#ifndef CALIBRATE_VERIFY_CONF_WRITE_H
#define CALIBRATE_VERIFY_CONF_WRITE_H

#include <stdio.h>

#include "calibrate/statistics/estimate.h"
#include "patchcore/machine/cpus.h"

/* Where the numbers come from. */
struct provenance {
	const struct identity *identity;
	const struct plan *plan;
	const struct cpus *cpus; /* that it was allowed to use */
	const char *journal;	 /* file name, without its folder */
	const char *evidence;	 /* likewise, of the store */
	int64_t measured;	 /* when the latest run ended, seconds since 1970 */
	const char *prior;   /* file name of a fleet's table that it is from; NULL: measured here */
	double confidence;   /* of its bounds; 0: CONFIDENCE */
	size_t cells, noisy; /* of this run, and those of them that other work disturbed */
};

/*
 * conf_check - can conf_write() write there? Makes the folders that are missing, and leaves no
 * file. 0 or a negative errno; -ENOTSUP for what is no plain file. why: one line if the library
 * would refuse a config there, else empty.
 */
int conf_check(const char *path, char *why, size_t size);

/*
 * conf_write - write machine.conf: to a temporary file beside path, then renamed over it, so that a
 * reader sees the old or the new one. Folders that are missing are made. 0 or a negative errno,
 * with path as it was.
 */
int conf_write(const char *path, const struct estimate *estimate, const struct provenance *from);

/* --- For people ------------------------------------------------------------------------------- */

#define SUMMARY_LINES 12 /* at most; those that name files follow */

/*
 * summary_print - what was found: the machine, the verdict, what a change costs before and after,
 * how sure that is, and what to do next.
 */
void summary_print(FILE *out, const struct estimate *e, const struct provenance *from);

/* summary_details - every rung and placement, with all numbers. */
void summary_details(FILE *out, const struct estimate *e, const struct provenance *from);

#endif
