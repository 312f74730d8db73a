/* SPDX-License-Identifier: MIT */
/*
 * A table of edges for all threads. An edge takes the first free place among those of the block it
 * leads to, so that what is run together lies together; if none is free, one behind its own in a
 * table for the rest. It keeps it.
 */
#include "probes/profile/edges/edges.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probes/profile/sample/relaxed.h"

#define NEAR   4u /* places of a block */
#define BLOCKS FI_PROBES_MAX
#define REST   (1u << 18)
#define PLACES (BLOCKS * NEAR + REST)
#define TRIES  64
#define PAGE   4096

struct place {
	_Atomic uint64_t key; /* from and to, and 1 more than them: 0 is free */
	_Atomic uint64_t count[2];
};

/* What is read between phases does not lie beside what each block reads. */
struct weighed {
	uint64_t before[2];
	double sum[2];
};

static struct {
	_Alignas(PAGE) struct place place[PLACES];
	struct weighed weighed[PLACES];
	_Atomic uint32_t used[PLACES]; /* numbers of places that are not free, and 1 more */
	_Atomic bool ran[BLOCKS];
} table;
static _Atomic uint32_t used_n;
static _Atomic uint64_t late, lost;

/* Read by every block. */
static struct {
	_Alignas(64) _Atomic uint64_t phase;
	_Atomic bool crowded; /* more than one thread was seen in it */
} now;
static _Alignas(64) _Atomic unsigned threads; /* that were seen in it */

static __thread struct {
	uint64_t phase;
	uint32_t block;
} previous __attribute__((tls_model("initial-exec")));

int edges_start(void)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) < 0)
		return -errno;
	late = lost = 0;
	used_n = 0;
	/* Few pages of it are in use: the kernel clears those alone. */
	return madvise(&table, sizeof(table), MADV_DONTNEED) ? -errno : 0;
}

void edges_phase(uint64_t number)
{
	if (number) {
		store_relaxed(&threads, 0);
		store_relaxed(&now.crowded, false);
	}
	store_release(&now.phase, number);
}

/* Once for each, so there is room. */
FI_FUNCTION static void note_used(const struct place *place)
{
	uint32_t n = add_relaxed(&used_n, 1);

	store_release(&table.used[n], (uint32_t)(place - table.place) + 1);
}

FI_FUNCTION static bool is_its(struct place *place, uint64_t key)
{
	uint64_t there = load_relaxed(&place->key);

	if (there)
		return there == key;
	if (!atomic_compare_exchange_strong_explicit(&place->key, &there, key, memory_order_relaxed,
						     memory_order_relaxed))
		return there == key;
	note_used(place);
	return true;
}

FI_FUNCTION static struct place *place_in_rest(uint64_t key)
{
	uint64_t at = key * UINT64_C(0x9e3779b97f4a7c15) >> 46;

	for (unsigned i = 0; i < TRIES; i++) {
		struct place *place = &table.place[BLOCKS * NEAR + (at + i) % REST];

		if (is_its(place, key))
			return place;
	}
	return NULL;
}

/* Those that a block has are tried in an order of the other's own: mostly the first is its. */
FI_FUNCTION static struct place *place_of(uint32_t from, uint32_t to)
{
	uint64_t key = ((uint64_t)from << 32 | to) + 1;
	struct place *own = &table.place[to * NEAR];

	for (unsigned i = 0; i < NEAR; i++) {
		struct place *place = &own[(from ^ i) % NEAR];

		if (is_its(place, key))
			return place;
	}
	return place_in_rest(key);
}

/* By one thread: without a locked bus, but as one instruction, for signal handlers. */
FI_FUNCTION static void one_more(_Atomic uint64_t *count)
{
	if (load_relaxed(&now.crowded))
		add_relaxed(count, 1);
	else
		__asm__("incq %0" : "+m"(*(uint64_t *)count));
}

/*
 * The thread's first block of a phase has none before it. From the second thread on all count by
 * locked instructions: the barrier ends what the first is in the middle of.
 */
