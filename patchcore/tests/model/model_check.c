/* SPDX-License-Identifier: MIT */
#include "patchcore/tests/model/model_check.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Above what the models need; one that runs away ends here, as incomplete. */
#define STATES_MAX ((size_t)1 << 22)

#define NOBODY UINT32_MAX

struct edge {
	uint32_t from, to;
};

struct check {
	const struct check_model *model;
	struct check_verdict *verdict;
	uint8_t *states; /* in the order found: also the queue */
	uint32_t *parent;
	bool *ends;
	size_t room;
	uint32_t *buckets; /* hash table of indexes; a power of two of them */
	size_t bucket_count;
	struct edge *edges;
	size_t edge_room;
	uint32_t now; /* the state whose steps are being told */
	bool failed;  /* out of memory, or too many states */

	/* While a trace is printed: the state whose step is wanted. */
	const void *wanted;
	bool told;
};

/* --- The set of states --------------------------------------------------------------- */

static void *state_at(const struct check *check, size_t index)
{
	return check->states + index * check->model->size;
}

static uint64_t hash_of(const uint8_t *bytes, size_t size)
{
	uint64_t hash = UINT64_C(14695981039346656037), eight; /* FNV-1a, by eight bytes */

	for (size_t i = 0; i < size; i += sizeof(eight)) {
		eight = 0;
		memcpy(&eight, bytes + i, size - i < sizeof(eight) ? size - i : sizeof(eight));
		hash = (hash ^ eight) * UINT64_C(1099511628211);
		hash ^= hash >> 32;
	}
	return hash;
}

/* The bucket where a state is, or belongs. */
static uint32_t *bucket_of(struct check *check, const void *state)
{
	size_t mask = check->bucket_count - 1;
	size_t at = hash_of(state, check->model->size) & mask;

	while (check->buckets[at] != NOBODY &&
	       memcmp(state_at(check, check->buckets[at]), state, check->model->size) != 0)
		at = (at + 1) & mask;
	return &check->buckets[at];
}

static bool grow_arrays(struct check *check)
{
	size_t room = check->room ? check->room * 2 : 4096;
	uint8_t *states = realloc(check->states, room * check->model->size);
	uint32_t *parent;
	bool *ends;

	if (states)
		check->states = states;
	parent = realloc(check->parent, room * sizeof(*parent));
	if (parent)
		check->parent = parent;
	ends = realloc(check->ends, room * sizeof(*ends));
	if (ends)
		check->ends = ends;
	check->room = room;
	return states && parent && ends;
}

/* At most half full, so that a search ends soon. */
static bool grow_buckets(struct check *check)
{
	size_t count = check->room * 2;

	free(check->buckets);
	check->buckets = malloc(count * sizeof(*check->buckets));
	check->bucket_count = count;
	if (!check->buckets)
		return false;
	memset(check->buckets, 0xff, count * sizeof(*check->buckets));
	for (size_t i = 0; i < check->verdict->states; i++)
		*bucket_of(check, state_at(check, i)) = (uint32_t)i;
	return true;
}

static uint32_t add(struct check *check, const void *state)
{
	uint32_t *bucket = bucket_of(check, state);
	size_t index = check->verdict->states;

	if (*bucket != NOBODY)
		return *bucket;
	if (index == STATES_MAX ||
	    (index == check->room && (!grow_arrays(check) || !grow_buckets(check)))) {
		check->failed = true;
		return 0;
	}
	memcpy(state_at(check, index), state, check->model->size);
	check->parent[index] = check->now;
	check->ends[index] = false;
	*bucket_of(check, state) = (uint32_t)index;
	check->verdict->states++;
	return (uint32_t)index;
}

static void add_edge(struct check *check, uint32_t to)
{
	size_t count = check->verdict->steps;

	if (count == check->edge_room) {
		size_t room = count ? count * 2 : 4096;
		struct edge *edges = realloc(check->edges, room * sizeof(*edges));

		if (!edges) {
			check->failed = true;
			return;
		}
		check->edges = edges;
		check->edge_room = room;
	}
	check->edges[count] = (struct edge){ check->now, to };
	check->verdict->steps++;
}

