/* SPDX-License-Identifier: MIT */
#include "results/figures/tally.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results/journal/journal.h"

/* Where a key is, or belongs. */
static size_t place_of(const struct tally *tally, const uint64_t key[TALLY_KEYS])
{
	size_t low = 0, high = tally->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const uint64_t *its = tally->row[middle].key;
		unsigned i = 0;

		while (i < TALLY_KEYS - 1 && its[i] == key[i])
			i++;
		if (its[i] < key[i])
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool has_key(const struct tally *tally, size_t at, const uint64_t key[TALLY_KEYS])
{
	return at < tally->count &&
	       memcmp(tally->row[at].key, key, sizeof(tally->row[at].key)) == 0;
}

void tally_add(struct tally *tally, const struct tally_row *row)
{
	size_t at = place_of(tally, row->key);
	struct tally_row *grown;

	if (has_key(tally, at, row->key)) {
		sum_add(&tally->row[at].events, row->events);
		sum_add(&tally->row[at].trials, row->trials);
		return;
	}
	grown = reallocarray(tally->row, tally->count + 1, sizeof(*grown));
	if (!grown) {
		tally->failed = true;
		return;
	}
	tally->row = grown;
	memmove(&tally->row[at + 1], &tally->row[at], (tally->count - at) * sizeof(*row));
	tally->row[at] = *row;
	tally->count++;
}

const struct tally_row *tally_find(const struct tally *tally, const uint64_t key[TALLY_KEYS])
{
	size_t at = place_of(tally, key);

	return has_key(tally, at, key) ? &tally->row[at] : NULL;
}

/* Does row i differ from the one before in one of its first so many keys? */
static bool tally_begins(const struct tally *tally, size_t i, unsigned keys)
{
	return i == 0 || memcmp(tally->row[i - 1].key, tally->row[i].key, keys * sizeof(uint64_t));
}

char *tally_words(const struct tally *tally, unsigned keys, unsigned which, char *text, size_t size)
{
	size_t length = 0;

	text[0] = '\0';
	for (size_t i = 0; i < tally->count && length < size; i++)
		if (tally_begins(tally, i, keys))
			length += (size_t)snprintf(text + length, size - length, "%s%" PRIu64,
						   length ? " " : "", tally->row[i].key[which]);
	return text;
}

void tally_put(FILE *stream, const struct tally_row *row, unsigned keys)
{
	for (unsigned i = 0; i < keys; i++)
		fprintf(stream, "%" PRIu64 " ", row->key[i]);
	fprintf(stream, "%" PRIu64 " ", row->events);
}

void tally_free(struct tally *tally)
{
	free(tally->row);
	*tally = (struct tally){ 0 };
}
