/* SPDX-License-Identifier: MIT */
/*
 * The benchmarks of a journal, for the sections of the report about them.
 */
#ifndef BENCH_PAGE_REPORT_BENCH_H
#define BENCH_PAGE_REPORT_BENCH_H

#include <stdbool.h>

#include "bench/method/result.h"
#include "calibrate/page/html.h"
#include "calibrate/page/report_page.h"

/* Sections of the page: what all benchmarks say together, and one of them. */
int section_costs(struct page *page);
int section_benchmark(struct page *page, const char *benchmark);

#define BENCHMARKS_MAX 16

/* The last result of each benchmark, in the order in which they first came. */
struct bench_results {
	struct bench_result result[BENCHMARKS_MAX];
	unsigned lines[BENCHMARKS_MAX]; /* of each, this one included */
	size_t count;
	size_t unread; /* lines that are none, or of a benchmark too many */
};

/* bench_results_read - 0 or -ENOMEM. bench_results_free. */
int bench_results_read(const struct journal_data *data, struct bench_results *results);
void bench_results_free(struct bench_results *results);

/* journal_has_bench - is there a line of that benchmark, or of any for NULL? */
bool journal_has_bench(const struct journal_data *data, const char *benchmark);

/* bench_interval - "442 [430, 451]", or the median alone if there is no interval; "" for none. */
#define INTERVAL_TEXT 96
char *bench_interval(char *buf, struct bench_value v);

/* The same as an expression, for the arguments of functions of html.h. */
#define INTERVAL(v) bench_interval((char[INTERVAL_TEXT]){ 0 }, v)

#endif
