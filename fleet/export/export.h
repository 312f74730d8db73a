/* SPDX-License-Identifier: MIT */
/* What other programs read of a fleet: a table of levels, and metrics of each machine. */
#ifndef FLEET_EXPORT_EXPORT_H
#define FLEET_EXPORT_EXPORT_H

#include <stdio.h>

#include "fleet/store/store.h"

/*
 * export_prior - a line of JSON per kind: the levels that a machine of the kind may go by which
 * has not been calibrated, with what stands behind them (prior_of_kind). 0 or a negative errno.
 */
int export_prior(FILE *out, struct fleet *fleet);

/*
 * export_csv - a line per kind, level and crossing, below a heading; texts are quoted as RFC 4180
 * has it. 0 or a negative errno.
 */
int export_csv(FILE *out, struct fleet *fleet);

/*
 * export_textfile - FOLDER/NAME.prom for each machine, for the textfile collector of node_exporter:
 * written beside the old one and renamed; without timestamps, which node_exporter refuses. No
 * series is in two of them. How many were written, or a negative errno.
 */
int export_textfile(const char *folder, struct fleet *fleet);

#endif
