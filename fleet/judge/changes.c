/* SPDX-License-Identifier: MIT */
#include "fleet/judge/changes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct changes {
	struct change *change;
	size_t count;
};

/* Some of the runs of a kind: their sums are the others'. */
struct part {
	struct fleet_run *run;
	size_t count;
};

static int add_change(struct changes *all, const char *what, const char *from, const char *to,
		      const struct part *before, const struct part *after)
{
	struct change *more, change = { .what = what };
	int ret = judge_move(before->run, before->count, after->run, after->count, &change.moved);

	if (ret < 0 || change.moved.p >= 1)
		return ret;
	more = realloc(all->change, (all->count + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	snprintf(change.from, sizeof(change.from), "%s", from);
	snprintf(change.to, sizeof(change.to), "%s", to);
	all->change = more;
	all->change[all->count++] = change;
	return 0;
}

/* The same hardware with another microcode or under another hypervisor, not both, and earlier. */
static bool is_before(const struct fleet_kind *kind, const struct fleet_kind *later)
{
	const struct identity *a = &kind->identity, *b = &later->identity;
	bool microcode = strcmp(a->microcode, b->microcode) != 0;
	bool hypervisor = strcmp(a->hypervisor, b->hypervisor) != 0;

	return strcmp(a->vendor, b->vendor) == 0 && a->family == b->family &&
	       a->model == b->model && a->stepping == b->stepping && a->sockets == b->sockets &&
	       a->cores == b->cores && a->cpus == b->cpus && microcode != hypervisor &&
	       (kind->from < later->from || (kind->from == later->from && kind->id < later->id));
}

/* --- Kernels and time ------------------------------------------------------------------------- */

struct epoch {
	const char *kernel;
	int64_t from;
};

static int by_begin(const void *a, const void *b)
{
	const struct epoch *x = a, *y = b;

	return x->from != y->from ? (x->from > y->from) - (x->from < y->from)
				  : strcmp(x->kernel, y->kernel);
}

/* Runs under that kernel (NULL: any) that ended in [from, to). */
static int pick(struct part *part, const struct part *all, const char *kernel, int64_t from,
		int64_t to)
{
	*part = (struct part){ .run = malloc((all->count + 1) * sizeof(*part->run)) };
	if (!part->run)
		return -ENOMEM;
	for (size_t i = 0; i < all->count; i++) {
		const struct fleet_run *run = &all->run[i];

		if (run->time >= from && run->time < to &&
		    (!kernel || strcmp(run->kernel, kernel) == 0))
			part->run[part->count++] = *run;
	}
	return 0;
}

/* The parts are freed, also where picking them has failed. */
static int add_pair(struct changes *all, const char *what, const char *from, const char *to,
		    struct part *before, struct part *after, int ret)
{
	if (ret == 0)
		ret = add_change(all, what, from, to, before, after);
	free(before->run);
	free(after->run);
	return ret;
}

static int add_kernels(struct changes *all, const struct part *runs)
{
	struct epoch *epochs = malloc((runs->count + 1) * sizeof(*epochs));
	int ret = epochs ? 0 : -ENOMEM;
	size_t n = 0;

	for (size_t i = 0; i < runs->count && epochs; i++) {
		const struct fleet_run *run = &runs->run[i];
		size_t k = 0;

		while (k < n && strcmp(epochs[k].kernel, run->kernel) != 0)
			k++;
		if (k == n)
			epochs[n++] = (struct epoch){ run->kernel, run->time };
		else if (run->time < epochs[k].from)
			epochs[k].from = run->time;
	}
	if (epochs)
		qsort(epochs, n, sizeof(*epochs), by_begin);
	for (size_t k = 1; k < n && ret == 0; k++) {
		const char *from = epochs[k - 1].kernel, *to = epochs[k].kernel;
		struct part before = { 0 }, after = { 0 };

		ret = pick(&before, runs, from, INT64_MIN, INT64_MAX);
		if (ret == 0)
			ret = pick(&after, runs, to, INT64_MIN, INT64_MAX);
		ret = add_pair(all, "kernel", from, to, &before, &after, ret);
	}
	free(epochs);
	return ret;
}

static void print_day(int64_t seconds, char *text, size_t size)
{
	time_t time = (time_t)seconds;
	struct tm tm;

	if (!gmtime_r(&time, &tm) || !strftime(text, size, "%Y-%m-%d", &tm))
		snprintf(text, size, "?");
}

static int add_drift(struct changes *all, const struct part *runs)
{
	struct epoch *times = malloc((runs->count + 1) * sizeof(*times));
	int64_t middle;
	char from[16], to[16];
	struct part before = { 0 }, after = { 0 };
	int ret;

	if (!times)
		return -ENOMEM;
	for (size_t i = 0; i < runs->count; i++)
		times[i] = (struct epoch){ "", runs->run[i].time };
	qsort(times, runs->count, sizeof(*times), by_begin);
	middle = runs->count ? times[runs->count / 2].from : 0;
	print_day(runs->count ? times[0].from : 0, from, sizeof(from));
	print_day(middle, to, sizeof(to));
	free(times);
	ret = pick(&before, runs, NULL, INT64_MIN, middle);
	if (ret == 0)
		ret = pick(&after, runs, NULL, middle, INT64_MAX);
	return add_pair(all, "time", from, to, &before, &after, ret);
}

int changes_of_kind(struct fleet *fleet, const struct fleet_kind *kinds, size_t kind_count,
		    const struct fleet_kind *kind, const struct fleet_run *runs, size_t count,
		    struct change **changes, size_t *change_count)
{
	const struct part all = { (struct fleet_run *)(uintptr_t)runs, count };
	struct changes found = { 0 };
	int ret = 0;

	for (size_t i = 0; i < kind_count && ret == 0; i++)
		if (is_before(&kinds[i], kind)) {
			const struct identity *a = &kinds[i].identity, *b = &kind->identity;
			bool microcode = strcmp(a->microcode, b->microcode) != 0;
			struct part others;

			ret = fleet_runs(fleet, kinds[i].id, &others.run, &others.count);
			if (ret == 0)
				ret = add_change(&found, microcode ? "microcode" : "hypervisor",
						 microcode ? a->microcode : a->hypervisor,
						 microcode ? b->microcode : b->hypervisor, &others,
						 &all);
			fleet_runs_free(others.run, others.count);
		}
	if (ret == 0)
		ret = add_kernels(&found, &all);
	if (ret == 0)
		ret = add_drift(&found, &all);
	*changes = found.change;
	*change_count = found.count;
	return ret;
}
