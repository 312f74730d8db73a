/* SPDX-License-Identifier: MIT */
/*
 * Provokers: what is done on purpose to pull the two fetches of a straddler apart. tmax-stress(1)
 * says what each does; chain and sites are in the generated code, see code.h.
 *
 * The patcher flushes when it has the site already and reads neither line any more, never between
 * two stores. The threads of shootdown and bandwidth share the patcher's CPU where every other
 * is a seat, never an executor's: there they would stop the fetching that they are to disturb. They
 * then stop the patcher, which makes its waits longer, not shorter.
 *
 * All of it lives in the caller's process or dies with the calling thread.
 */
#define _GNU_SOURCE
#include "stress/run/run.h"

#include <errno.h>
#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define PAGE		4096u
#define SHOOTDOWN_SIZE	8192  /* a page whose protection changes, and one that is dropped */
#define SHOOTDOWN_PAUSE 30000 /* ns */
#define STREAM_PIECE	65536u
#define STREAM_MIN	((size_t)64 << 20)
#define STREAM_MAX	((size_t)1 << 30)
#define SIBLING_STEPS	1000
#define LOAD_BURST	200000 /* ns */
#define WIDE_STEPS	256    /* of eight independent chains: enough to fill the pipes */

struct provokers;

/* What one of them does, on cache lines of its own. */
struct worker {
	struct provokers *all;
	uint64_t (*work)(struct worker *w); /* a thread's: a little of it; how much that was */
	size_t size;			    /* of the memory that it wants */
	uint8_t *memory;
	size_t at;		/* of the memory, as far as the work has got */
	_Atomic(uint64_t) done; /* flushes, changes, bytes, rounds, bursts or processes */
	pthread_t thread;
	bool runs;
} __attribute__((aligned(128)));

struct provokers {
	unsigned set;
	const uint8_t *part[2]; /* of the site, by its provoker: back and front */
	unsigned cpu;		/* of the threads */
	_Atomic(int) quit;
	struct worker of[PROVOKER_COUNT];
	pid_t load[PLACEMENT_EXECUTORS_MAX];
};

static bool has_provoker(const struct provokers *p, enum provoker which)
{
	return p->set & 1u << which;
}

static void add_done(struct provokers *p, enum provoker which, uint64_t much)
{
	atomic_fetch_add_explicit(&p->of[which].done, much, memory_order_relaxed);
}

uint64_t provokers_done(const struct provokers *p, enum provoker which)
{
	return atomic_load_explicit(&p->of[which].done, memory_order_relaxed);
}

/* --- Threads -------------------------------------------------------------------------------- */

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	/* Or else the kernel rounds short pauses up by 50 us. */
	prctl(PR_SET_TIMERSLACK, 1);
	while (!atomic_load_explicit(&w->all->quit, memory_order_relaxed))
		atomic_fetch_add_explicit(&w->done, w->work(w), memory_order_relaxed);
	return NULL;
}

/* Maps memory of its size and works on that CPU. 0 or a negative errno. */
static int start_worker(struct worker *w, hwloc_topology_t topology, unsigned cpu)
{
	hwloc_bitmap_t set;
	int ret = 0;

	if (w->size) {
		w->memory = mmap(NULL, w->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				 -1, 0);
		if (w->memory == MAP_FAILED)
			return -ENOMEM;
	}
	ret = -pthread_create(&w->thread, NULL, worker_main, w);
	w->runs = ret == 0;
	if (ret < 0)
		return ret;
	set = hwloc_bitmap_alloc();
	if (!set || hwloc_bitmap_only(set, cpu) < 0 ||
	    hwloc_set_thread_cpubind(topology, w->thread, set, HWLOC_CPUBIND_STRICT) < 0)
		ret = -errno;
	hwloc_bitmap_free(set);
	return ret;
}

static void stop_worker(struct worker *w)
{
	if (w->runs)
		pthread_join(w->thread, NULL);
	if (w->size && w->memory && w->memory != MAP_FAILED)
		munmap(w->memory, w->size);
}

/* Each does a little: changes, bytes, rounds. Only a page that is mapped is worth a flush. */
static uint64_t work_shootdown(struct worker *w)
{
	const struct timespec pause = { .tv_nsec = SHOOTDOWN_PAUSE };
	volatile uint8_t *page = w->memory;
	uint64_t changes;

	page[0] = 1;
	page[PAGE] = 1;
	changes = mprotect(w->memory, PAGE, PROT_READ) == 0;
	changes += madvise(w->memory + PAGE, PAGE, MADV_DONTNEED) == 0;
	mprotect(w->memory, PAGE, PROT_READ | PROT_WRITE);
	nanosleep(&pause, NULL);
	return changes;
}

