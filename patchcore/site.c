/* SPDX-License-Identifier: MIT */
#include "patchcore/site.h"

static struct table sites = TABLE_INIT(struct site);

struct site *site_find(uintptr_t addr)
{
	return (struct site *)table_find(&sites, addr);
}

struct site *site_get(uintptr_t addr)
{
	return (struct site *)table_get(&sites, addr);
}

void sites_fork_lock(void)
{
	forklock_before_fork(&sites.lock);
}

void sites_fork_unlock(void)
{
	forklock_after_fork(&sites.lock);
}

int sites_each(table_fn *fn, void *arg)
{
	return table_each(&sites, fn, arg);
}

static int is_held(struct entry *entry, void *unused)
{
	(void)unused;
	return site_turn((struct site *)entry) % 2;
}

bool site_any_held(void)
{
	return sites_each(is_held, NULL);
}
