/* SPDX-License-Identifier: MIT */
/*
 * Counts lie one behind the other, so that few pages are touched: a program may be short.
 */
#include "probes/profile/sample/sample.h"

#include <stddef.h>

#define CALLERS 65536u
#define TRIES	64

static struct caller_count counts[CALLERS];
static uint32_t places[CALLERS]; /* by hash: number of a count and 1, or 0 */
static uint32_t used;

static struct caller_count *make_caller(const struct caller *caller, uint32_t place)
{
	struct caller_count *count = &counts[used++];

	*count = (struct caller_count){ .id = caller->id, .from = caller->from, .place = place };
	places[place] = used;
	return count;
}

static struct caller_count *find_caller(const struct caller *caller)
{
	uint64_t hash = (caller->from ^ caller->id * 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;

	for (unsigned i = 0; i < TRIES; i++) {
		uint32_t place = (uint32_t)((hash >> 40) + i) % CALLERS;
		struct caller_count *count;

		if (!places[place])
			return make_caller(caller, place);
		count = &counts[places[place] - 1];
		if (count->id == caller->id && count->from == caller->from)
			return count;
	}
	return NULL;
}

bool callers_count(const struct caller *caller)
{
	struct caller_count *count = find_caller(caller);

	if (!count)
		return false;
	if (caller->time == NOT_TIMED) {
		count->calls++;
		return true;
	}
	count->timed++;
	count->time += (double)caller->time;
	return true;
}

const struct caller_count *callers_list(uint32_t *n)
{
	*n = used;
	return counts;
}

void callers_forget(void)
{
	for (uint32_t i = 0; i < used; i++)
		places[counts[i].place] = 0;
	used = 0;
}