FI_FUNCTION static void enter(uint64_t phase)
{
	previous.phase = phase;
	if (!add_relaxed(&threads, 1) ||
	    atomic_exchange_explicit(&now.crowded, true, memory_order_seq_cst))
		return;
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

/* --- What wakes the thread of phases --------------------------------------------------------- */

static _Atomic uint32_t wakes;
static atomic_bool has_waiter;

/* A system call where there is a thread to wake only. */
FI_FUNCTION void edges_wake(void)
{
	int saved = errno;

	atomic_fetch_add_explicit(&wakes, 1, memory_order_seq_cst);
	if (atomic_exchange_explicit(&has_waiter, false, memory_order_seq_cst))
		syscall(SYS_futex, &wakes, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = saved;
}

uint32_t edges_wakes(void)
{
	return atomic_load_explicit(&wakes, memory_order_seq_cst);
}

bool edges_wait(uint32_t seen, const struct timespec *until)
{
	atomic_store_explicit(&has_waiter, true, memory_order_seq_cst);
	/* The kernel looks whether it has rung since. */
	return syscall(SYS_futex, &wakes, FUTEX_WAIT_BITSET_PRIVATE, seen, until, NULL,
		       FUTEX_BITSET_MATCH_ANY) == 0 ||
	       errno != ETIMEDOUT;
}

/* --- The probe function ----------------------------------------------------------------------- */

FI_FUNCTION static void note_run(uint32_t id, bool wakes_thread)
{
	store_relaxed(&table.ran[id], true);
	if (wakes_thread)
		edges_wake();
}

FI_FUNCTION void edges_block(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	uint64_t phase = load_acquire(&now.phase);
	uint32_t from = previous.block;
	struct place *place;

	(void)site;
	(void)regs;
	(void)data;
	if (!load_relaxed(&table.ran[id]))
		note_run(id, !phase);
	if (!phase) {
		add_relaxed(&late, 1);
		return;
	}
	previous.block = id;
	if (previous.phase != phase) {
		enter(phase);
		return;
	}
	place = place_of(from, id);
	if (place)
		one_more(&place->count[phase % 2]);
	else
		add_relaxed(&lost, 1);
}

bool edges_ran(uint32_t id)
{
	return load_relaxed(&table.ran[id]);
}

/* The number of one that a thread is just taking may not stand there yet. */
static bool used_place(uint32_t i, uint32_t *place)
{
	*place = load_acquire(&table.used[i]);
	return (*place)-- > 0;
}

uint64_t edges_runs(void)
{
	uint32_t n = load_relaxed(&used_n), at;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!used_place(i, &at))
			continue;
		for (int half = 0; half < 2; half++)
			sum += load_relaxed(&table.place[at].count[half]) -
			       table.weighed[at].before[half];
	}
	return sum;
}

void edges_weigh(double weight)
{
	uint32_t n = load_relaxed(&used_n), at;

	for (uint32_t i = 0; i < n; i++) {
		if (!used_place(i, &at))
			continue;
		for (int half = 0; half < 2; half++) {
			uint64_t count = load_relaxed(&table.place[at].count[half]);
			struct weighed *weighed = &table.weighed[at];

			weighed->sum[half] += weight * (double)(count - weighed->before[half]);
			weighed->before[half] = count;
		}
	}
}

int edges_next(uint32_t *i, struct edge *edge)
{
	for (; *i < load_relaxed(&used_n); ++*i) {
		uint32_t at;
		uint64_t key;

		if (!used_place(*i, &at))
			continue;
		key = load_relaxed(&table.place[at].key) - 1;
		edge->from = (uint32_t)(key >> 32);
		edge->to = (uint32_t)key;
		for (int half = 0; half < 2; half++) {
			edge->count[half] = load_relaxed(&table.place[at].count[half]);
			edge->weighed[half] = table.weighed[at].sum[half];
		}
		++*i;
		return 1;
	}
	return 0;
}

void edges_sums(struct quality *sum)
{
	sum->late = (double)load_relaxed(&late);
	sum->lost = (double)load_relaxed(&lost);
}
