/* SPDX-License-Identifier: MIT */
/* A profile in memory. */
#include "profile/estimate/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* The index by key of an element, which becomes n for a new key. */
static long find_key(json_t **index, const char *key, size_t n)
{
	const json_t *known;

	if (!*index)
		*index = json_object();
	known = json_object_get(*index, key);
	if (known)
		return (long)json_integer_value(known);
	/* Names may be any bytes. */
	return json_object_set_new_nocheck(*index, key, json_integer((json_int_t)n)) ? -ENOMEM
										     : (long)n;
}

long profile_function(struct profile *profile, const char *name, const char *object,
		      uint64_t address)
{
	size_t n = profile->functions;
	struct function one = { .address = address };
	long found;
	char *key;

	if (asprintf(&key, "%s\n%s\n%" PRIx64, name, object, address) < 0)
		return -ENOMEM;
	found = find_key(&profile->by_name, key, n);
	free(key);
	if (found != (long)n)
		return found;
	if (asprintf(&one.name, "%s%c%s", name, 0, object) < 0)
		return -ENOMEM;
	one.object = one.name + strlen(name) + 1;
	if (!ARRAY_ADD(profile->function, profile->functions, one))
		return found;
	free(one.name);
	return -ENOMEM;
}

int profile_arc(struct profile *profile, const struct arc *arc)
{
	struct arc *known;
	char key[48];
	long found;

	snprintf(key, sizeof(key), "%zu %zu", arc->from, arc->to);
	found = find_key(&profile->by_ends, key, profile->arcs);
	if (found == (long)profile->arcs)
		return ARRAY_ADD(profile->arc, profile->arcs, *arc);
	if (found < 0)
		return -ENOMEM;
	known = &profile->arc[found];
	known->calls += arc->calls;
	known->seconds += arc->seconds;
	known->total += arc->total;
	known->timed += arc->timed;
	known->half[0] += arc->half[0];
	known->half[1] += arc->half[1];
	known->seen += arc->seen;
	return 0;
}

bool has_times(const struct function *function)
{
	return function->times.self.value > 0 || function->evidence.measured.time.timed > 0;
}

bool profile_has_times(const struct profile *profile)
{
	for (size_t i = 0; i < profile->functions; i++)
		if (has_times(&profile->function[i]))
			return true;
	return false;
}

double profile_agreement(const struct profile *profile)
{
	double sum[2] = { 0 }, common = 0;

	for (size_t i = 0; i < profile->arcs; i++)
		for (int h = 0; h < 2; h++)
			sum[h] += profile->arc[i].half[h];
	for (size_t i = 0; i < profile->arcs && sum[0] > 0 && sum[1] > 0; i++)
		common += fmin(profile->arc[i].half[0] / sum[0], profile->arc[i].half[1] / sum[1]);
	return common;
}

static int by_weight(const void *a, const void *b)
{
	const struct function *one = a, *two = b;

	if (one->times.self.value != two->times.self.value)
		return one->times.self.value > two->times.self.value ? -1 : 1;
	if (one->calls.value != two->calls.value)
		return one->calls.value > two->calls.value ? -1 : 1;
	return strcmp(one->name, two->name);
}

static int by_place(const void *a, const void *b)
{
	const struct function *one = a, *two = b;
	int order = strcmp(one->object, two->object);

	return order ? order : (one->address > two->address) - (one->address < two->address);
}

/* Afterwards by_name and by_ends have the old indices, and are of no use. */
int profile_sort(struct profile *profile)
{
	size_t n = profile->functions, *now = calloc(n + 1, sizeof(*now));

	if (!now)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		profile->function[i].was = i;
	if (n)
		qsort(profile->function, n, sizeof(*profile->function),
		      profile->edges ? by_place : by_weight);
	for (size_t i = 0; i < n; i++)
		now[profile->function[i].was] = i;
	for (size_t i = 0; i < profile->arcs; i++) {
		struct arc *arc = &profile->arc[i];

		arc->from = arc->from == NO_CALLER ? NO_CALLER : now[arc->from];
		arc->to = now[arc->to];
	}
	free(now);
	return 0;
}

void profile_free(struct profile *profile)
{
	for (size_t i = 0; i < profile->functions; i++)
		free(profile->function[i].name);
	json_decref(profile->by_name);
	json_decref(profile->by_ends);
	free(profile->function);
	free(profile->arc);
	free(profile->phase);
	free(profile->program);
	*profile = (struct profile){ 0 };
}
