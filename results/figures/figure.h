/* SPDX-License-Identifier: MIT */
/* The paper's figure 9 for the machine of a journal, drawn by gnuplot. */
#ifndef RESULTS_FIGURES_FIGURE_H
#define RESULTS_FIGURES_FIGURE_H

#include <stdbool.h>
#include <stddef.h>

#include "results/journal/journal.h"

/*
 * figure9_write - tears per million toggles against the wait; by the paper's own oracle, with
 * ORACLE_CRASH, failed runs in 100, for each split and, as in the paper, for all splits in one,
 * and below it caption_paper().
 *
 * From the records with that oracle, protocol wait, two equal waits and a line or page crossing,
 * without provokers where tears are counted: one panel per crossing, one curve per split,
 * everything else added up. Waits that stand still, as the paper's do; those that
 * stretch only where there are no others. Writes PREFIX.dat, PREFIX.svg and PREFIX.png.
 *
 * 0, or with the reason in words in error:
 * -EINVAL: the journal names no machine, or several; nothing is written.
 * -ENODATA: no record fits; nothing is written.
 * Else as picture_make().
 */
int figure9_write(const struct journal_data *data, enum oracle oracle, const char *prefix,
		  char *error, size_t size);

/*
 * caption_paper - two lines: what the paper ran, and what the runs of a figure by the crash oracle
 * are. 0, -ENODATA if no record belongs to such a figure, or -ENOMEM; then text is empty.
 */
#define CAPTION_ROOM 1024
int caption_paper(const struct journal_data *data, char *text, size_t size);

#endif
