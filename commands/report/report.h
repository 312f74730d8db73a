/* SPDX-License-Identifier: MIT */
/*
 * The page of a machine: what its journals hold, as one HTML file with its figures. Its sections
 * about a calibration, and the sums that they show; those of the benchmarks: commands/report/.
 */
#ifndef COMMANDS_REPORT_REPORT_H
#define COMMANDS_REPORT_REPORT_H

#include <math.h>

#include "bench/cases/benchmarks.h"
#include "calibrate/statistics/estimate.h"
#include "results/figures/html.h"
#include "results/figures/report_page.h"
#include "results/figures/tally.h"

/*
 * report_write - write the page and its figures into the folder, which is made if it is missing. A
 * figure that cannot be drawn is replaced by a sentence; its data are written all the same.
 *
 * 0, or with the reason in words in error:
 * -EINVAL: there can be no page of these journals; nothing is written, nor is the folder made.
 * -EEXIST: it cannot be made, or its index.html is of another program; nothing is written.
 * Else what writing failed with; then index.html is as it was.
 */
int report_write(struct report *report, char *error, size_t size);

/* --- The sections ----------------------------------------------------------------------------- */

/* A section returns 0, 1: there is nothing for it, so that it does not appear, or a negative errno.
 */
int section_verdict(struct html_page *page);
int section_machine(struct html_page *page);
int section_figure9(struct html_page *page);
int section_gaps(struct html_page *page);
int section_placements(struct html_page *page);
int section_protocols(struct html_page *page);
int section_cells(struct html_page *page);
int section_limits(struct html_page *page);
int section_benchmark(struct html_page *page, const struct benchmark *benchmark);

/* put_unread_benchmarks - say how many lines of benchmarks could not be read, if any. */
void put_unread_benchmarks(struct html_page *page);

/* bench_interval - "442 [430, 451]", or the median alone if there is no interval; "" for none. */
#define INTERVAL_TEXT 96
char *bench_interval(char *buf, struct bench_value v);

/* The same as an expression, for the arguments of functions of html.h. */
#define INTERVAL(v) bench_interval((char[INTERVAL_TEXT]){ 0 }, v)

/* A number of a line, for people. */
#define NUMBER_OF(line, name) NUMBER(json_real_of(line, name))

/* json_count - a number of a journal, which may hold any: 0 for what is no count. */
static inline uint64_t json_count(const json_t *value)
{
	double number = json_number_value(value);

	return number > 0 && number < 1e18 ? (uint64_t)number : 0;
}

/* ticks_us - ticks as microseconds; NAN where the rate of the TSC is not known. */
static inline double ticks_us(const struct html_page *page, double ticks)
{
	uint64_t khz = page->data->identity.tsc_khz;

	return khz ? ticks * 1000 / (double)khz : NAN;
}

/*
 * rate_points - tears against the first wait, of the cells of the wait protocol and the counting
 * oracle across a line or a page: keys claim, whether the wait is constant, and wait. The tears of
 * a cell that hung or was killed count, its toggles do not.
 */
void rate_points(struct tally *points, const struct journal_data *data);

/* A row of the data of ladder.gp; times in one unit, bound 1: none, cost 0: unknown. */
struct rung_row {
	int claim;
	bool is_constant;
	double wait, bound;
	uint64_t changes, tears;
	double cost;
};

/* print_rung - unless nothing was counted there. */
void print_rung(FILE *out, const struct rung_row *row);
extern const char ladder_caption[];

/* put_ladder_figure - as a section. */
int put_ladder_figure(struct html_page *page);

/* --- Kinds of machines ------------------------------------------------------------------------ */

struct fleet;

/*
 * fleet_text, fleet_page - what the database says of all kinds of machines: to a stream, or
 * FOLDER/fleet.html with its figures; the folder is made. How many machines are worse than their
 * kind, or a negative errno. undrawn: out: why figures are missing, "" if none are.
 */
int fleet_text(FILE *out, struct fleet *fleet);
int fleet_page(const char *folder, struct fleet *fleet, char *undrawn, size_t size);

#endif
