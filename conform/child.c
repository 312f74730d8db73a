/* SPDX-License-Identifier: MIT */
#include "conform/child.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/emit.h"

#define LOOK_EVERY 16u	/* trials between two looks at the clock */
#define CPUS_MOST  8192 /* that Linux can have */
#define SPINS	   2000 /* before a thread that waits lets others run: they may share its CPU */

bool child_hit(struct conform_child *c, enum fault fault, int who)
{
	const struct conform_cell *cell = c->cell;

	if (cell->fault != fault)
		return false;
	/* A fault of one CPU shows in what that CPU does. */
	if (cell->fault_on_one && cell->fault_on != (who == WRITER ? cell->writer : cell->executor))
		return false;
	/* Soon for the first time, however short the cell is. */
	return ++c->chances[who] == 3 || random_next(&c->random[who]) % FAULT_EVERY == 0;
}

/* mov eax, number less its addends; add eax, imm32 ...; ret */
void child_write(struct conform_child *c, uint8_t *at, uint32_t number, unsigned parts, int who)
{
	uint8_t code[CODE_MOST];
	struct emit e = { .at = code };
	uint32_t rest = number;

	for (unsigned i = 0; i < parts; i++)
		rest -= (uint32_t)(size_t)at * (i + 1);
	PUT(&e, 0xb8);
	put(&e, &rest, sizeof(rest));
	for (unsigned i = 0; i < parts; i++) {
		uint32_t addend = (uint32_t)(size_t)at * (i + 1);

		PUT(&e, 0x05);
		put(&e, &addend, sizeof(addend));
	}
	PUT(&e, 0xc3);
	memcpy(c->last, code, e.done);
	if (!child_hit(c, FAULT_LOST, who))
		memcpy(at, code, e.done);
}

void child_keep(struct conform_child *c)
{
	if (c->cell->fault == FAULT_STALE)
		memcpy(c->stale, c->last, CODE_MOST);
}

void child_cool(const uint8_t *at, size_t bytes, uint64_t trial)
{
	if (!(trial & 64))
		return;
	for (size_t i = 0; i < bytes; i += LINE)
		__builtin_ia32_clflush(at + i);
	__builtin_ia32_clflush(at + bytes - 1);
}

uint32_t child_call(struct conform_child *c, uint8_t *at, int who)
{
	uint32_t (*code)(void);

	if (child_hit(c, FAULT_STALE, who))
		at = c->stale;
	memcpy(&code, &at, sizeof(code));
	return code();
}

void child_count(struct conform_child *c, uint64_t trials)
{
	__atomic_store_n(&c->result->trials, trials, __ATOMIC_RELAXED);
}

void child_fail(struct conform_child *c, uint64_t wanted, uint64_t got)
{
	struct conform_result *r = c->result;

	if (r->failures == 0) {
		r->wanted = wanted;
		r->got = got;
		r->until = seconds_now() - c->begin;
	}
	__atomic_store_n(&r->failures, r->failures + 1, __ATOMIC_RELAXED);
}

void child_judge(struct conform_child *c, uint64_t wanted, uint64_t got)
{
	child_count(c, c->result->trials + 1);
	if (got != wanted)
		child_fail(c, wanted, got);
}

bool child_goes_on(struct conform_child *c)
{
	uint64_t trials = c->result->trials;

	if (trials % LOOK_EVERY == 0) {
		atomic_store_explicit(&c->leash->life, trials, memory_order_relaxed);
		if (seconds_now() >= c->deadline ||
		    atomic_load_explicit(&c->leash->stop, memory_order_relaxed))
			atomic_store_explicit(&c->over, true, memory_order_relaxed);
	}
	return !child_is_over(c);
}

