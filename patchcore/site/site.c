/* SPDX-License-Identifier: MIT */
#include "patchcore/site/site.h"

static struct table sites = TABLE_INIT(struct site);

NOPATCH struct site *site_find(uintptr_t addr)
{
	return (struct site *)table_find(&sites, addr);
}

struct site *site_get(uintptr_t addr)
{
	return (struct site *)table_get(&sites, addr);
}

NOPATCH int sites_each(table_fn *fn, void *arg)
{
	return table_each(&sites, fn, arg);
}

NOPATCH void word_release(struct word *word)
{
	for (unsigned i = 0; i < word->also_count; i++)
		if (site_is_owned_by(word->also[i], word->holder))
			site_release(word->also[i]);
	site_release(word->site);
}

static int entry_is_held(struct entry *entry, void *unused)
{
	(void)unused;
	return site_turn((struct site *)entry) % 2;
}

bool site_any_held(void)
{
	return sites_each(entry_is_held, NULL);
}

int site_add_changes(struct entry *entry, void *sum)
{
	const struct site *site = (const struct site *)entry;

	*(uint64_t *)sum += atomic_load_explicit(&site->changes, memory_order_relaxed);
	return 0;
}
