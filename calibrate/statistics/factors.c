/* SPDX-License-Identifier: MIT */
#include "calibrate/statistics/factors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/statistics/sums.h"

#define TEARS_MIN 20 /* with fewer there is nothing to share out */

struct slice {
	uint64_t place;
	size_t time; /* number of the slice, in stretches */
	struct waits rung;
	double toggles;
	double tears;
	double expected;
};

static size_t gather_slices(struct slice *slices, const struct cell_record *records, size_t count)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		const struct cell *cell = &records[i].cell;
		struct count c = count_of_record(&records[i]);

		if (cell->protocol != PROTOCOL_WAIT || !cell->place || !cell->waits.stretch ||
		    cell->placement == PLACEMENT_OVERSUBSCRIBED || !c.toggles)
			continue;
		slices[used++] = (struct slice){
			.place = cell->place,
			.time = i / FACTORS_TIME,
			.rung = cell->waits,
			.toggles = (double)c.toggles,
			.tears = (double)c.tears,
		};
	}
	return used;
}

/* By the rate of all slices of its rung. Returns the tears of all. */
static double expect_tears(struct slice *slices, size_t count)
{
	double all = 0;

	for (size_t i = 0; i < count; i++) {
		double tears = 0, toggles = 0;

		for (size_t k = 0; k < count; k++) {
			if (!waits_same(&slices[k].rung, &slices[i].rung))
				continue;
			tears += slices[k].tears;
			toggles += slices[k].toggles;
		}
		slices[i].expected = tears / toggles * slices[i].toggles;
		all += slices[i].tears;
	}
	return all;
}

/* Of slices that have the place in common and not the time, or the other way round. */
static double variance_of(const struct slice *slices, size_t count, bool of_places)
{
	double excess = 0, expected = 0;

	for (size_t i = 0; i < count; i++) {
		for (size_t k = i + 1; k < count; k++) {
			const struct slice *a = &slices[i], *b = &slices[k];
			bool place = a->place == b->place, time = a->time == b->time;

			if (place == time || place != of_places)
				continue;
			excess += (a->tears - a->expected) * (b->tears - b->expected);
			expected += a->expected * b->expected;
		}
	}
	return expected > 0 ? excess / expected : 0;
}

/* Between rungs chance hardly matters: each has been visited often. */
static double variance_of_waits(const struct slice *slices, size_t count)
{
	double sum = 0, squares = 0, toggles = 0;

	for (size_t i = 0; i < count; i++) {
		double rate = slices[i].expected / slices[i].toggles;

		toggles += slices[i].toggles;
		sum += slices[i].toggles * rate;
		squares += slices[i].toggles * rate * rate;
	}
	return sum > 0 ? squares * toggles / (sum * sum) - 1 : 0;
}

struct place_sum {
	uint64_t place;
	double tears;
	double expected;
};

static int by_badness(const void *a, const void *b)
{
	const struct place_sum *p = a, *q = b;
	double x = p->expected > 0 ? p->tears / p->expected : 0;
	double y = q->expected > 0 ? q->tears / q->expected : 0;

	return (x < y) - (x > y);
}

static int find_worst(struct factors *f, const struct slice *slices, size_t count)
{
	struct place_sum *sums = calloc(count, sizeof(*sums));
	double tears = 0, expected = 0;

	if (!sums)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		unsigned k = 0;

		while (k < f->places && sums[k].place != slices[i].place)
			k++;
		f->places += k == f->places;
		sums[k].place = slices[i].place;
		sums[k].tears += slices[i].tears;
		sums[k].expected += slices[i].expected;
	}
	qsort(sums, f->places, sizeof(*sums), by_badness);
	for (unsigned k = 0; k < (f->places + 9) / 10; k++) {
		tears += sums[k].tears;
		expected += sums[k].expected;
	}
	f->worst_rate = expected > 0 ? tears / expected : 0;
	free(sums);
	return 0;
}

int factors_of(struct factors *f, const struct cell_record *records, size_t count)
{
	struct slice *slices = calloc(count + 1, sizeof(*slices));
	int ret = -ENODATA;

	*f = (struct factors){ 0 };
	if (!slices)
		return -ENOMEM;
	f->slices = gather_slices(slices, records, count);
	if (expect_tears(slices, f->slices) >= TEARS_MIN) {
		f->place = variance_of(slices, f->slices, true);
		f->time = variance_of(slices, f->slices, false);
		f->wait = variance_of_waits(slices, f->slices);
		ret = find_worst(f, slices, f->slices);
	}
	free(slices);
	return ret;
}