/* A buffer that no cache holds. */
static size_t bandwidth_size(hwloc_topology_t topology)
{
	hwloc_obj_t cache = NULL;
	size_t size = STREAM_MIN;

	while ((cache = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_L3CACHE, cache)))
		if (2 * cache->attr->cache.size > size)
			size = 2 * cache->attr->cache.size;
	return size < STREAM_MAX ? size : STREAM_MAX;
}

/* Plain stores: each line comes in from memory and goes out again. */
static uint64_t work_bandwidth(struct worker *w)
{
	uint8_t *piece = w->memory + w->at;
	const __m128i value = _mm_set1_epi8((char)w->at);

	for (size_t i = 0; i < STREAM_PIECE; i += sizeof(value))
		_mm_store_si128((__m128i *)(void *)(piece + i), value);
	w->at = (w->at + STREAM_PIECE) % (w->size / STREAM_PIECE * STREAM_PIECE);
	return STREAM_PIECE;
}

/* Something for every part that siblings share: multiplier, adders, loads and stores. */
static uint64_t work_sibling(struct worker *w)
{
	uint64_t a = 3, b = 5, c = 7, memory[64];

	(void)w;
	memset(memory, 1, sizeof(memory));
	for (unsigned i = 0; i < SIBLING_STEPS; i++) {
		a = a * 0x9e3779b9 + memory[i % 64];
		b += a ^ c;
		c = (c << 5 | c >> 59) + b;
		memory[(i + 7) % 64] = b;
		__asm__ volatile("" : : "m"(memory));
	}
	__asm__ volatile("" : : "r"(a), "r"(b), "r"(c));
	return 1;
}

/* --- Processes ------------------------------------------------------------------------------ */

/* Time-slices this CPU until it is killed, or the calling thread ends. */
static pid_t load_start(hwloc_topology_t topology, unsigned cpu)
{
	const struct timespec rest = { .tv_nsec = LOAD_BURST };
	pid_t us = getpid(), pid = fork();

	if (pid != 0)
		return pid < 0 ? -errno : pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != us)
		_exit(1);
	/* A reader that waits for the end of our files waits for the cell, not for this. */
	syscall(SYS_close_range, 0u, ~0u, 0u);
	if (pin_this_thread(topology, cpu) < 0)
		_exit(1);
	/* Who has slept goes first on waking: executors lose their CPU at every burst. */
	prctl(PR_SET_TIMERSLACK, 1);
	for (;;) {
		double end = seconds_now() + LOAD_BURST * 1e-9;

		while (seconds_now() < end)
			;
		nanosleep(&rest, NULL);
	}
}

/* --- Wide vectors: some thousand multiply-adds ---------------------------------------------- */

#define BURST(bits, isa, type)                                                                     \
	__attribute__((target(isa))) static void burst_##bits(void)                                \
	{                                                                                          \
		const type factor = _mm##bits##_set1_pd(0.999), term = _mm##bits##_set1_pd(0.001); \
		type sum[8];                                                                       \
                                                                                                   \
		_Pragma("GCC unroll 8") for (unsigned k = 0; k < 8; k++) sum[k] =                  \
			_mm##bits##_set1_pd(k);                                                    \
		for (unsigned i = 0; i < WIDE_STEPS; i++) {                                        \
			_Pragma("GCC unroll 8") for (unsigned k = 0; k < 8; k++) sum[k] =          \
				_mm##bits##_fmadd_pd(sum[k], factor, term);                        \
		}                                                                                  \
		__asm__ volatile("" : : "m"(sum));                                                 \
	}

BURST(512, "avx512f", __m512d)
BURST(256, "avx2,fma", __m256d)

/* --- All of a cell -------------------------------------------------------------------------- */

int provokers_possible(unsigned set, hwloc_topology_t topology, const struct seating *seating,
		       char *reason, size_t size)
{
	if (set & 1u << PROVOKER_SIBLING && placement_sibling(topology, seating) < 0) {
		snprintf(reason, size, "CPU %u has no SMT sibling that is free",
			 seating->executor[0]);
		return -ENOTSUP;
	}
	if (set & 1u << PROVOKER_WIDE && !__builtin_cpu_supports("avx512f") &&
	    !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))) {
		snprintf(reason, size, "the CPU has no AVX2 with FMA");
		return -ENOTSUP;
	}
	return 0;
}

