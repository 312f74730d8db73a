/* SPDX-License-Identifier: MIT */
/*
 * Counts added up by what they were counted at: the points of a figure, the rows of a table, or
 * just the set of values that there were.
 */
#ifndef RESULTS_FIGURES_TALLY_H
#define RESULTS_FIGURES_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TALLY_KEYS 11

struct tally_row {
	uint64_t key[TALLY_KEYS]; /* the owner of a tally says what they mean; the rest are 0 */
	uint64_t events, trials;  /* tears in toggles, failed runs in runs, gaps in stores */
};

/* Zeroed before the first. */
struct tally {
	struct tally_row *row; /* rising by key, the first key first; no two have the same */
	size_t count;
	bool failed; /* there was no memory for all of them */
};

/* tally_add - to the row of the same key, or as a new one. Sums stay at the top of their range. */
void tally_add(struct tally *tally, const struct tally_row *row);

/* tally_find - the row of that key, NULL: none. */
const struct tally_row *tally_find(const struct tally *tally, const uint64_t key[TALLY_KEYS]);

/*
 * tally_words - "64 4096": one of the keys, of each group of rows that have the first so many keys
 * in common. Cut to size. Returns text.
 */
char *tally_words(const struct tally *tally, unsigned keys, unsigned which, char *text,
		  size_t size);

/* tally_put - the first so many keys of a row, and its events. */
void tally_put(FILE *stream, const struct tally_row *row, unsigned keys);

void tally_free(struct tally *tally);

#endif
