/* SPDX-License-Identifier: MIT */
#include "calibrate/experiment/paper_run.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/statistics/bound.h"
#include "results/figures/figure9_takes.h"
#include "stress/base/clock.h"

#define TIMING_STAGE   "timing"
#define TIMING_SECONDS 0.5

/* --- How long it will take ------------------------------------------------------- */

char *paper_duration(double seconds, char *buf, size_t size)
{
	uint64_t minutes = (uint64_t)(seconds / 60 + 0.5), hours = minutes / 60;

	if (seconds < 90)
		snprintf(buf, size, "%.0f s", ceil(seconds));
	else if (hours < 1)
		snprintf(buf, size, "%" PRIu64 " min", minutes);
	else if (hours < 24)
		snprintf(buf, size, "%" PRIu64 " h %" PRIu64 " min", hours, minutes % 60);
	else
		snprintf(buf, size, "%" PRIu64 " d %" PRIu64 " h", hours / 24, hours % 24);
	return buf;
}

/* The same cell by the oracle that survives its tears, so that it lasts. */
static int time_cell(struct session *s, const struct cell *grid_cell, double *toggle, double *start)
{
	struct cell cell = *grid_cell;
	const struct cell_record *record;
	double begin = seconds_now();
	int ret;

	cell.oracle = ORACLE_COUNT;
	cell.toggles = CELL_TOGGLES_MAX;
	cell.seconds = TIMING_SECONDS;
	ret = session_run(s, TIMING_STAGE, 0, &cell, &record);
	if (ret < 0)
		return ret;
	if (record->result.toggles == 0)
		return -ETIME;
	*toggle = record->result.seconds / (double)record->result.toggles;
	*start = seconds_now() - begin - record->result.seconds;
	if (*start < 0)
		*start = 0;
	return 0;
}

/* The lowest and the highest wait of each N, which are a seat's first and last. */
static int time_seats(struct session *s, const struct paper *paper, struct paper_pace *pace)
{
	int ret = 0;

	progress_stage(&s->progress, TIMING_STAGE);
	for (unsigned i = 0; i < paper->seats && ret == 0; i++) {
		size_t first = (size_t)i * PAPER_WAITS * PAPER_SPLITS;
		struct cell low, high;
		double start[2];

		paper_cell(paper, first, &low);
		paper_cell(paper, first + PAPER_WAITS - 1, &high);
		ret = time_cell(s, &low, &pace[i].low, &start[0]);
		if (ret == 0)
			ret = time_cell(s, &high, &pace[i].high, &start[1]);
		pace[i].start = fmax(start[0], start[1]);
	}
	return ret;
}

static void print_pace(const struct paper *paper, const struct paper_pace *pace)
{
	for (unsigned i = 0; i < paper->seats; i++)
		printf("  N %u, %s: %.3g to %.3g us a toggle\n", paper->seat[i].executors,
		       placement_name(paper->seat[i].placement), 1e6 * pace[i].low,
		       1e6 * pace[i].high);
}

static int estimate(struct session *s, const struct paper *paper, const struct shard *shard,
		    const size_t *cells, size_t count)
{
	struct paper_pace pace[PAPER_SEATS_MAX] = { 0 };
	char duration[32];
	double seconds;
	int ret = time_seats(s, paper, pace);

	if (ret < 0)
		return ret;
	seconds = paper_seconds(paper, pace, cells, count);
	progress_end(&s->progress);
	printf("The paper's grid: %zu cells of %" PRIu64 " toggles", paper_count(paper),
	       paper->toggles);
	if (shard->of > 1)
		printf(", shard %u/%u", shard->number, shard->of);
	printf("; %zu to run: about %s, less where runs crash\n", count,
	       paper_duration(seconds, duration, sizeof(duration)));
	print_pace(paper, pace);
	fflush(stdout);
	/* For the time left that the progress shows. */
	s->budget = seconds_now() - s->begin + seconds;
	return 0;
}

/* --- Running --------------------------------------------------------------------- */

/* The shard's cells in the order in which they are run, less those that are there. */
static int list_shard(const struct paper *paper, const struct shard *shard,
		      const struct journal_data *known, size_t *cells, size_t *count)
{
	size_t all = paper_count(paper);
	bool *have = calloc(all, sizeof(*have));
	struct paper_there there;
	int ret = have ? paper_look(paper, known, have, &there) : -ENOMEM;

	if (ret == 0)
		ret = shard_order(cells, all, paper->seed);
	*count = 0;
	for (size_t place = 0; ret == 0 && place < all; place++)
		if (shard_has(shard, place) && !have[cells[place]])
			cells[(*count)++] = cells[place];
	free(have);
	return ret;
}

