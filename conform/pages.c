/* SPDX-License-Identifier: MIT */
/* Promises about pages that come, go and change their rights. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ucontext.h>
#include <unistd.h>

#include "conform/child.h"

/* --- Fresh pages ------------------------------------------------------------------------------ */

/* Code on a page that was not there before. NULL: the kernel has none. */
static uint8_t *fresh_page(struct conform_child *c, uint8_t *at, uint64_t trial, int who)
{
	if (mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		return NULL;
	/* A store that is lost leaves what the page before had, as a page that is not new would. */
	if (child_draw_fault(c, FAULT_LOST, who))
		memcpy(at, (const uint8_t[]){ 0xb8, 0xf0, 0xff, 0xff, 0x7f, 0xc3 }, 6);
	else
		child_write(c, at, number_of(trial), (unsigned)trial % PARTS_MOST, who);
	return mprotect(at, PAGE, PROT_READ | PROT_EXEC) < 0 ? NULL : at;
}

/* The same address for a while, each time another page. */
static uint8_t *address_of(const struct conform_child *c, uint64_t trial)
{
	return c->arena + trial / 64 % 64 * PAGE;
}

uint8_t *place_fresh(struct conform_child *c, uint64_t trial)
{
	return fresh_page(c, address_of(c, trial), trial, WRITER);
}

/*
 * A thread maps a page, writes, runs and unmaps it; the other thread does the same at that
 * address, and so likely with the same page of memory.
 */
static bool use_page(struct conform_child *c, uint64_t trial, int who, uint32_t *got)
{
	uint8_t *at;

	child_keep_copy(c);
	at = fresh_page(c, address_of(c, trial), trial, who);
	if (!at)
		return false;
	*got = child_call(c, at, who);
	return munmap(at, PAGE) == 0;
}

void write_reused(struct conform_child *c)
{
	uint32_t got;

	for (uint64_t trial = 0; child_goes_on(c); trial += 2) {
		if (!use_page(c, trial, WRITER, &got))
			return;
		child_judge(c, number_of(trial), got);
		/* Pairs with the acquire of the executor's child_await(). */
		atomic_store_explicit(&c->turn, trial + 1, memory_order_release);
		if (!child_await(c, trial + 2))
			return;
		child_judge(c, number_of(trial + 1),
			    atomic_load_explicit(&c->got, memory_order_relaxed));
	}
}

void execute_reused(struct conform_child *c)
{
	uint32_t got;

	for (uint64_t trial = 1; child_await(c, trial); trial += 2) {
		if (!use_page(c, trial, EXECUTOR, &got))
			return;
		atomic_store_explicit(&c->got, got, memory_order_relaxed);
		/* Pairs with the acquire of the writer's child_await(). */
		atomic_store_explicit(&c->turn, trial + 1, memory_order_release);
	}
}

/* --- A page that becomes executable ----------------------------------------------------------- */

/* Back to the caller, as if nothing had been called. */
static void return_at_once(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	greg_t *regs = uc->uc_mcontext.gregs;

	(void)signal;
	/* A fault of anything but this call is nothing to return from. */
	if ((greg_t)(uintptr_t)info->si_addr != regs[REG_RIP])
		_exit(70);
	regs[REG_RAX] = NUMBER_NONE;
	regs[REG_RIP] = *(greg_t *)regs[REG_RSP];
	regs[REG_RSP] += 8;
}

int prepare_executable(struct conform_child *c)
{
	struct sigaction action = { .sa_sigaction = return_at_once, .sa_flags = SA_SIGINFO };

	if (mprotect(c->arena, PAGE, PROT_READ | PROT_WRITE) < 0)
		return -errno;
	return sigaction(SIGSEGV, &action, NULL) < 0 ? -errno : 0;
}

/*
 * One instruction and a return, so that an executor that stands between the two has its number
 * already.
 *
 *  1. The page loses its right to be run. When mprotect() returns no CPU runs it any more.
 *  2. The number that may be run next is told (release), then the code is written.
 *  3. The page may be run again. The executor, which calls it all the time, gets there by itself.
 */
void write_executable(struct conform_child *c)
{
	for (uint64_t trial = 1; child_goes_on(c); trial++) {
		if (mprotect(c->arena, PAGE, PROT_READ | PROT_WRITE) < 0)
			return;
		/* Pairs with the acquire in execute_executable(). */
		atomic_store_explicit(&c->number, trial, memory_order_release);
		child_write(c, c->arena, number_of(trial), 0, WRITER);
		child_flush_code(c->arena, 6, trial);
		if (mprotect(c->arena, PAGE, PROT_READ | PROT_EXEC) < 0 || !child_await(c, trial))
			return;
		child_count(c, trial);
	}
}

void execute_executable(struct conform_child *c)
{
	while (!child_is_over(c)) {
		uint64_t before = atomic_load_explicit(&c->number, memory_order_acquire), after;
		uint32_t got = child_call(c, c->arena, EXECUTOR);

		after = atomic_load_explicit(&c->number, memory_order_acquire);
		if (got == NUMBER_NONE || !before)
			continue;
		if (got != number_of(before) && got != number_of(after))
			child_fail(c, number_of(after), got);
		atomic_store_explicit(&c->turn, after, memory_order_release);
		/* The writer, which waits for this, may need the CPU. */
		if (c->cell->writer == c->cell->executor)
			sched_yield();
	}
}
