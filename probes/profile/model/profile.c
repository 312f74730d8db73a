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

int profile_stack(struct profile *profile, const size_t *frame, size_t frames, double calls)
{
	struct stack *all;

	for (size_t i = 0; i < profile->stacks; i++) {
		struct stack *stack = &profile->stack[i];

		if (stack->frames != frames ||
		    memcmp(stack->frame, frame, frames * sizeof(*frame)) != 0)
			continue;
		stack->calls += calls;
		return 0;
	}
	all = grow(profile->stack, profile->stacks, sizeof(*all));
	if (!all)
		return -ENOMEM;
	profile->stack = all;
	all += profile->stacks;
	*all = (struct stack){ .frame = calloc(frames ? frames : 1, sizeof(*frame)),
			       .frames = frames,
			       .calls = calls };
	if (!all->frame)
		return -ENOMEM;
	memcpy(all->frame, frame, frames * sizeof(*frame));
	profile->stacks++;
	return 0;
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

static int by_calls(const void *a, const void *b)
{
	const struct function *one = &((const struct place *)a)->function;
	const struct function *two = &((const struct place *)b)->function;

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
		qsort(place, n, sizeof(*place), by_calls);
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