static int run_cells(struct session *s, const struct paper *paper, const size_t *cells,
		     size_t count)
{
	const struct cell_record *record;
	struct cell cell;
	size_t unanswered = 0;
	int ret = 0;

	progress_stage(&s->progress, PAPER_STAGE);
	for (size_t i = 0; i < count && ret == 0; i++) {
		paper_cell(paper, cells[i], &cell);
		ret = session_run(s, PAPER_STAGE, paper_repetition(paper, cells[i]), &cell,
				  &record);
		unanswered += ret == 0 && !figure9_takes(record, ORACLE_CRASH);
	}
	progress_end(&s->progress);
	return ret ? ret : unanswered > 0;
}

int paper_run(struct session *s, const struct paper *paper, const struct shard *shard)
{
	size_t count = 0, *cells = calloc(paper_count(paper), sizeof(*cells));
	int ret = cells ? list_shard(paper, shard, &s->known, cells, &count) : -ENOMEM;

	/* A session would take a cell that hung for an answer, and an old pace for today's. */
	s->known.count = 0;
	if (ret == 0 && count)
		ret = estimate(s, paper, shard, cells, count);
	if (ret == 0)
		ret = run_cells(s, paper, cells, count);
	free(cells);
	return ret;
}

/* --- What came of it ---------------------------------------------------------------- */

struct line {
	size_t runs;
	size_t failed;
	bool torn;
	uint64_t highest; /* wait that failed */
	uint64_t above;	  /* toggles survived at higher waits */
};

static bool is_of_seat(const struct cell_record *r, const struct seat *seat)
{
	return strcmp(r->stage, PAPER_STAGE) == 0 && figure9_takes(r, ORACLE_CRASH) &&
	       (!seat ||
		(r->cell.executors == seat->executors && r->cell.placement == seat->placement));
}

static struct line sum_up_seat(const struct journal_data *data, const struct seat *seat)
{
	struct line line = { 0 };

	for (size_t i = 0; i < data->count; i++) {
		const struct cell_record *r = &data->records[i];

		if (!is_of_seat(r, seat))
			continue;
		line.runs++;
		if (r->result.outcome != OUTCOME_CRASH)
			continue;
		line.failed++;
		line.torn = true;
		if (r->cell.first_wait > line.highest)
			line.highest = r->cell.first_wait;
	}
	for (size_t i = 0; i < data->count; i++)
		if (is_of_seat(&data->records[i], seat) &&
		    (!line.torn || data->records[i].cell.first_wait > line.highest))
			line.above += data->records[i].result.toggles;
	return line;
}

static void print_line(const char *what, const struct line *line)
{
	printf("  %-24s %zu of %zu runs failed", what, line->failed, line->runs);
	if (line->torn)
		printf(", the last at %" PRIu64 " ticks", line->highest);
	if (line->above)
		printf("; %s in %.3g toggles: p < %.2g", line->torn ? "none above" : "none",
		       (double)line->above, bound_upper(0, line->above, CONFIDENCE));
	putchar('\n');
}

static void print_outcome(const struct paper *paper, const struct journal_data *data)
{
	struct line line = sum_up_seat(data, NULL);

	print_line("all", &line);
	for (unsigned i = 0; i < paper->seats; i++) {
		const struct seat *seat = &paper->seat[i];
		char what[64];

		snprintf(what, sizeof(what), "N %u, %s", seat->executors,
			 placement_name(seat->placement));
		line = sum_up_seat(data, seat);
		print_line(what, &line);
	}
}

int paper_tell(const struct paper *paper, const struct journal_data *data)
{
	size_t count = paper_count(paper);
	struct paper_there there;
	int ret = paper_look(paper, data, NULL, &there);

	if (ret < 0)
		return ret;
	printf("The paper's grid: %zu cells, %zu there, %zu missing\n", count,
	       count - there.missing, there.missing);
	if (there.doubled)
		printf("  %zu runs of cells that were there already count as well\n",
		       there.doubled);
	if (there.other)
		printf("  %zu runs belong to another grid: other toggles, rest or seed\n",
		       there.other);
	print_outcome(paper, data);
	return there.missing > 0;
}
