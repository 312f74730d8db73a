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

static int count_entry(struct entry *entry, void *arg)
{
	const struct site *site = (const struct site *)entry;
	struct site_counts *sum = arg;

	sum->held += atomic_load_explicit(&site->turn, memory_order_acquire) % 2;
	sum->changes += atomic_load_explicit(&site->changes, memory_order_relaxed);
	sum->traps += atomic_load_explicit(&site->traps, memory_order_relaxed);
	return 0;
}

struct site_counts sites_count(void)
{
	struct site_counts sum = { 0 };

	sites_each(count_entry, &sum);
	return sum;
}
