/* SPDX-License-Identifier: MIT */
#include "patchcore/site/site.h"

#include <link.h>
#include <string.h>

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

/* --- The library's own code ------------------------------------------------------------------- */

extern const char __start_patchcore_nopatch[] __attribute__((visibility("hidden")));
extern const char __stop_patchcore_nopatch[] __attribute__((visibility("hidden")));

uintptr_t own_start = (uintptr_t)__start_patchcore_nopatch;
uintptr_t own_end = (uintptr_t)__stop_patchcore_nopatch;

/* The executable part of the shared library that NOPATCH code lies in. Stops there. */
static int widen_own_range(struct dl_phdr_info *info, size_t size, void *unused)
{
	const char *name = strrchr(info->dlpi_name, '/');

	(void)size;
	(void)unused;
	if (strncmp(name ? name + 1 : info->dlpi_name, "libpatchcore.so", 15) != 0)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + part->p_vaddr, end = start + part->p_memsz;

		if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) || own_start < start ||
		    own_start >= end)
			continue;
		own_start = start;
		own_end = end;
		return 1;
	}
	return 0;
}

__attribute__((constructor)) static void know_own(void)
{
	dl_iterate_phdr(widen_own_range, NULL);
}
