/* SPDX-License-Identifier: MIT */
/*
 * The benchmarks of a journal, for the sections of the report about them.
 */
#ifndef COMMANDS_REPORT_REPORT_BENCH_H
#define COMMANDS_REPORT_REPORT_BENCH_H

#include <stdbool.h>

#include "bench/cases/benchmarks.h"
#include "results/figures/report_page.h"

/* Sections of the page: what all benchmarks say together, and one of them. */
int section_costs(struct page *page);
int section_benchmark(struct page *page, const struct benchmark *benchmark);

/* journal_has_bench - is there a line of that benchmark, or of any for NULL? */
bool journal_has_bench(const struct journal_data *data, const char *benchmark);

/* bench_interval - "442 [430, 451]", or the median alone if there is no interval; "" for none. */
#define INTERVAL_TEXT 96
char *bench_interval(char *buf, struct bench_value v);

/* The same as an expression, for the arguments of functions of html.h. */
#define INTERVAL(v) bench_interval((char[INTERVAL_TEXT]){ 0 }, v)

#endif
