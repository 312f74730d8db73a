/* SPDX-License-Identifier: MIT */
/*
 * What a figure by the crash oracle has to say of itself: how its runs differ from those behind
 * the paper's figure 9.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "results/figures/figure.h"
#include "results/figures/tally.h"
#include "stress/base/number.h"

/* The sets of values that the runs have; of each value how many runs have it. */
enum {
	VARIANT, /* what runs of the same kind have in common */
	SEAT,	 /* placement, executors */
	WAIT,
	SPLIT,
	TOGGLES,
	REST,
	PAIR,
	CROSSING,
	STRETCH,
	PROVOKED,
	SETS
};

static void add_run(struct tally set[SETS], const struct cell *c)
{
	const struct tally_row row[SETS] = {
		[VARIANT] = { .key = { c->waits.first, c->crossing, c->split, c->executors,
				       c->placement } },
		[SEAT] = { .key = { c->placement, c->executors } },
		[WAIT] = { .key = { c->waits.first } },
		[SPLIT] = { .key = { c->split } },
		[TOGGLES] = { .key = { c->toggles } },
		[REST] = { .key = { c->rest } },
		[PAIR] = { .key = { c->pair } },
		[CROSSING] = { .key = { c->crossing } },
		[STRETCH] = { .key = { c->waits.stretch } },
		[PROVOKED] = { .key = { c->provokers || c->loop } },
	};

	for (int i = 0; i < SETS; i++) {
		struct tally_row one = row[i];

		one.trials = 1;
		tally_add(&set[i], &one);
	}
}

/* --- Words --------------------------------------------------------------------------- */

static void put_range(FILE *out, uint64_t least, uint64_t most)
{
	fputs(NUMBER(least), out);
	if (most != least)
		fprintf(out, " to %s", NUMBER(most));
}

static void put_ends(FILE *out, const struct tally *set)
{
	put_range(out, set->row[0].key[0], set->row[set->count - 1].key[0]);
}

static bool has(const struct tally *set, uint64_t value)
{
	return tally_find(set, (const uint64_t[TALLY_KEYS]){ value });
}

/* "2 to 6", and "1, 3 to 4" where there are holes: one key of so many rows. */
static void put_values(FILE *out, const struct tally_row *row, size_t count, unsigned key)
{
	for (size_t i = 0, last; i < count; i = last + 1) {
		for (last = i; last + 1 < count; last++)
			if (row[last + 1].key[key] != row[last].key[key] + 1)
				break;
		fputs(i ? ", " : "", out);
		put_range(out, row[i].key[key], row[last].key[key]);
	}
}

/* Where they sit is always told: the paper does not. */
static void put_executors(FILE *out, const struct tally *seats)
{
	for (size_t i = 0, end; i < seats->count; i = end) {
		for (end = i + 1; end < seats->count && !tally_begins(seats, end, 1); end++)
			;
		fputs(i ? " and " : "N = ", out);
		put_values(out, &seats->row[i], end - i, 1);
		fprintf(out, " (%s)", placement_name((enum placement)seats->row[i].key[0]));
	}
}

/* Only where they are not the paper's, all of them. */
static void put_waits(FILE *out, const struct tally *waits)
{
	uint64_t least = waits->row[0].key[0], most = waits->row[waits->count - 1].key[0];
	bool even = least == 0 && most == PAPER_WAIT_MOST;

	for (size_t i = 1; i < waits->count; i++)
		even = even && waits->row[i].key[0] - waits->row[i - 1].key[0] == PAPER_WAIT_STEP;
	if (!even)
		fprintf(out, ", %zu wait%s from %" PRIu64 " to %" PRIu64, waits->count,
			waits->count == 1 ? "" : "s", least, most);
}

static void put_here(FILE *out, const struct tally set[SETS], const struct identity *id)
{
	uint64_t fewest = UINT64_MAX, most = 0;

	for (size_t i = 0; i < set[VARIANT].count; i++) {
		uint64_t runs = set[VARIANT].row[i].trials;

		fewest = runs < fewest ? runs : fewest;
		most = runs > most ? runs : most;
	}
	fputs("Here: ", out);
	put_executors(out, &set[SEAT]);
	fprintf(out, " on %u CPUs, ", id->cpus);
	put_range(out, fewest, most);
	fprintf(out, " run%s of each, ", most == 1 ? "" : "s");
	put_ends(out, &set[TOGGLES]);
	fputs(" toggles a run", out);
	put_waits(out, &set[WAIT]);
	if (set[SPLIT].count < PAPER_SPLITS) {
		fputs(", only S = ", out);
		put_values(out, set[SPLIT].row, set[SPLIT].count, 0);
	}
	fputs("; a rest of ", out);
	put_ends(out, &set[REST]);
	fputs(" ticks between toggles", out);
	for (size_t i = 0; i < set[PAIR].count; i++)
		fprintf(out, "%s%s", i ? " and " : ", pair ",
			pair_name((enum code_pair)set[PAIR].row[i].key[0]));
	if (has(&set[CROSSING], CROSSING_PAGE))
		fprintf(out, ", across a page%s",
			has(&set[CROSSING], CROSSING_LINE) ? ", too" : "");
	if (set[STRETCH].row[set[STRETCH].count - 1].key[0])
		fputs(", waits stretched", out);
	if (has(&set[PROVOKED], true))
		fputs(", provoked", out);
	fputs(".", out);
}

int caption_paper(const struct journal_data *data, char *text, size_t size)
{
	struct tally set[SETS] = { 0 };
	bool failed = false;
	char *made = NULL;
	size_t length, runs = 0;

	text[0] = '\0';
	for (size_t i = 0; i < data->count; i++)
		if (figure9_takes(&data->records[i], ORACLE_CRASH)) {
			add_run(set, &data->records[i].cell);
			runs++;
		}
	for (int i = 0; i < SETS; i++)
		failed |= set[i].failed;
	if (runs && !failed) {
		FILE *out = open_memstream(&made, &length);

		if (out) {
			fprintf(out,
				"The paper: %d waits from 0 to %d, S = 1 to %d, N = %d to %d "
				"executors, %d runs of each, %s toggles a run.\n",
				PAPER_WAITS, PAPER_WAIT_MOST, PAPER_SPLITS, PAPER_N_FEWEST,
				PAPER_N_MOST, PAPER_REPETITIONS, NUMBER(PAPER_TOGGLES));
			put_here(out, set, &data->identity);
		}
		failed = !out || fclose(out);
		if (!failed)
			snprintf(text, size, "%s", made);
		free(made);
	}
	for (int i = 0; i < SETS; i++)
		tally_free(&set[i]);
	return failed ? -ENOMEM : runs ? 0 : -ENODATA;
}
