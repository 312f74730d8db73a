/* SPDX-License-Identifier: MIT */
#ifndef CALIBRATE_SUMMARY_H
#define CALIBRATE_SUMMARY_H

#include <stdio.h>

#include "calibrate/conf_write.h"

/* summary_print - what a calibration found, for a person. */
void summary_print(FILE *out, const struct estimate *estimate, const struct provenance *from);

#endif
