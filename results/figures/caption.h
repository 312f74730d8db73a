/* SPDX-License-Identifier: MIT */
/*
 * What a figure by the crash oracle has to say of itself: how its runs differ from
 * those behind the paper's figure 9.
 */
#ifndef RESULTS_FIGURES_CAPTION_H
#define RESULTS_FIGURES_CAPTION_H

#include <stddef.h>

#include "results/journal/journal.h"

#define CAPTION_ROOM 1024

/* What the paper ran: section 8.1. Waits in ticks; N counts executors. */
#define PAPER_WAIT_MOST	  2400
#define PAPER_WAIT_STEP	  100
#define PAPER_WAITS	  (PAPER_WAIT_MOST / PAPER_WAIT_STEP + 1)
#define PAPER_SPLITS	  4
#define PAPER_N_FEWEST	  2
#define PAPER_N_MOST	  6
#define PAPER_REPETITIONS 5
#define PAPER_TOGGLES	  50000000

/*
 * caption_paper - two lines: what the paper ran, and what these runs are where that
 * is not the same or not told by the paper. From the records alone. 0, -ENODATA if
 * no record belongs to such a figure, or -ENOMEM; then text is empty.
 */
int caption_paper(const struct journal_data *data, char *text, size_t size);

#endif
