/* SPDX-License-Identifier: MIT */
#include "probes/profile/model/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more of n, which doubles. */
static void *grow_array(void *array, size_t n, size_t size)
{
	if (n & (n - 1))
		return array;
	return reallocarray(array, n ? 2 * n : 1, size);
}

/* What has a key is found again: its index. One that is new is to become the n-th. */
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
	struct function *all;
	long found = -ENOMEM;
	char *key;

	if (asprintf(&key, "%s\n%s\n%" PRIx64, name, object, address) < 0)
		return -ENOMEM;
	found = find_key(&profile->by_name, key, n);
	free(key);
	if (found != (long)n)
		return found;
	all = grow_array(profile->function, n, sizeof(*all));
	if (!all)
		return -ENOMEM;
	profile->function = all;
	all[profile->functions++] = (struct function){ .name = strdup(name),
						       .object = strdup(object),
						       .address = address };
	return all[n].name && all[n].object ? found : -ENOMEM;
}

static long find_stack(struct profile *profile, const struct stack *like)
{
	char *key = NULL;
	size_t size = 0;
	FILE *text = open_memstream(&key, &size);
	long found = -ENOMEM;

	for (size_t i = 0; text && i < like->frames; i++)
		fprintf(text, "%zx ", like->frame[i]);
	if (text && !fclose(text))
		found = find_key(&profile->by_frames, key, profile->stacks);
	free(key);
	return found;
}

static struct stack *stack_of(struct profile *profile, const struct stack *like)
{
	size_t size = like->frames * sizeof(*like->frame), n = profile->stacks;
	long found = find_stack(profile, like);
	struct stack *all;

	if (found != (long)n)
		return found < 0 ? NULL : &profile->stack[found];
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
	known->half[0] += stack->half[0];
	known->half[1] += stack->half[1];
	known->seen += stack->seen;
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

double profile_agreement(const struct profile *profile)
{
	double sum[2] = { 0 }, common = 0;

	for (size_t i = 0; i < profile->stacks; i++)
		for (int h = 0; h < 2; h++)
			sum[h] += profile->stack[i].half[h];
	for (size_t i = 0; i < profile->stacks && sum[0] > 0 && sum[1] > 0; i++) {
		const double *half = profile->stack[i].half;
		double a = half[0] / sum[0], b = half[1] / sum[1];

		common += a < b ? a : b;
	}
	return common;
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

/* A function that is sorted: indices name the old order, and are of no use behind it. */
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
	json_decref(profile->by_name);
	json_decref(profile->by_frames);
	free(profile->function);
	free(profile->stack);
	free(profile->phase);
	free(profile->program);
	*profile = (struct profile){ 0 };
}
