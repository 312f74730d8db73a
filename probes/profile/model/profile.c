/* SPDX-License-Identifier: MIT */
#include "probes/profile/model/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more of n, which doubles. */
static void *grow(void *array, size_t n, size_t size)
{
	if (n & (n - 1))
		return array;
	return reallocarray(array, n ? 2 * n : 1, size);
}

long profile_function(struct profile *profile, const char *name, const char *object)
{
	struct function *all;

	for (size_t i = 0; i < profile->functions; i++)
		if (!strcmp(profile->function[i].name, name) &&
		    !strcmp(profile->function[i].object, object))
			return (long)i;
	all = grow(profile->function, profile->functions, sizeof(*all));
	if (!all)
		return -ENOMEM;
	profile->function = all;
	all[profile->functions] =
		(struct function){ .name = strdup(name), .object = strdup(object) };
	profile->functions++;
	if (!all[profile->functions - 1].name || !all[profile->functions - 1].object)
		return -ENOMEM;
	return (long)profile->functions - 1;
}

static struct stack *stack_of(struct profile *profile, const struct stack *like)
{
	size_t size = like->frames * sizeof(*like->frame);
	struct stack *all;

	for (size_t i = 0; i < profile->stacks; i++)
		if (profile->stack[i].frames == like->frames &&
		    !memcmp(profile->stack[i].frame, like->frame, size))
			return &profile->stack[i];
	all = grow(profile->stack, profile->stacks, sizeof(*all));
	if (!all)
		return NULL;
	profile->stack = all;
	all += profile->stacks;
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

bool profile_timed(const struct profile *profile)
{
	for (size_t i = 0; i < profile->functions; i++)
		if (profile->function[i].times.timed > 0)
			return true;
	return false;
}

int profile_phase(struct profile *profile, const struct phase *phase)
{
	struct phase *all = grow(profile->phase, profile->phases, sizeof(*all));

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
	free(profile->function);
	free(profile->stack);
	free(profile->phase);
	free(profile->program);
	*profile = (struct profile){ 0 };
}