/* A process for each CPU that has executors. */
static int start_loads(struct provokers *p, hwloc_topology_t topology,
		       const struct seating *seating)
{
	hwloc_bitmap_t loaded = hwloc_bitmap_alloc();
	pid_t pid = loaded ? 0 : -ENOMEM;

	for (unsigned i = 0; i < seating->executors && pid >= 0; i++) {
		if (hwloc_bitmap_isset(loaded, seating->executor[i]))
			continue;
		hwloc_bitmap_set(loaded, seating->executor[i]);
		pid = load_start(topology, seating->executor[i]);
		if (pid < 0)
			break;
		p->load[provokers_done(p, PROVOKER_LOAD)] = pid;
		add_done(p, PROVOKER_LOAD, 1);
	}
	hwloc_bitmap_free(loaded);
	return pid < 0 ? pid : 0;
}

/* A CPU without a seat, or the patcher's. */
static unsigned find_cpu(hwloc_topology_t topology, const struct seating *seating)
{
	hwloc_bitmap_t seats = seating_cpus(seating);
	int cpu = -1;

	if (seats &&
	    hwloc_bitmap_andnot(seats, hwloc_topology_get_topology_cpuset(topology), seats) == 0)
		cpu = hwloc_bitmap_first(seats);
	hwloc_bitmap_free(seats);
	return cpu < 0 ? seating->patcher : (unsigned)cpu;
}

int provokers_start(struct provokers **provokers, const struct cell *cell,
		    hwloc_topology_t topology, const struct seating *seating, const uint8_t *site)
{
	struct provokers *p;
	char reason[128];
	int ret = provokers_possible(cell->provokers, topology, seating, reason, sizeof(reason));

	*provokers = NULL;
	if (ret < 0)
		return ret;
	p = aligned_alloc(_Alignof(struct provokers), sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = (struct provokers){
		.set = cell->provokers,
		.part = { [PROVOKER_COLD_BACK] = site + cell->split, [PROVOKER_COLD_FRONT] = site },
		.cpu = find_cpu(topology, seating),
		.of = { [PROVOKER_SHOOTDOWN] = { .work = work_shootdown, .size = SHOOTDOWN_SIZE },
			[PROVOKER_BANDWIDTH] = { .work = work_bandwidth,
						 .size = bandwidth_size(topology) },
			[PROVOKER_SIBLING] = { .work = work_sibling } },
	};
	if (has_provoker(p, PROVOKER_LOAD))
		ret = start_loads(p, topology, seating);
	for (unsigned i = 0; i < PROVOKER_COUNT && ret == 0; i++) {
		p->of[i].all = p;
		if (has_provoker(p, i) && p->of[i].work)
			ret = start_worker(&p->of[i], topology,
					   i == PROVOKER_SIBLING
						   ? (unsigned)placement_sibling(topology, seating)
						   : p->cpu);
	}
	if (ret < 0)
		provokers_stop(p);
	else
		*provokers = p;
	return ret;
}

void provokers_stop(struct provokers *p)
{
	if (!p)
		return;
	atomic_store_explicit(&p->quit, 1, memory_order_relaxed);
	for (unsigned i = 0; i < PROVOKER_COUNT; i++)
		stop_worker(&p->of[i]);
	for (unsigned i = 0; i < provokers_done(p, PROVOKER_LOAD); i++) {
		kill(p->load[i], SIGKILL);
		while (waitpid(p->load[i], NULL, 0) < 0 && errno == EINTR)
			;
	}
	free(p);
}

void provoke_toggle(struct provokers *p)
{
	for (unsigned i = PROVOKER_COLD_BACK; i <= PROVOKER_COLD_FRONT; i++)
		if (has_provoker(p, i)) {
			_mm_clflush(p->part[i]);
			add_done(p, i, 1);
			/* The toggle must not begin before the lines are gone. */
			_mm_mfence();
		}
}

void provoke_round(struct provokers *p)
{
	if (!has_provoker(p, PROVOKER_WIDE))
		return;
	if (__builtin_cpu_supports("avx512f"))
		burst_512();
	else
		burst_256();
	add_done(p, PROVOKER_WIDE, 1);
}
