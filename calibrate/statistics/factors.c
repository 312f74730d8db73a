/* SPDX-License-Identifier: MIT */
#include "calibrate/statistics/estimate.h"

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

static int by_badness(const void *a, const void *b)
{
	const struct slice *p = a, *q = b;
	double x = p->expected > 0 ? p->tears / p->expected : 0;
	double y = q->expected > 0 ? q->tears / q->expected : 0;

	return (x < y) - (x > y);
}

int factors_of(struct factors *f, const struct cell_record *records, size_t count)
{
	struct slice *slices = calloc(count + 1, sizeof(*slices));
	struct slice *places = calloc(count + 1, sizeof(*places)); /* their slices added up */
	double sum = 0, squares = 0, all = 0, tears = 0, toggles = 0, expected = 0;
	int ret = slices && places ? -ENODATA : -ENOMEM;
	size_t used = 0;

	*f = (struct factors){ 0 };
	for (size_t i = 0; i < count && ret != -ENOMEM; i++) {
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
		all += (double)c.tears;
	}
	f->slices = used;
	if (ret == -ENOMEM || all < TEARS_MIN)
		goto out;
	/* Expected are tears by the rate of all slices of the rung. */
	for (struct slice *s = slices; s < slices + used; s++) {
		double of_rung = 0, in_toggles = 0, rate;

		for (const struct slice *k = slices; k < slices + used; k++) {
			if (!waits_same(&k->rung, &s->rung))
				continue;
			of_rung += k->tears;
			in_toggles += k->toggles;
		}
		s->expected = of_rung / in_toggles * s->toggles;
		rate = s->expected / s->toggles;
		toggles += s->toggles;
		sum += s->toggles * rate;
		squares += s->toggles * rate * rate;
	}
	f->place = variance_of(slices, used, true);
	f->time = variance_of(slices, used, false);
	/* Between rungs chance hardly matters: each has been visited often. */
	f->wait = sum > 0 ? squares * toggles / (sum * sum) - 1 : 0;
	for (size_t i = 0; i < used; i++) {
		unsigned k = 0;

		while (k < f->places && places[k].place != slices[i].place)
			k++;
		f->places += k == f->places;
		places[k].place = slices[i].place;
		places[k].tears += slices[i].tears;
		places[k].expected += slices[i].expected;
	}
	qsort(places, f->places, sizeof(*places), by_badness);
	for (unsigned k = 0; k < (f->places + 9) / 10; k++) {
		tears += places[k].tears;
		expected += places[k].expected;
	}
	f->worst_rate = expected > 0 ? tears / expected : 0;
	ret = 0;
out:
	free(slices);
	free(places);
	return ret;
}
