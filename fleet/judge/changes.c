/* SPDX-License-Identifier: MIT */
/* Runs of a kind before and after another microcode, hypervisor, kernel or day, compared. */
#include "fleet/judge/changes.h"

#include <errno.h>
#include <gsl/gsl_sort.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"

struct changes {
	struct fleet_change *change;
	size_t count;
};

/* Some of the runs of a kind: their sums are the others'. */
struct run_part {
	struct fleet_run *run;
	size_t count;
};

static int add_change(struct changes *all, const char *what, const char *from, const char *to,
		      const struct run_part *before, const struct run_part *after)
{
	struct fleet_change change = { .what = what };
	int ret = judge_move(before->run, before->count, after->run, after->count, &change.moved);

	if (ret < 0 || change.moved.p >= 1)
		return ret;
	snprintf(change.from, sizeof(change.from), "%s", from);
	snprintf(change.to, sizeof(change.to), "%s", to);
	return ARRAY_ADD(all->change, all->count, change);
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

/* Runs from middle on against those before; with 0, those under kernel to against from's. */
static int add_split(struct changes *all, const char *what, const char *from, const char *to,
		     const struct run_part *runs, int64_t middle)
{
	struct fleet_run *copy = malloc((2 * runs->count + 1) * sizeof(*copy));
	struct run_part side[2] = { { copy, 0 }, { copy + runs->count, 0 } };
	int ret = copy ? 0 : -ENOMEM;

	for (size_t i = 0; i < runs->count && copy; i++) {
		const struct fleet_run *run = &runs->run[i];
		bool late = middle ? run->time >= middle : strcmp(run->kernel, to) == 0;

		if (middle || late || strcmp(run->kernel, from) == 0)
			side[late].run[side[late].count++] = *run;
	}
	if (ret == 0)
		ret = add_change(all, what, from, to, &side[0], &side[1]);
	free(copy);
	return ret;
}

struct kernel_epoch {
	const char *kernel;
	int64_t from;
};

static int by_begin(const void *a, const void *b)
{
	const struct kernel_epoch *x = a, *y = b;

	return x->from != y->from ? (x->from > y->from) - (x->from < y->from)
				  : strcmp(x->kernel, y->kernel);
}

static int add_kernels(struct changes *all, const struct run_part *runs)
{
	struct kernel_epoch *epochs = malloc((runs->count + 1) * sizeof(*epochs));
	int ret = epochs ? 0 : -ENOMEM;
	size_t n = 0;

	for (size_t i = 0; i < runs->count && epochs; i++) {
		const struct fleet_run *run = &runs->run[i];
		size_t k = 0;

		while (k < n && strcmp(epochs[k].kernel, run->kernel) != 0)
			k++;
		if (k == n)
			epochs[n++] = (struct kernel_epoch){ run->kernel, run->time };
		else if (run->time < epochs[k].from)
			epochs[k].from = run->time;
	}
	if (epochs)
		qsort(epochs, n, sizeof(*epochs), by_begin);
	for (size_t k = 1; k < n && ret == 0; k++)
		ret = add_split(all, "kernel", epochs[k - 1].kernel, epochs[k].kernel, runs, 0);
	free(epochs);
	return ret;
}

static int add_drift(struct changes *all, const struct run_part *runs)
{
	double *times = malloc((runs->count + 1) * sizeof(*times)), middle;
	char from[DATE_ROOM], to[DATE_ROOM];

	if (!times)
		return -ENOMEM;
	times[0] = 0;
	for (size_t i = 0; i < runs->count; i++)
		times[i] = (double)runs->run[i].time;
	gsl_sort(times, 1, runs->count);
	middle = times[runs->count / 2];
	date_text((time_t)times[0], true, from);
	date_text((time_t)middle, true, to);
	free(times);
	return add_split(all, "time", from, to, runs, (int64_t)middle);
}

int changes_of_kind(const struct kind_report *r, struct fleet_change **changes, size_t *count)
{
	const struct run_part all = { (struct fleet_run *)(uintptr_t)r->runs, r->count };
	const struct identity *now = &r->kind->identity;
	struct changes found = { 0 };
	int ret = 0;

	for (size_t i = 0; i < r->kind_count && ret == 0; i++) {
		const struct identity *was = &r->kinds[i].identity;
		bool microcode = strcmp(was->microcode, now->microcode) != 0;
		struct run_part others;

		if (!is_before(&r->kinds[i], r->kind))
			continue;
		ret = fleet_runs(r->fleet, r->kinds[i].id, &others.run, &others.count);
		if (ret == 0)
			ret = add_change(&found, microcode ? "microcode" : "hypervisor",
					 microcode ? was->microcode : was->hypervisor,
					 microcode ? now->microcode : now->hypervisor, &others,
					 &all);
		fleet_runs_free(others.run, others.count);
	}
	if (ret == 0)
		ret = add_kernels(&found, &all);
	if (ret == 0)
		ret = add_drift(&found, &all);
	*changes = found.change;
	*count = found.count;
	return ret;
}
