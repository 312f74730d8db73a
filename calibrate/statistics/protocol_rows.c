/* SPDX-License-Identifier: MIT */
#include "calibrate/statistics/protocol_rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "calibrate/statistics/bound.h"
#include "calibrate/statistics/estimate.h"

const char *steps_verdict_name(enum steps_verdict verdict)
{
	static const char *const names[] = { "unclear", "holds", "tears", "dies" };

	return names[verdict];
}

const struct protocol_part *protocol_row_main(const struct protocol_row *row)
{
	return &row->part[row->part[PART_CLAIMED].sites ? PART_CLAIMED : PART_OUTSIDE];
}

double protocol_row_p(const struct protocol_row *row)
{
	const struct protocol_part *part = protocol_row_main(row);

	return part->verdict == STEPS_TEAR   ? part->p
	       : part->verdict == STEPS_HOLD ? part->upper_p
					     : NAN;
}

double protocol_row_loss(const struct protocol_row *row)
{
	return row->executions[0] > 0 ? 1 - row->executions[1] / row->executions[0] : NAN;
}

/* --- Adding up -------------------------------------------------------------------------------- */

static struct protocol_row *find_row(struct protocol_rows *rows, enum protocol protocol)
{
	for (size_t i = 0; i < rows->count; i++)
		if (rows->row[i].protocol == protocol)
			return &rows->row[i];
	if (ARRAY_ADD(rows->row, rows->count,
		      (struct protocol_row){ .protocol = protocol,
					     .executions = { NAN, NAN },
					     .changes = NAN }) < 0)
		return NULL;
	return &rows->row[rows->count - 1];
}

static bool has_died(const struct cell_result *result)
{
	return result->outcome == OUTCOME_CRASH || result->outcome == OUTCOME_HANG ||
	       result->outcome == OUTCOME_KILLED;
}

static void add_slice(struct protocol_part *part, const struct cell_record *r)
{
	struct count count = count_of_record(r);
	uint32_t site = 1u << r->cell.split;
	bool died = has_died(&r->result);

	/* Where it is unknown which changes could tear, all may have been torn. */
	if (count.tears && !count.toggles)
		count.toggles = r->result.toggles;
	count_add(&part->count, &count);
	part->tried_at[r->cell.crossing] |= site;
	part->died_at[r->cell.crossing] |= died ? site : 0;
	part->torn_at[r->cell.crossing] |= count.tears ? site : 0;
	if ((died || count.tears) &&
	    (!part->witness || (died && !has_died(&part->witness->result))))
		part->witness = r;
}

static unsigned count_sites(const uint32_t at[CROSSING_COUNT])
{
	unsigned sites = 0;

	for (int c = 0; c < CROSSING_COUNT; c++)
		sites += (unsigned)__builtin_popcount(at[c]);
	return sites;
}

/* What is compared is of one seat, executions also of one site. */
static void compare_slice(struct protocol_row *row, const struct cell_record *r)
{
	const struct cell *cell = &r->cell, *still = &row->still->cell;
	bool changed = strcmp(r->stage, STAGE_STILL) != 0;
	struct count count = count_of_record(r);
	double rate;

	if (r->result.outcome != OUTCOME_DONE || cell->placement != still->placement ||
	    cell->executors != still->executors)
		return;
	if (changed)
		count_add(&row->alike, &count);
	if (cell->crossing != still->crossing || cell->split != still->split ||
	    cell->pair != still->pair)
		return;
	rate = (double)r->result.executions / r->result.seconds / cell->executors;
	if (rate <= row->executions[changed])
		return;
	row->executions[changed] = rate;
	if (changed)
		row->changes = (double)r->result.toggles / r->result.seconds;
}

/* --- Judging ---------------------------------------------------------------------------------- */

static void judge_part(struct protocol_part *part, bool seen)
{
	const struct count *count = &part->count;

	part->p = count->toggles ? (double)count->tears / (double)count->toggles : NAN;
	part->upper_p = estimate_bound(count, SPREAD_NONE, 0, CONFIDENCE);
	part->verdict = part->died		 ? STEPS_DIE
			: count->tears		 ? STEPS_TEAR
			: count->toggles && seen ? STEPS_HOLD
						 : STEPS_UNCLEAR;
}

