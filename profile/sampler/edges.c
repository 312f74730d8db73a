/* SPDX-License-Identifier: MIT */
/*
 * A table of edges that all threads share, and its probe function. An edge takes the first free
 * slot among the few of the block that it leads to, so that edges that run together lie together.
 * If none is free, it takes any, by hash. Slots are never given up.
 */
#include "profile/sampler/edges.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profile/sample/sample.h"

#define NEAR   4u /* slots of a block */
#define BLOCKS FI_PROBES_MAX
#define SLOTS  (BLOCKS * (NEAR + 1))
#define TRIES  64
#define PAGE   4096

struct edge_slot {
	_Atomic uint64_t key; /* from and to, plus 1; 0: the slot is free */
	_Atomic uint64_t count[2];
};

/* Read between phases only, so apart from counts, which each block writes. */
struct weighed {
	uint64_t before[2];
	double sum[2];
};

static struct {
	_Alignas(PAGE) struct edge_slot slot[SLOTS];
	struct weighed weighed[SLOTS];
	_Atomic uint32_t used[SLOTS]; /* indices of slots that are not free, plus 1 */
	_Atomic bool ran[BLOCKS];
} table;
static _Atomic uint32_t used_n;
static _Atomic uint64_t outside, lost;

/* Read by every block. */
static struct {
	_Alignas(64) _Atomic uint64_t phase;
	_Atomic bool crowded; /* more than one thread has run in this phase */
} current;
static _Alignas(64) _Atomic unsigned threads; /* that have run in this phase */

static __thread struct {
	uint64_t phase;
	uint32_t block;
} previous __attribute__((tls_model("initial-exec")));

int edges_start(void)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) < 0)
		return -errno;
	outside = lost = 0;
	used_n = 0;
	/* Few pages are in use: the kernel clears those only. */
	return madvise(&table, sizeof(table), MADV_DONTNEED) ? -errno : 0;
}

void edges_phase(uint64_t number)
{
	if (number) {
		store_relaxed(&threads, 0);
		store_relaxed(&current.crowded, false);
	}
	store_release(&current.phase, number);
}

FI_FUNCTION static bool claim_slot(struct edge_slot *slot, uint64_t key)
{
	uint64_t there = load_relaxed(&slot->key);
	uint32_t n;

	if (there)
		return there == key;
	if (!atomic_compare_exchange_strong_explicit(&slot->key, &there, key, memory_order_relaxed,
						     memory_order_relaxed))
		return there == key;
	/* Each slot is added once, so the list has room. */
	n = add_relaxed(&used_n, 1);
	store_release(&table.used[n], (uint32_t)(slot - table.slot) + 1);
	return true;
}

/* Those of the block come first, in an order by the other block: mostly the first will do. */
FI_FUNCTION static struct edge_slot *find_slot(uint32_t from, uint32_t to)
{
	uint64_t key = ((uint64_t)from << 32 | to) + 1;
	uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	for (unsigned i = 0; i < TRIES; i++) {
		struct edge_slot *slot =
			&table.slot[i < NEAR ? to * NEAR + (from ^ i) % NEAR : (hash + i) % SLOTS];

		if (claim_slot(slot, key))
			return slot;
	}
	return NULL;
}

/* One thread needs no LOCK prefix, but one instruction: signal handlers count, too. */
FI_FUNCTION static void increment_count(_Atomic uint64_t *count)
{
	if (load_relaxed(&current.crowded))
		add_relaxed(count, 1);
	else
		__asm__("incq %0" : "+m"(*(uint64_t *)count));
}

