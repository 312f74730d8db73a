/* SPDX-License-Identifier: MIT */
/*
 * Which records a figure 9 counts, and its caption speaks of.
 */
#ifndef RESULTS_FIGURES_FIGURE9_TAKES_H
#define RESULTS_FIGURES_FIGURE9_TAKES_H

#include <stdbool.h>

#include "results/journal/journal.h"

/* figure9_fits - is the cell of the kind that such a figure shows? */
bool figure9_fits(const struct cell *cell, enum oracle oracle);

/* figure9_has_answer - did it run long enough to say something of its wait? */
bool figure9_has_answer(const struct cell_record *record);

/* figure9_takes - both: is the record one that such a figure counts? */
bool figure9_takes(const struct cell_record *record, enum oracle oracle);

#endif