bool child_await(struct conform_child *c, uint64_t turn)
{
	for (unsigned spins = 0;; spins++) {
		if (atomic_load_explicit(&c->turn, memory_order_acquire) == turn)
			return true;
		if (child_is_over(c))
			return false;
		if (spins < SPINS)
			__builtin_ia32_pause();
		else
			sched_yield();
		/* A partner that is gone leaves the writer to look at the clock. */
		if (spins % (1u << 20) == (1u << 20) - 1 && seconds_now() >= c->deadline + 1)
			return false;
	}
}

/* --- The child -------------------------------------------------------------------------------- */

static int pin_to(unsigned cpu)
{
	cpu_set_t set[CPUS_MOST / CPU_SETSIZE] = { 0 };

	CPU_SET_S(cpu, sizeof(set), set);
	return sched_setaffinity(0, sizeof(set), set) < 0 ? -errno : 0;
}

static void *run_executor(void *arg)
{
	struct conform_child *c = arg;

	if (pin_to(c->cell->executor) == 0)
		c->cell->guarantee->execute(c);
	/* The writer does not wait for an executor that could not be put where it belongs. */
	atomic_store_explicit(&c->over, true, memory_order_relaxed);
	return NULL;
}

static void *make_traffic(void *arg)
{
	struct conform_child *c = arg;
	size_t size = 8u << 20;
	uint8_t *some = malloc(size), *others = malloc(size);

	if (some && others && pin_to(c->cell->load_on) == 0) {
		memset(some, 1, size);
		while (!child_is_over(c))
			memcpy(others, some, size);
	}
	free(some);
	free(others);
	return NULL;
}

static int try_it(struct conform_child *c)
{
	const struct guarantee *g = c->cell->guarantee;
	pthread_t thread, traffic;
	bool loaded;
	int ret;

	c->arena = mmap(NULL, ARENA + 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c->arena == MAP_FAILED)
		return -errno;
	c->stale = c->arena + ARENA + PAGE;
	memcpy(c->last, (const uint8_t[]){ 0xb8, 0xf0, 0xff, 0xff, 0x7f, 0xc3 }, 6);
	memcpy(c->stale, c->last, CODE_MOST);
	c->begin = seconds_now();
	ret = pin_to(c->cell->writer);
	if (ret == 0 && g->prepare)
		ret = g->prepare(c);
	if (ret == 0 && g->threads > 1)
		ret = -pthread_create(&thread, NULL, run_executor, c);
	if (ret < 0)
		return ret;
	c->deadline = seconds_now() + c->cell->seconds;
	loaded = c->cell->loaded && pthread_create(&traffic, NULL, make_traffic, c) == 0;
	g->write(c);
	atomic_store_explicit(&c->over, true, memory_order_relaxed);
	if (loaded)
		pthread_join(traffic, NULL);
	if (g->threads > 1)
		pthread_join(thread, NULL);
	return 0;
}

struct shared_promise {
	const struct conform_cell *cell; /* as the child has it */
	struct leash leash;
	struct conform_result result;
};

static void run_inside(void *arg)
{
	struct shared_promise *s = arg;
	struct conform_child c = {
		.cell = s->cell,
		.leash = &s->leash,
		.result = &s->result,
		.random = { s->cell->seed, ~s->cell->seed },
	};

	isolate_finish(&s->leash, try_it(&c), &s->result.error, &s->result.outcome);
}

int conform_run(const struct conform_cell *cell, const struct run_options *options,
		struct conform_result *result)
{
	struct shared_promise *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct isolated what = { .inside = run_inside, .arg = s, .parts = 1, .options = options };
	struct ending ending;
	int ret;

	if (s == MAP_FAILED)
		return -errno;
	s->cell = cell;
	what.leash = &s->leash;
	ret = isolate(&what, &ending);
	*result = s->result;
	munmap(s, sizeof(*s));
	if (ret < 0)
		return ret;
	result->seconds = ending.seconds;
	if (!ending.finished) {
		result->outcome = ending.outcome;
		result->signal = ending.signal;
		result->failures += ending.outcome == OUTCOME_CRASH;
		result->trials += ending.outcome == OUTCOME_CRASH;
	}
	return 0;
}
