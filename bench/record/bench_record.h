/* SPDX-License-Identifier: MIT */
/*
 * The result of a benchmark as a line of a journal: type "bench".
 */
#ifndef BENCH_RECORD_BENCH_RECORD_H
#define BENCH_RECORD_BENCH_RECORD_H

#include <jansson.h>

#include "bench/method/result.h"

/*
 * bench_to_json - the body of the line (all but "type", "schema", "date", which
 * journal_write_line() adds). What is NAN is left out, what is infinite is the text "inf"
 * or "-inf". NULL: out of memory, or what bench_from_json() would refuse.
 */
json_t *bench_to_json(const struct bench_result *result);

/*
 * bench_from_json - back. -EINVAL: not such a line, or against the schema in any way that
 * matters; -ENOMEM. The caller frees with bench_result_free(), after an error there is
 * nothing to free.
 */
int bench_from_json(const json_t *line, struct bench_result *result);

#endif