/* --- What a model tells ------------------------------------------------------------- */

static void tell(struct check *check, const char *format, va_list args)
{
	printf("#   ");
	vprintf(format, args);
	printf("\n");
	check->told = true;
}

void check_step(struct check *check, const void *next, const char *format, ...)
{
	va_list args;

	if (check->failed)
		return;
	if (!check->wanted) {
		/* A copy: what it points to may move when the set grows. */
		uint32_t to = add(check, next);

		add_edge(check, to);
		return;
	}
	if (check->told || memcmp(next, check->wanted, check->model->size) != 0)
		return;
	va_start(args, format);
	tell(check, format, args);
	va_end(args);
}

void check_wrong(struct check *check, const char *format, ...)
{
	struct check_verdict *verdict = check->verdict;
	va_list args;

	if (verdict->is_wrong)
		return;
	verdict->is_wrong = true;
	va_start(args, format);
	vsnprintf(verdict->wrong, sizeof(verdict->wrong), format, args);
	va_end(args);
}

void check_end(struct check *check)
{
	if (!check->wanted)
		check->ends[check->now] = true;
}

/* --- Visiting ----------------------------------------------------------------------- */

static void tell_next(struct check *check, uint32_t index)
{
	uint8_t *state = malloc(check->model->size);

	if (!state) {
		check->failed = true;
		return;
	}
	memcpy(state, state_at(check, index), check->model->size);
	check->now = index;
	check->model->next(check, state, check->model->context);
	free(state);
}

/* The way from the first state to this one, from its far end. */
static void print_way(struct check *check, uint32_t to)
{
	uint32_t way[1024];
	size_t length = 0;

	for (; to != 0 && length < 1024; to = check->parent[to])
		way[length++] = to;
	printf("# counterexample of %zu steps:\n", length);
	while (length-- > 0) {
		check->wanted = state_at(check, way[length]);
		check->told = false;
		tell_next(check, check->parent[way[length]]);
	}
	check->wanted = NULL;
	printf("#   WRONG: %s\n", check->verdict->wrong);
}

/* Marks as `ends` each state that has a step to a marked one: backwards, in rounds. */
static void spread_ends(struct check *check)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = check->verdict->steps; i-- > 0;) {
			const struct edge *edge = &check->edges[i];

			if (check->ends[edge->to] && !check->ends[edge->from]) {
				check->ends[edge->from] = true;
				changed = true;
			}
		}
	}
}

/* The nearest state from where no end can be reached, or NOBODY. */
static uint32_t find_stuck(struct check *check)
{
	spread_ends(check);
	for (size_t i = 0; i < check->verdict->states; i++)
		if (!check->ends[i])
			return (uint32_t)i;
	return NOBODY;
}

static void visit_all(struct check *check)
{
	struct check_verdict *verdict = check->verdict;

	add(check, check->model->start);
	for (size_t i = 0; i < verdict->states && !verdict->is_wrong && !check->failed; i++)
		tell_next(check, (uint32_t)i);
}

void check_run(const struct check_model *model, bool trace, struct check_verdict *verdict)
{
	struct check check = { .model = model, .verdict = verdict };
	uint32_t stuck;

	memset(verdict, 0, sizeof(*verdict));
	check.failed = !grow_arrays(&check) || !grow_buckets(&check);
	if (!check.failed)
		visit_all(&check);
	verdict->complete = !check.failed && !verdict->is_wrong;
	if (verdict->complete) {
		stuck = find_stuck(&check);
		if (stuck != NOBODY) {
			check.now = stuck;
			check_wrong(&check, "stuck: no end can be reached any more");
		}
	}
	if (trace && verdict->is_wrong)
		print_way(&check, check.now);
	free(check.states);
	free(check.parent);
	free(check.ends);
	free(check.buckets);
	free(check.edges);
}
