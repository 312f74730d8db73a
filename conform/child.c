/* SPDX-License-Identifier: MIT */
#include "conform/child.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/emit.h"

#define LOOK_EVERY 16u	/* trials between two looks at the clock */
#define SPINS	   2000 /* before a thread that waits lets others run: they may share its CPU */
#define LATE	   5.0	/* seconds beyond its time, for an executor that has not run yet */

bool child_draw_fault(struct conform_child *c, enum fault fault, int who)
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
	if (!child_draw_fault(c, FAULT_LOST, who))
		memcpy(at, code, e.done);
}

void child_keep_copy(struct conform_child *c)
{
	if (c->cell->fault == FAULT_STALE)
		memcpy(c->stale, c->last, CODE_MOST);
}

void child_flush_code(const uint8_t *at, size_t bytes, uint64_t trial)
{
	if (!(trial & 64))
		return;
	for (size_t i = 0; i < bytes; i += LINE)
		__builtin_ia32_clflush(at + i);
	__builtin_ia32_clflush(at + bytes - 1);
}

uint32_t child_call(struct conform_child *c, uint8_t *at, int who)
{
	_Atomic(uint64_t) *calls = &c->called[who].calls;
	uint32_t (*code)(void), got;

	if (child_draw_fault(c, FAULT_STALE, who))
		at = c->stale;
	memcpy(&code, &at, sizeof(code));
	got = code();
	atomic_store_explicit(calls, atomic_load_explicit(calls, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	return got;
}

static uint64_t count_calls(struct conform_child *c, int who)
{
	return atomic_load_explicit(&c->called[who].calls, memory_order_relaxed);
}

/* The first error of a thread counts. */
static void note_error(struct conform_child *c, int error)
{
	int none = 0;

	if (error < 0)
		atomic_compare_exchange_strong(&c->error, &none, error);
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
	bool alone = c->cell->guarantee->threads == 1;

	if (trials % LOOK_EVERY == 0) {
		double late = seconds_now() - c->deadline;

		atomic_store_explicit(&c->leash->life, trials, memory_order_relaxed);
		if ((late >= 0 && (alone || count_calls(c, EXECUTOR))) || late >= LATE ||
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
		if (spins % (1u << 20) == (1u << 20) - 1 && seconds_now() >= c->deadline + LATE)
			return false;
	}
}

/* --- The child -------------------------------------------------------------------------------- */

static void pin_to(struct conform_child *c, unsigned cpu)
{
	if (isolate_pin(cpu) < 0)
		note_error(c, CONFORM_UNSEATED);
}

/* All begin when each thread stands on its CPU. False: one does not. */
static bool await_others(struct conform_child *c)
{
	pthread_barrier_wait(&c->ready);
	return atomic_load(&c->error) == 0;
}

/* The kernel moves the threads of a CPU that goes offline. */
static void check_seat(struct conform_child *c, unsigned cpu)
{
	if (sched_getcpu() != (int)cpu)
		note_error(c, CONFORM_UNSEATED);
}

static void *run_executor(void *arg)
{
	struct conform_child *c = arg;

	pin_to(c, c->cell->executor);
	if (await_others(c))
		c->cell->guarantee->execute(c);
	check_seat(c, c->cell->executor);
	return NULL;
}

static void *make_traffic(void *arg)
{
	struct conform_child *c = arg;
	size_t size = 8u << 20;
	uint8_t *some = malloc(size), *others = malloc(size);

	pin_to(c, c->cell->load_on);
	note_error(c, some && others ? 0 : -ENOMEM);
	if (await_others(c)) {
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
	bool apart = g->threads > 1, loaded = c->cell->loaded;
	uint64_t calls, *trials = &c->result->trials;
	pthread_t thread, traffic;
	int ret;

	c->arena = mmap(NULL, ARENA + 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c->arena == MAP_FAILED)
		return -errno;
	c->stale = c->arena + ARENA + PAGE;
	memcpy(c->last, (const uint8_t[]){ 0xb8, 0xf0, 0xff, 0xff, 0x7f, 0xc3 }, 6);
	memcpy(c->stale, c->last, CODE_MOST);
	pin_to(c, c->cell->writer);
	ret = g->prepare ? g->prepare(c) : 0;
	if (ret == 0)
		ret = -pthread_barrier_init(&c->ready, NULL, 1u + apart + loaded);
	/* One that was started waits for the others; the end of the child ends it. */
	if (ret == 0 && apart)
		ret = -pthread_create(&thread, NULL, run_executor, c);
	if (ret == 0 && loaded)
		ret = -pthread_create(&traffic, NULL, make_traffic, c);
	if (ret < 0)
		return ret;
	if (await_others(c)) {
		c->begin = seconds_now();
		c->deadline = c->begin + c->cell->seconds;
		g->write(c);
	}
	atomic_store_explicit(&c->over, true, memory_order_relaxed);
	check_seat(c, c->cell->writer);
	if (loaded)
		pthread_join(traffic, NULL);
	if (apart)
		pthread_join(thread, NULL);
	calls = count_calls(c, WRITER) + count_calls(c, EXECUTOR);
	if (apart && !count_calls(c, EXECUTOR) && !atomic_load(&c->leash->stop))
		note_error(c, CONFORM_IDLE);
	/* A trial counts only if a thread ran its code. */
	*trials = *trials < calls ? *trials : calls;
	return atomic_load(&c->error);
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
