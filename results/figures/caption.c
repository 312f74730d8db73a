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

/* How its runs differ from the paper's; where they sit is always told: the paper does not. */
static void put_here(FILE *out, const struct tally set[SETS], const struct identity *id)
{
	const struct tally *seats = &set[SEAT], *waits = &set[WAIT], *crossings = &set[CROSSING];
	uint64_t fewest = UINT64_MAX, most = 0, least_wait = waits->row[0].key[0];
	uint64_t most_wait = waits->row[waits->count - 1].key[0];
	bool even = least_wait == 0 && most_wait == PAPER_WAIT_MOST;

	for (size_t i = 0; i < set[VARIANT].count; i++) {
		uint64_t runs = set[VARIANT].row[i].trials;

		fewest = runs < fewest ? runs : fewest;
		most = runs > most ? runs : most;
	}
	fputs("Here: ", out);
	for (size_t i = 0, end; i < seats->count; i = end) {
		for (end = i + 1; end < seats->count && !tally_begins(seats, end, 1); end++)
			;
		fputs(i ? " and " : "N = ", out);
		put_values(out, &seats->row[i], end - i, 1);
		fprintf(out, " (%s)", placement_name((enum placement)seats->row[i].key[0]));
	}
	fprintf(out, " on %u CPUs, ", id->cpus);
	put_range(out, fewest, most);
	fprintf(out, " run%s of each, ", most == 1 ? "" : "s");
	put_ends(out, &set[TOGGLES]);
	fputs(" toggles a run", out);
	/* Only where they are not the paper's, all of them. */
	for (size_t i = 1; i < waits->count; i++)
		even = even && waits->row[i].key[0] - waits->row[i - 1].key[0] == PAPER_WAIT_STEP;
	if (!even)
		fprintf(out, ", %zu wait%s from %" PRIu64 " to %" PRIu64, waits->count,
			waits->count == 1 ? "" : "s", least_wait, most_wait);
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
	if (tally_find(crossings, (const uint64_t[TALLY_KEYS]){ CROSSING_PAGE }))
		fprintf(out, ", across a page%s", crossings->count > 1 ? ", too" : "");
	if (set[STRETCH].row[set[STRETCH].count - 1].key[0])
		fputs(", waits stretched", out);
	if (set[PROVOKED].row[set[PROVOKED].count - 1].key[0])
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
			const struct cell *c = &data->records[i].cell;
			const struct tally_row row[SETS] = {
				[VARIANT] = { .key = { c->waits.first, c->crossing, c->split,
						       c->executors, c->placement } },
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

			for (int k = 0; k < SETS; k++) {
				struct tally_row one = row[k];

				one.trials = 1;
				tally_add(&set[k], &one);
			}
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