/* From the second thread on increments are locked; the barrier ends one that is under way. */
FI_FUNCTION static void note_thread(uint64_t phase)
{
	previous.phase = phase;
	if (!add_relaxed(&threads, 1) ||
	    atomic_exchange_explicit(&current.crowded, true, memory_order_seq_cst))
		return;
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

static sem_t wakes;

FI_FUNCTION void edges_wake(void)
{
	int saved = errno;

	sem_post(&wakes);
	errno = saved;
}

void edges_forget_wakes(void)
{
	while (!sem_trywait(&wakes))
		;
}

bool edges_wait(const struct timespec *until)
{
	return !sem_clockwait(&wakes, CLOCK_MONOTONIC, until) || errno != ETIMEDOUT;
}

FI_FUNCTION void edges_block(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	uint64_t phase = load_acquire(&current.phase);
	uint32_t from = previous.block;
	struct edge_slot *slot;

	(void)site;
	(void)regs;
	(void)data;
	if (!load_relaxed(&table.ran[id])) {
		store_relaxed(&table.ran[id], true);
		if (!phase)
			edges_wake();
	}
	if (!phase) {
		add_relaxed(&outside, 1);
		return;
	}
	previous.block = id;
	if (previous.phase != phase) {
		note_thread(phase);
		return;
	}
	slot = find_slot(from, id);
	if (slot)
		increment_count(&slot->count[phase % 2]);
	else
		add_relaxed(&lost, 1);
}

bool edges_has_run(uint32_t id)
{
	return load_relaxed(&table.ran[id]);
}

/* False: the thread that takes the slot has not written its index yet. */
static bool read_used(uint32_t i, uint32_t *slot)
{
	*slot = load_acquire(&table.used[i]);
	return (*slot)-- > 0;
}

uint64_t edges_runs(void)
{
	uint32_t n = load_relaxed(&used_n), at;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!read_used(i, &at))
			continue;
		for (int half = 0; half < 2; half++)
			sum += load_relaxed(&table.slot[at].count[half]) -
			       table.weighed[at].before[half];
	}
	return sum;
}

uint64_t edges_weigh(double weight)
{
	uint32_t n = load_relaxed(&used_n), at;
	uint64_t runs = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!read_used(i, &at))
			continue;
		for (int half = 0; half < 2; half++) {
			uint64_t count = load_relaxed(&table.slot[at].count[half]);
			struct weighed *weighed = &table.weighed[at];

			weighed->sum[half] += weight * (double)(count - weighed->before[half]);
			runs += count - weighed->before[half];
			weighed->before[half] = count;
		}
	}
	return runs;
}

int edges_next(uint32_t *i, struct edge *edge)
{
	for (; *i < load_relaxed(&used_n); ++*i) {
		uint32_t at;
		uint64_t key;

		if (!read_used(*i, &at))
			continue;
		key = load_relaxed(&table.slot[at].key) - 1;
		edge->from = (uint32_t)(key >> 32);
		edge->to = (uint32_t)key;
		for (int half = 0; half < 2; half++) {
			edge->count[half] = load_relaxed(&table.slot[at].count[half]);
			edge->weighed[half] = table.weighed[at].sum[half];
		}
		++*i;
		return 1;
	}
	return 0;
}

void edges_sums(struct quality *sum)
{
	sum->late = (double)load_relaxed(&outside);
	sum->lost = (double)load_relaxed(&lost);
}

/* --- Weights -------------------------------------------------------------------------------- */

#define PART  0.75
#define LEAST 0.1 /* of the price: the least that is left of a block */

static int by_size(const void *a, const void *b)
{
	double one = *(const double *)a, two = *(const double *)b;

	return (one > two) - (one < two);
}

/* The fourth least of 64 phases, and of fewer phases in proportion. */
static double quick_block(const struct weights *weights)
{
	size_t n = weights->n < WEIGHT_RECENT ? weights->n : WEIGHT_RECENT;
	double sorted[WEIGHT_RECENT];

	memcpy(sorted, weights->recent, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_size);
	return sorted[n / 17];
}

double weight_of_phase(struct weights *weights, double seconds, double cpu, uint64_t runs)
{
	double each, price, left;

	if (!runs || !(seconds > 0))
		return 0;
	each = (cpu > seconds ? cpu : seconds) / (double)runs;
	weights->recent[weights->n++ % WEIGHT_RECENT] = each;
	price = PART * quick_block(weights);
	left = each - price > LEAST * price ? each - price : LEAST * price;
	return each / left / seconds;
}