static bool is_at_frontier(const struct protocol_rows *rows, const struct protocol_row *row)
{
	double p = protocol_row_p(row);

	if (isnan(p) || isnan(row->ticks))
		return false;
	for (const struct protocol_row *r = rows->row; r < rows->row + rows->count; r++)
		if (protocol_row_p(r) <= p && r->ticks <= row->ticks &&
		    (protocol_row_p(r) < p || r->ticks < row->ticks))
			return false;
	return true;
}

/* Those that the package has broken on purpose: the oracle must see some of them. */
static bool is_control(enum protocol protocol)
{
	return protocol >= PROTOCOL_NAIVE && protocol < PROTOCOL_COUNT;
}

static void judge_row(const struct protocol_rows *rows, struct protocol_row *row)
{
	const struct count *alike = &row->alike;

	for (int p = 0; p < PROTOCOL_PARTS; p++) {
		struct protocol_part *part = &row->part[p];

		part->sites = count_sites(part->tried_at);
		part->torn = count_sites(part->torn_at);
		part->died = count_sites(part->died_at);
		judge_part(part, rows->seen);
	}
	row->ticks =
		alike->toggles && alike->ticks > 0 ? alike->ticks / (double)alike->toggles : NAN;
}

/* First what does not hold as it claims, and last what claims nothing. */
static int by_verdict(const void *a, const void *b)
{
	const struct protocol_row *x = a, *y = b;
	const struct protocol_part *one = &x->part[PART_CLAIMED], *two = &y->part[PART_CLAIMED];

	if (!one->sites != !two->sites)
		return !one->sites - !two->sites;
	if (one->verdict != two->verdict)
		return (int)two->verdict - (int)one->verdict;
	return strcmp(protocol_name(x->protocol), protocol_name(y->protocol));
}

/* A journal may have slices of other commands, too. */
static bool is_counted(const struct cell_record *r)
{
	return r->result.outcome != OUTCOME_ERROR &&
	       (strcmp(r->stage, STAGE_STILL) == 0 || strcmp(r->stage, STAGE_CLAIMED) == 0 ||
		strcmp(r->stage, STAGE_OUTSIDE) == 0);
}

int protocol_rows_make(struct protocol_rows *rows, const struct cell_record *records, size_t count)
{
	const struct cell_record *end = count ? records + count : records;
	struct protocol_row *row;

	*rows = (struct protocol_rows){ .row = NULL };
	if (!count)
		return 0;
	for (const struct cell_record *r = records; r < end; r++) {
		bool still = strcmp(r->stage, STAGE_STILL) == 0;
		bool is_claimed = strcmp(r->stage, STAGE_CLAIMED) == 0;

		if (!is_counted(r))
			continue;
		row = find_row(rows, r->cell.protocol);
		if (!row) {
			protocol_rows_free(rows);
			return -ENOMEM;
		}
		if (still && !row->still)
			row->still = r;
		if (!still)
			add_slice(&row->part[is_claimed ? PART_CLAIMED : PART_OUTSIDE], r);
		rows->seen |=
			!still && is_control(r->cell.protocol) && cell_result_tears(&r->result);
	}
	if (!rows->count)
		return 0;
	for (const struct cell_record *r = records; r < end; r++)
		for (row = rows->row; row < rows->row + rows->count; row++)
			if (is_counted(r) && row->protocol == r->cell.protocol && row->still)
				compare_slice(row, r);
	for (row = rows->row; row < rows->row + rows->count; row++)
		judge_row(rows, row);
	for (row = rows->row; row < rows->row + rows->count; row++)
		row->frontier = is_at_frontier(rows, row);
	qsort(rows->row, rows->count, sizeof(*rows->row), by_verdict);
	return 0;
}

void protocol_rows_free(struct protocol_rows *rows)
{
	free(rows->row);
	*rows = (struct protocol_rows){ .row = NULL };
}
