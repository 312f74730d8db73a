/* SPDX-License-Identifier: MIT */
#include "stress/provoke/provoker_work.h"

#include <emmintrin.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#define PAGE		4096u
#define SHOOTDOWN_PAUSE 30000 /* ns */
#define STREAM_PIECE	65536u
#define STREAM_MIN	((size_t)64 << 20)
#define STREAM_MAX	((size_t)1 << 30)
#define SIBLING_STEPS	1000

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	/* Or else the kernel rounds short pauses up by 50 us. */
	prctl(PR_SET_TIMERSLACK, 1);
	while (!atomic_load_explicit(&w->quit, memory_order_relaxed))
		w->work(w);
	return NULL;
}

int worker_start(struct worker *w, hwloc_topology_t topology, unsigned cpu)
{
	hwloc_bitmap_t set;
	int ret;

	if (w->size) {
		w->memory = mmap(NULL, w->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				 -1, 0);
		if (w->memory == MAP_FAILED)
			return -errno;
	}
	ret = -pthread_create(&w->thread, NULL, worker_main, w);
	w->runs = ret == 0;
	if (ret < 0 && w->size)
		munmap(w->memory, w->size);
	set = hwloc_bitmap_alloc();
	if (ret == 0 && !set)
		ret = -ENOMEM;
	if (ret == 0 &&
	    (hwloc_bitmap_only(set, cpu) < 0 ||
	     hwloc_set_thread_cpubind(topology, w->thread, set, HWLOC_CPUBIND_STRICT) < 0))
		ret = -errno;
	hwloc_bitmap_free(set);
	if (ret < 0)
		worker_stop(w);
	return ret;
}

void worker_stop(struct worker *w)
{
	if (!w->runs)
		return;
	atomic_store_explicit(&w->quit, 1, memory_order_relaxed);
	pthread_join(w->thread, NULL);
	if (w->size)
		munmap(w->memory, w->size);
	w->runs = false;
}

static void count_done(struct worker *w, uint64_t more)
{
	atomic_fetch_add_explicit(&w->done, more, memory_order_relaxed);
}

/* Only a page that is mapped at that moment is worth a flush: so touch both first. */
void work_shootdown(struct worker *w)
{
	const struct timespec pause = { .tv_nsec = SHOOTDOWN_PAUSE };
	volatile uint8_t *page = w->memory;

	page[0] = 1;
	page[PAGE] = 1;
	if (mprotect(w->memory, PAGE, PROT_READ) == 0)
		count_done(w, 1);
	if (madvise(w->memory + PAGE, PAGE, MADV_DONTNEED) == 0)
		count_done(w, 1);
	mprotect(w->memory, PAGE, PROT_READ | PROT_WRITE);
	nanosleep(&pause, NULL);
}

size_t bandwidth_size(hwloc_topology_t topology)
{
	hwloc_obj_t cache = NULL;
	size_t size = STREAM_MIN;

	while ((cache = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_L3CACHE, cache)))
		if (2 * cache->attr->cache.size > size)
			size = 2 * cache->attr->cache.size;
	return size < STREAM_MAX ? size : STREAM_MAX;
}

/* Plain stores: each line comes in from memory and goes out again. */
void work_bandwidth(struct worker *w)
{
	uint8_t *piece = w->memory + w->at;
	const __m128i value = _mm_set1_epi8((char)w->at);

	for (size_t i = 0; i < STREAM_PIECE; i += sizeof(value))
		_mm_store_si128((__m128i *)(void *)(piece + i), value);
	w->at = (w->at + STREAM_PIECE) % (w->size / STREAM_PIECE * STREAM_PIECE);
	count_done(w, STREAM_PIECE);
}

/* Something for every part that siblings share: multiplier, adders, loads and stores. */
void work_sibling(struct worker *w)
{
	uint64_t a = 3, b = 5, c = 7, memory[64];

	memset(memory, 1, sizeof(memory));
	for (unsigned i = 0; i < SIBLING_STEPS; i++) {
		a = a * 0x9e3779b9 + memory[i % 64];
		b += a ^ c;
		c = (c << 5 | c >> 59) + b;
		memory[(i + 7) % 64] = b;
		__asm__ volatile("" : : "m"(memory));
	}
	__asm__ volatile("" : : "r"(a), "r"(b), "r"(c));
	count_done(w, 1);
}
