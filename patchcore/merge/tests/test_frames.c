/* SPDX-License-Identifier: MIT */
/*
 * The frames of signal handlers are found on every kind of stack.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <cmocka.h>

#include "patchcore/merge/frames.h"
#include "patchcore/tests/child.h"

static struct frames frames;
static struct frames_search search;
/* volatile: the compiler believes that raise() calls no function of this file. */
static volatile uintptr_t outer_pc;	  /* where each handler has interrupted: raise() */
static volatile unsigned depth, handlers; /* nested still to come, and in all */

static int visit(struct frames_inside *inside, bool move)
{
	const struct frames_places places = { .inside = inside, .n = 1 };

	return frames_visit(&frames, &search, (uintptr_t)__builtin_frame_address(0), &places, move);
}

static int around(uintptr_t pc, uintptr_t before, uintptr_t behind, bool move)
{
	struct frames_inside inside = { .start = pc - before, .end = pc + behind };

	return visit(&inside, move);
}

static void look_around(void)
{
	MUST(around(outer_pc, 1, 1, false) == (int)handlers);
	MUST(around(outer_pc, 0, 1, false) == 0);
	MUST(around(outer_pc, 1, 0, false) == 0);
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	(void)info;
	outer_pc = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	if (--depth)
		raise(signal == SIGUSR1 ? SIGUSR2 : SIGUSR1);
	else
		look_around();
}

static void handle(int signal, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags };

	MUST(sigaction(signal, &action, NULL) == 0);
}

static char alternate_stack[128 * 1024];

static void use_alternate(void)
{
	stack_t alternate = { .ss_sp = alternate_stack, .ss_size = sizeof(alternate_stack) };

	MUST(sigaltstack(&alternate, NULL) == 0);
}

/* Two handlers, the first of them on a stack of its own or not, the second on the same. */
static void nested(const void *arg)
{
	const int flags = *(const int *)arg;

	use_alternate();
	handle(SIGUSR1, on_signal, flags);
	handle(SIGUSR2, on_signal, flags);
	frames_learn(&frames);
	for (unsigned i = 1; i <= 2; i++) {
		outer_pc = 0;
		depth = handlers = i;
		raise(SIGUSR1);
		MUST(outer_pc && !depth);
	}
}

static void test_nested(void **state)
{
	static const int here = 0, alternate = SA_ONSTACK;

	(void)state;
	child_must_pass(nested, &here);
	child_must_pass(nested, &alternate);
}

/* The first on the thread's stack, the second on another, which leads back to it. */
static void from_stack_to_stack(const void *arg)
{
	(void)arg;
	use_alternate();
	handle(SIGUSR1, on_signal, 0);
	handle(SIGUSR2, on_signal, SA_ONSTACK);
	frames_learn(&frames);
	depth = handlers = 2;
	raise(SIGUSR1);
	MUST(outer_pc && !depth);
}

extern char at_int3[], at_landing[];
static volatile bool landed;

static void on_trap(int signal, siginfo_t *info, void *context)
{
	uintptr_t behind = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	struct frames_inside door = { .start = behind - 1, .end = behind + 1, .doors = 1 };

	MUST(signal == SIGTRAP && info->si_code == SI_KERNEL && behind == (uintptr_t)at_int3 + 1);
	/* It may go back to the INT3, so that is not said to be its place, if it is one of ours. */
	MUST(visit(&door, false) == 0);
	MUST(around(behind, 1, 1, false) == 1);
	MUST(around(behind, 1, (uintptr_t)at_landing - behind, true) == 1);
}

static void run_int3(void)
{
	int here = 0;

	__asm__ volatile(".globl at_int3, at_landing\n"
			 "at_int3: int3\n"
			 "ud2\n"
			 "at_landing: movl $1, %0"
			 : "+r"(here));
	landed = here;
}

/* Moved: the thread goes on at the end, here over an instruction that would kill it. */
static void moved(const void *arg)
{
	(void)arg;
	handle(SIGTRAP, on_trap, 0);
	frames_learn(&frames);
	run_int3();
	MUST(landed);
}

/* Without a restorer that is known there are no frames. */
static void none_known(const void *arg)
{
	struct frames_inside all = { .end = UINTPTR_MAX };
	const struct frames_places places = { .inside = &all, .n = 1 };

	(void)arg;
	MUST(visit(&all, false) == 0);
	/* Nor on a stack that cannot be read. */
	handle(SIGUSR1, on_signal, 0);
	frames_learn(&frames);
	MUST(frames.count >= 1);
	MUST(frames_visit(&frames, &search, 4096, &places, false) == 0);
	MUST(frames_visit(&frames, &search, 0, &places, false) == 0);
	child_filter(SYS_process_vm_readv, 0, 0, SECCOMP_RET_ERRNO | EPERM);
	MUST(visit(&all, false) == -EACCES);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nested),
		child_unit_test(from_stack_to_stack),
		child_unit_test(moved),
		child_unit_test(none_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
