/* SPDX-License-Identifier: MIT */
/* All the ways there are to change code. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "patchcore/async.h"
#include "patchcore/batch.h"
#include "patchcore/tests/storm/storm.h"

/* Of several, all are tried; the first error counts. */
static int change_each(struct storm_site *const *sites, size_t n, unsigned code,
		       int (*change)(struct storm_site *site, unsigned code))
{
	int first = 0;

	for (size_t i = 0; i < n; i++) {
		int ret = change(sites[i], code);

		if (first == 0)
			first = ret;
	}
	return first;
}

static int patch_one(struct storm_site *site, unsigned code)
{
	return pc_patch(site->at, site->code[code], site->len);
}

static int change_by_patch(struct storm_site *const *sites, size_t n, unsigned code)
{
	return change_each(sites, n, code, patch_one);
}

static int starts_one(struct storm_site *site, unsigned code)
{
	return pc_patch_starts(site->at, site->code[code], site->len, 1 << 0 | 1 << 2);
}

static int change_by_starts(struct storm_site *const *sites, size_t n, unsigned code)
{
	return change_each(sites, n, code, starts_one);
}

static int start_one(struct storm_site *site, unsigned code)
{
	return pc_start_patch(site->at, site->code[code], site->len);
}

static int finish_one(struct storm_site *site, unsigned code)
{
	int ret;

	(void)code;
	while ((ret = pc_finish_patch(site->at)) > 0)
		__builtin_ia32_pause();
	return ret;
}

static int start_finish(struct storm_site *const *sites, size_t n, unsigned code)
{
	int ret = change_each(sites, n, code, start_one),
	    finished = change_each(sites, n, code, finish_one);

	return ret ? ret : finished;
}

static int start_drain(struct storm_site *const *sites, size_t n, unsigned code)
{
	int ret = change_each(sites, n, code, start_one), drained = pc_drain();

	return ret ? ret : drained;
}

static int change_by_batch(struct storm_site *const *sites, size_t n, unsigned code)
{
	struct pc_op ops[STORM_PLACES];

	for (size_t i = 0; i < n; i++)
		ops[i] = (struct pc_op){ .addr = sites[i]->at,
					 .bytes = sites[i]->code[code],
					 .len = sites[i]->len };
	return pc_patch_batch(ops, n);
}

static int call_one(struct storm_site *site, unsigned code)
{
	void *target = storm_arena.elsewhere + (site->column * 2 + code) * STORM_TARGET;

	return code == 2 ? pc_deactivate_call(&site->call) : pc_activate_call(&site->call, target);
}

static int change_by_call(struct storm_site *const *sites, size_t n, unsigned code)
{
	return change_each(sites, n, code, call_one);
}

const struct storm_way storm_ways[] = {
	{ .name = "patch", .change = change_by_patch, .syncs = true, .lasts = true },
	{ .name = "starts",
	  .shape = STORM_PAIRS,
	  .change = change_by_starts,
	  .syncs = true,
	  .lasts = true },
	{ .name = "start and finish", .change = start_finish, .syncs = true, .lasts = true },
	{ .name = "start many and drain",
	  .change = start_drain,
	  .many = true,
	  .syncs = true,
	  .lasts = true },
	{ .name = "batch", .change = change_by_batch, .many = true, .syncs = true, .lasts = true },
	{ .name = "call", .shape = STORM_CALLS, .change = change_by_call, .lasts = true },
	{ .name = NULL },
};

const struct storm_way *storm_way_find(const char *name)
{
	const struct storm_way *way = storm_ways;

	while (way->name && strcmp(way->name, name) != 0)
		way++;
	return way->name ? way : NULL;
}
