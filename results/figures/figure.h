/* SPDX-License-Identifier: MIT */
/*
 * The paper's figure 9 for the machine of a journal, drawn by gnuplot.
 */
#ifndef RESULTS_FIGURES_FIGURE_H
#define RESULTS_FIGURES_FIGURE_H

#include <stdbool.h>
#include <stddef.h>

#include "results/journal/journal.h"

/*
 * figure9_write - tears per million toggles against the wait.
 *
 * From the records with oracle count, protocol wait, two equal waits and a line
 * or page crossing, without provokers: one panel per crossing, one curve per split,
 * everything else added up. Waits that stand still, as the paper's do; those that
 * stretch only where there are no others. Writes PREFIX.dat, PREFIX.svg and PREFIX.png.
 *
 * The script is found by data_file(); $TMAX_GNUPLOT names another gnuplot.
 *
 * 0, or with the reason in words in error:
 * -EINVAL: the journal names no machine, or several; nothing is written.
 * -ENODATA: no record fits; nothing is written.
 * -ENOENT: gnuplot or its script is missing; PREFIX.dat is written.
 * -EIO: gnuplot failed; PREFIX.dat is written.
 * -ENOTDIR: the folder is missing. Else what writing failed with.
 */
int figure9_write(const struct journal_data *data, const char *prefix, char *error, size_t size);

/*
 * figure9_write_oracle - the same by the paper's own oracle with ORACLE_CRASH:
 * failed runs in 100, for each split and, as in the paper, for all splits in one;
 * below it caption_paper(). With ORACLE_COUNT it is figure9_write().
 */
int figure9_write_oracle(const struct journal_data *data, enum oracle oracle, const char *prefix,
			 char *error, size_t size);

#endif
