/* SPDX-License-Identifier: MIT */
#include "patchcore/site/site.h"

#include <stdlib.h>

static bool renew_site(struct entry *entry);

static struct table sites = TABLE_INIT(struct site, 6, renew_site);

/* --- Numbers and marks ------------------------------------------------------------------------ */

#define CHUNK  (1u << 15)
#define CHUNKS (1u << 10)

struct site_chunk {
	_Atomic(uint64_t) marks[CHUNK / 64];
	struct site *sites[CHUNK];
};

static struct site_chunk *_Atomic chunks[CHUNKS]; /* published with release */
static _Atomic(size_t) numbered; /* numbers that sites have, from 0 on; after chunks */

NOPATCH static struct site_chunk *chunk_of(size_t number)
{
	return load_acquire(&chunks[number / CHUNK]);
}

NOPATCH static _Atomic(uint64_t) *marks_of(size_t number)
{
	return &chunk_of(number)->marks[number % CHUNK / 64];
}

NOPATCH void site_mark(const struct site *site)
{
	_Atomic(uint64_t) *marks = marks_of(site->number);
	uint64_t bit = UINT64_C(1) << site->number % 64;

	if (!(load_relaxed(marks) & bit))
		atomic_fetch_or_explicit(marks, bit, memory_order_seq_cst);
}

NOPATCH void site_unmark(const struct site *site)
{
	uint64_t bit = UINT64_C(1) << site->number % 64;

	atomic_fetch_and_explicit(marks_of(site->number), ~bit, memory_order_seq_cst);
}

NOPATCH struct site *sites_next_marked(size_t number)
{
	size_t count = load_acquire(&numbered);
	uint64_t marks;

	for (; number < count; number = (number | 63) + 1) {
		marks = load_acquire(marks_of(number)) >> number % 64;
		if (!marks)
			continue;
		number += (size_t)__builtin_ctzll(marks);
		return chunk_of(number)->sites[number % CHUNK];
	}
	return NULL;
}

/* Under the lock of the table. */
static bool number_site(struct site *site)
{
	size_t number = load_relaxed(&numbered);
	struct site_chunk *chunk;

	if (number == (size_t)CHUNK * CHUNKS)
		return false;
	if (number % CHUNK == 0) {
		chunk = calloc(1, sizeof(*chunk));
		if (!chunk)
			return false;
		store_release(&chunks[number / CHUNK], chunk);
	}
	site->number = number;
	chunk_of(number)->sites[number % CHUNK] = site;
	store_release(&numbered, number + 1);
	return true;
}

/* --- Which there are -------------------------------------------------------------------------- */

/* A thread that was pointed to it before may own it for a moment, and finds it IDLE. */
static bool renew_site(struct entry *entry)
{
	struct site *site = (struct site *)entry;

	return entry->addr ? !atomic_load(&site->owner) : number_site(site);
}

NOPATCH struct site *site_find(uintptr_t addr)
{
	return (struct site *)table_find(&sites, addr);
}

struct site *site_get(uintptr_t addr)
{
	return (struct site *)table_get(&sites, addr);
}

void site_remove(struct site *site)
{
	site_unmark(site);
	table_remove(&sites, &site->entry);
}

NOPATCH void sites_each(site_fn *fn, void *arg)
{
	size_t count = load_acquire(&numbered);

	for (size_t number = 0; number < count; number++)
		fn(chunk_of(number)->sites[number % CHUNK], arg);
}

int sites_each_in(uintptr_t start, uintptr_t end, table_fn *fn, void *arg)
{
	return table_each_in(&sites, start, end, fn, arg);
}

NOPATCH bool word_hold_also(struct word *word, struct site *site, uintptr_t addr)
{
	word->also[word->also_count++] = site;
	if (!site_try_hold(site, addr, word->holder)) {
		word->also_count--;
		return false;
	}
	site_set_lead(site, word->site);
	site_set_state(site, WORD_HELD);
	return true;
}

NOPATCH void word_release(struct word *word)
{
	for (unsigned i = 0; i < word->also_count; i++)
		if (site_is_owned_by(word->also[i], word->holder))
			site_release(word->also[i]);
	site_release(word->site);
}

static void count_site(struct site *site, void *arg)
{
	struct site_counts *sum = arg;

	sum->held += load_acquire(&site->turn) % 2;
	sum->changes += load_relaxed(&site->changes);
	sum->traps += load_relaxed(&site->traps);
}

struct site_counts sites_count(void)
{
	struct site_counts sum = { 0 };

	sites_each(count_site, &sum);
	return sum;
}

/* --- The library's own code, if own.c does not say more --------------------------------------- */

extern const char __start_patchcore_nopatch[] __attribute__((visibility("hidden")));
extern const char __stop_patchcore_nopatch[] __attribute__((visibility("hidden")));

__attribute__((weak)) uintptr_t own_start = (uintptr_t)__start_patchcore_nopatch;
__attribute__((weak)) uintptr_t own_end = (uintptr_t)__stop_patchcore_nopatch;
