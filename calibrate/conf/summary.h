/* SPDX-License-Identifier: MIT */
/* What came of a calibration, for people. */
#ifndef CALIBRATE_CONF_SUMMARY_H
#define CALIBRATE_CONF_SUMMARY_H

#include "calibrate/conf/conf_write.h"

#define SUMMARY_LINES 12 /* at most; the three that name files follow */

/*
 * summary_print - what was found, in a dozen lines: the machine, the verdict, the ladder, what
 * the library will do and why, and what to do next.
 */
void summary_print(FILE *out, const struct estimate *e, const struct provenance *from);

/* summary_details - every rung and placement, with all numbers. */
void summary_details(FILE *out, const struct estimate *e, const struct provenance *from);

#endif
