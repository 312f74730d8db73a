/* SPDX-License-Identifier: MIT */
#include "probes/profile/model/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more of n, which doubles. */
static void *grow_array(void *array, size_t n, size_t size)
{
	if (n & (n - 1))
		return array;
	return reallocarray(array, n ? 2 * n : 1, size);
}

/* --- Found again ------------------------------------------------------------ */

/* Elements of an array: alike are those that same() finds to be so, and then hash() is the same. */
struct kind {
	size_t size;
	uint64_t (*hash)(const void *element);
	bool (*same)(const void *one, const void *two);
};

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
	const unsigned char *byte = bytes;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ byte[i]) * 0x100000001b3;
	return hash;
}

static uint64_t hash_function(const void *element)
{
	const struct function *one = element;

	return hash_bytes(hash_bytes(0, one->name, strlen(one->name)), one->object,
			  strlen(one->object));
}

static bool same_function(const void *one, const void *two)
{
	const struct function *a = one, *b = two;

	return !strcmp(a->name, b->name) && !strcmp(a->object, b->object);
}

static uint64_t hash_stack(const void *element)
{
	const struct stack *one = element;

	return hash_bytes(0, one->frame, one->frames * sizeof(*one->frame));
}

static bool same_stack(const void *one, const void *two)
{
	const struct stack *a = one, *b = two;

	return a->frames == b->frames && !memcmp(a->frame, b->frame, a->frames * sizeof(*a->frame));
}

static const struct kind functions = { sizeof(struct function), hash_function, same_function };
static const struct kind stacks = { sizeof(struct stack), hash_stack, same_stack };

/* Where it is, or is to be. */
static size_t *place_of(const struct index *index, const struct kind *kind, const char *all,
			const void *like)
{
	size_t i = kind->hash(like) % index->room;

	while (index->place[i] && !kind->same(all + (index->place[i] - 1) * kind->size, like))
		i = (i + 1) % index->room;
	return &index->place[i];
}

/* At least half of it stays free. */
static bool make_room(struct index *index, size_t n)
{
	size_t room = index->room ? index->room : 251;

	while (room < 2 * n + 2)
		room = 2 * room + 1;
	if (room == index->room)
		return true;
	free(index->place);
	*index = (struct index){ .place = calloc(room, sizeof(*index->place)) };
	index->room = index->place ? room : 0;
	return index->place;
}

/* Of n, the one that is like this; n where there is none, -ENOMEM. */
static long find_like(struct index *index, const struct kind *kind, const void *all, size_t n,
		      const void *like)
{
	size_t found;

	if (!make_room(index, n))
		return -ENOMEM;
	for (; index->used < n; index->used++)
		*place_of(index, kind, all, (const char *)all + index->used * kind->size) =
			index->used + 1;
	found = *place_of(index, kind, all, like);
	return (long)(found ? found - 1 : n);
}

static void forget_index(struct index *index)
{
	free(index->place);
	*index = (struct index){ 0 };
}

/* --- What a profile has ------------------------------------------------------------ */

long profile_function(struct profile *profile, const char *name, const char *object)
{
	const struct function like = { .name = (char *)(uintptr_t)name,
				       .object = (char *)(uintptr_t)object };
	size_t n = profile->functions;
	long found = find_like(&profile->by_name, &functions, profile->function, n, &like);
	struct function one, *all;

	if (found < (long)n)
		return found;
	all = grow_array(profile->function, n, sizeof(*all));
	if (!all)
		return -ENOMEM;
	profile->function = all;
	one = (struct function){ .name = strdup(name), .object = strdup(object) };
	if (!one.name || !one.object) {
		free(one.name);
		free(one.object);
		return -ENOMEM;
	}
	all[profile->functions++] = one;
	return found;
}

static struct stack *stack_of(struct profile *profile, const struct stack *like)
{
	size_t size = like->frames * sizeof(*like->frame), n = profile->stacks;
	long found = find_like(&profile->by_frames, &stacks, profile->stack, n, like);
	struct stack *all;

	if (found < 0)
		return NULL;
	if (found < (long)n)
		return &profile->stack[found];
	all = grow_array(profile->stack, n, sizeof(*all));
	if (!all)
		return NULL;
	profile->stack = all;
	all += n;
	*all = (struct stack){ .frame = malloc(size ? size : 1), .frames = like->frames };
	if (!all->frame)
		return NULL;
	memcpy(all->frame, like->frame, size);
	profile->stacks++;
	return all;
}

int profile_stack(struct profile *profile, const struct stack *stack)
{
	struct stack *known = stack_of(profile, stack);

	if (!known)
		return -ENOMEM;
	known->calls += stack->calls;
	known->seconds += stack->seconds;
	known->total += stack->total;
	return 0;
}

bool profile_known(const struct times *times)
{
	return times->self.value > 0 || times->timed > 0;
}

bool profile_timed(const struct profile *profile)
{
	for (size_t i = 0; i < profile->functions; i++)
		if (profile_known(&profile->function[i].times))
			return true;
	return false;
}

int profile_phase(struct profile *profile, const struct phase *phase)
{
	struct phase *all = grow_array(profile->phase, profile->phases, sizeof(*all));

	if (!all)
		return -ENOMEM;
	profile->phase = all;
	all[profile->phases++] = *phase;
	return 0;
}

struct place {
	struct function function;
	size_t was;
};

static int by_weight(const void *a, const void *b)
{
	const struct function *one = &((const struct place *)a)->function;
	const struct function *two = &((const struct place *)b)->function;

	if (one->times.self.value != two->times.self.value)
		return one->times.self.value > two->times.self.value ? -1 : 1;
	if (one->calls != two->calls)
		return one->calls > two->calls ? -1 : 1;
	return strcmp(one->name, two->name);
}

static void rename_frames(struct profile *profile, const size_t *now)
{
	for (size_t i = 0; i < profile->stacks; i++)
		for (size_t j = 0; j < profile->stack[i].frames; j++)
			profile->stack[i].frame[j] = now[profile->stack[i].frame[j]];
}

int profile_sort(struct profile *profile)
{
	size_t n = profile->functions;
	struct place *place = calloc(n + 1, sizeof(*place));
	size_t *now = calloc(n + 1, sizeof(*now));
	int ret = place && now ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !ret; i++)
		place[i] = (struct place){ profile->function[i], i };
	if (!ret)
		qsort(place, n, sizeof(*place), by_weight);
	for (size_t i = 0; i < n && !ret; i++) {
		profile->function[i] = place[i].function;
		now[place[i].was] = i;
	}
	if (!ret)
		rename_frames(profile, now);
	forget_index(&profile->by_name);
	forget_index(&profile->by_frames);
	free(place);
	free(now);
	return ret;
}

void profile_free(struct profile *profile)
{
	for (size_t i = 0; i < profile->functions; i++) {
		free(profile->function[i].name);
		free(profile->function[i].object);
	}
	for (size_t i = 0; i < profile->stacks; i++)
		free(profile->stack[i].frame);
	forget_index(&profile->by_name);
	forget_index(&profile->by_frames);
	free(profile->function);
	free(profile->stack);
	free(profile->phase);
	free(profile->program);
	*profile = (struct profile){ 0 };
}
