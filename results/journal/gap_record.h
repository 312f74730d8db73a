/* SPDX-License-Identifier: MIT */
/*
 * One run of the gap oracle as the body of a "gaps" line.
 */
#ifndef RESULTS_JOURNAL_GAP_RECORD_H
#define RESULTS_JOURNAL_GAP_RECORD_H

#include <jansson.h>

#include "stress/run/gap.h"

/*
 * gap_to_json - for journal_write_line(journal, "gaps", ...). NULL for what has no
 * place in a journal, or for want of memory.
 */
json_t *gap_to_json(const struct cell *cell, const struct gap_result *result);

#endif
