/* SPDX-License-Identifier: MIT */
/* The frames of signal handlers are found on every kind of stack. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <cmocka.h>

#include "patchcore/merge/frames.h"
#include "patchcore/merge/others.h"
#include "patchcore/tests/child.h"

static struct frames frames;
static struct frames_search search;
/* volatile: the compiler believes that raise() calls no function of this file. */
static volatile uintptr_t outer_pc;	  /* where each handler has interrupted: raise() */
static volatile unsigned depth, handlers; /* nested still to come, and in all */

static int visit(struct frames_inside *inside, bool move)
{
	const struct frames_places places = { .inside = inside, .n = 1 };

	const struct frames_stack stack = { .sp = (uintptr_t)__builtin_frame_address(0) };

	return frames_visit(&frames, &search, &stack, &places, move ? FRAMES_MOVE : FRAMES_COUNT);
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
static volatile bool landed, is_ours;

static void on_trap(int signal, siginfo_t *info, void *context)
{
	uintptr_t behind = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	struct frames_inside door = { .start = behind - 1, .end = behind + 1, .doors = 1 };

	MUST(signal == SIGTRAP && info->si_code == SI_KERNEL && behind == (uintptr_t)at_int3 + 1);
	/* It may go back to the INT3, so that is not said to be its place, if it is one of ours. */
	MUST(visit(&door, false) == !is_ours);
	MUST(!is_ours || visit(&door, true) == 0);
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

/*
 * Moved: the thread goes on at the end, here over an instruction that would kill it. A frame with
 * the library's restorer is taken for one of its own handlers'.
 */
static void moved(const void *arg)
{
	struct kernel_action action = { .handler = (uintptr_t)on_trap,
					.flags = SA_SIGINFO | KERNEL_RESTORER,
					.restorer = (uintptr_t)kernel_sigreturn };

	is_ours = *(const bool *)arg;
	handle(SIGTRAP, on_trap, 0);
	if (is_ours)
		MUST(kernel_action(SIGTRAP, &action, NULL) == 0);
	frames_learn(&frames);
	run_int3();
	MUST(landed);
}

static void test_moved(void **state)
{
	static const bool programs = false, ours = true;

	(void)state;
	child_must_pass(moved, &programs);
	child_must_pass(moved, &ours);
}

/* --- Where a stack ends ----------------------------------------------------------------------- */

#define WORDS 4096u /* of 8 bytes */

static uintptr_t words[WORDS];

/* A frame at this word, which has interrupted this. */
static void plant_at(uintptr_t *word, uintptr_t pc, uintptr_t sp)
{
	struct frames_frame frame = { .restorer = frames.restorers[0] };
	uintptr_t *registers = (uintptr_t *)(frame.context + sizeof(unsigned long) +
					     sizeof(void *) + sizeof(stack_t));

	registers[REG_RIP] = pc;
	registers[REG_RSP] = sp;
	memcpy(word, &frame, sizeof(frame));
}

static void plant(size_t at, uintptr_t pc, uintptr_t sp)
{
	plant_at(&words[at], pc, sp);
}

static int search_from(struct frames_stack stack)
{
	struct frames_inside inside = { .start = 0x1000, .end = 0x1008 };
	const struct frames_places places = { .inside = &inside, .n = 1 };

	return frames_visit(&frames, &search, &stack, &places, FRAMES_COUNT);
}

static uintptr_t word(size_t at)
{
	return (uintptr_t)&words[at];
}

/* Each end that is known holds, and of two the first. */
static void ends(const void *arg)
{
	(void)arg;
	handle(SIGUSR1, on_signal, 0);
	frames_learn(&frames);
	plant(1000, 0x1004, word(1100));
	MUST(search_from((struct frames_stack){ .sp = word(10) }) == 1);
	MUST(search_from((struct frames_stack){ .sp = word(10), .top = word(1001) }) == 1);
	MUST(search_from((struct frames_stack){ .sp = word(10), .top = word(1000) }) == 0);
	/* A list that lies below is not at the top of this stack. */
	MUST(search_from((struct frames_stack){ .sp = word(10), .top = word(5) }) == 1);
	MUST(search_from((struct frames_stack){
		     .sp = word(10), .alternate = word(0), .alternate_end = word(1000) }) == 0);
	MUST(search_from((struct frames_stack){
		     .sp = word(10), .alternate = word(0), .alternate_end = word(1001) }) == 1);
	MUST(search_from((struct frames_stack){
		     .sp = word(10), .alternate = word(20), .alternate_end = word(1000) }) == 1);
	/* A handler that has returned to its restorer has taken the address from the stack. */
	MUST(search_from((struct frames_stack){ .sp = word(1001) }) == 1);
	MUST(search_from((struct frames_stack){ .sp = word(1002) }) == 0);
	/* No copies are left behind. */
	for (size_t i = 0; i < sizeof(search) / sizeof(uintptr_t); i++)
		MUST(((uintptr_t *)&search)[i] != frames.restorers[0]);
}

/* An alternate stack in the middle of the thread's own: its frame leads to the rest of that. */
static void stack_within(const void *arg)
{
	const struct frames_stack stack = {
		.sp = word(10), .top = word(WORDS), .alternate = word(0), .alternate_end = word(100)
	};
	char *empty = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)arg;
	/* Stacks in there end with it: nothing can be read behind. */
	MUST(empty != MAP_FAILED && mprotect(empty + 4096, 4096, PROT_NONE) == 0);
	handle(SIGUSR1, on_signal, 0);
	frames_learn(&frames);
	plant(20, 0x2000, word(200));
	plant(300, 0x1004, word(400));
	MUST(search_from(stack) == 1);
	/* More of them than are searched. */
	plant(20, 0x2000, word(1000));
	for (unsigned i = 0; i < FRAMES_STACKS; i++)
		plant(1000 + 100 * i, 0x2000, (uintptr_t)empty + 16 * i);
	MUST(search_from(stack) == 0);
	for (unsigned i = 0; i < FRAMES_STACKS; i++)
		plant(1000 + 100 * i, 0x2000, 4096 * (2 * FRAMES_STACKS - i));
	MUST(search_from(stack) == -ELOOP);
}

#define HOLES 4 /* stacks of two pages, and one that cannot be read behind each */

/*
 * Stacks that lie close to each other, with no more than a page between: each leads to the one that
 * row says, 0: to nothing, and the last in the row has interrupted the code.
 */
static void close_stacks(const void *arg)
{
	static const unsigned rows[][HOLES] = {
		{ 0 },		{ 0, 1 },	{ 1, 0 },	{ 0, 3 },	{ 3, 1 },
		{ 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 0, 3, 1, 2 }, { 1, 3, 0, 2 }, { 2, 0, 3, 1 },
	};
	static const unsigned lens[] = { 1, 2, 2, 2, 2, 4, 4, 4, 4, 4 };
	const size_t size = 3 * 4096;
	uint8_t *base = mmap(NULL, HOLES * size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)arg;
	handle(SIGUSR1, on_signal, 0);
	frames_learn(&frames);
	for (unsigned i = 0; i < HOLES; i++)
		MUST(mprotect(base + i * size + 8192, 4096, PROT_NONE) == 0);
	for (unsigned row = 0; row < sizeof(lens) / sizeof(*lens); row++) {
		/* Used to the last byte, or less: the stack's first word is at sp, or far below. */
		for (unsigned used = 0; used <= 4096; used += 4096) {
			for (unsigned i = 0; i < HOLES; i++)
				memset(base + i * size, 0, 8192);
			for (unsigned i = 0; i < lens[row]; i++) {
				uint8_t *at = base + rows[row][i] * size + used;
				bool last = i + 1 == lens[row];
				uintptr_t next =
					last ? 0 : (uintptr_t)(base + rows[row][i + 1] * size);

				plant_at((uintptr_t *)(void *)(at + 2048), last ? 0x1004 : 0x2000,
					 last ? (uintptr_t)at + 3000 : next + used);
			}
			MUST(search_from((struct frames_stack){
				     .sp = (uintptr_t)base + rows[row][0] * size + used }) == 1);
		}
	}
}

/* A thread's own frame of a look is live as far as its handler's stack reaches, and void above. */
static void frame_of_look(const void *arg)
{
	struct frames_frame *frame = (void *)&words[1000];
	siginfo_t *info = (void *)frame->info;

	(void)arg;
	handle(SIGUSR1, on_signal, 0);
	frames_learn(&frames);
	MUST(kernel_action(SIGUSR2,
			   &(struct kernel_action){ .handler = (uintptr_t)SIG_IGN,
						    .flags = KERNEL_RESTORER,
						    .restorer = (uintptr_t)kernel_sigreturn },
			   NULL) == 0);
	frames_learn(&frames);
	plant(1000, 0x1004, word(1100));
	MUST(search_from((struct frames_stack){ .sp = word(990) }) == 1);
	frame->restorer = (uintptr_t)kernel_sigreturn;
	info->si_code = OTHERS_CODE;
	info->si_value.sival_ptr = (void *)(uintptr_t)(OTHERS_MAGIC << 32);
	MUST(search_from((struct frames_stack){ .sp = word(990) }) == 0);
	MUST(search_from((struct frames_stack){ .sp = word(990), .looks_end = word(1000) }) == 0);
	MUST(search_from((struct frames_stack){ .sp = word(990), .looks_end = word(1001) }) == 1);
}

/* A thread's own data are above its stack; of the first thread they are elsewhere. */
static void *look_up(void *arg)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), top = frames_top(0);

	MUST(top > here && top - here < 8192);
	MUST(top == frames_top((pid_t)syscall(SYS_gettid)));
	return arg;
}

static void tops(const void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;

	(void)arg;
	MUST(pthread_attr_init(&attr) == 0);
	MUST(pthread_create(&thread, NULL, look_up, NULL) == 0 && !pthread_join(thread, NULL));
	MUST(pthread_attr_setstack(&attr, alternate_stack, sizeof(alternate_stack)) == 0);
	MUST(pthread_create(&thread, &attr, look_up, NULL) == 0 && !pthread_join(thread, NULL));
	MUST(frames_top(1 << 22) == 0);
}

/* --- Threads that cannot be in a handler ------------------------------------------------------ */

static void may_be(const void *arg)
{
	(void)arg;
	int known = frames_learn(&frames), more;

	/* Whether or not the signal has a handler: it may have had one. */
	MUST(!frames_may_be(&frames, 0) && frames_may_be(&frames, kernel_bit(SIGUSR1)));
	handle(SIGUSR2, on_signal, SA_NODEFER);
	more = frames_learn(&frames);
	MUST(more > known && frames_may_be(&frames, 0));
	MUST(kernel_action(SIGUSR2, &(struct kernel_action){ .handler = 0 }, NULL) == 0);
	MUST(frames_learn(&frames) == more && frames_may_be(&frames, 0));
	/* There is an end to what is kept. */
	for (unsigned i = 0; i < KERNEL_SIGNALS; i++)
		frames.restorers[i] = i + 1;
	handle(SIGUSR1, on_signal, 0);
	MUST(frames_learn(&frames) == -EACCES);
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
	MUST(frames.restorers[0]);
	MUST(frames_visit(&frames, &search, &(struct frames_stack){ .sp = 4096 }, &places,
			  FRAMES_COUNT) == 0);
	MUST(frames_visit(&frames, &search, &(struct frames_stack){ .sp = 0 }, &places,
			  FRAMES_COUNT) == 0);
	child_filter(SYS_process_vm_readv, 0, 0, SECCOMP_RET_ERRNO | EPERM);
	MUST(visit(&all, false) == -EACCES);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nested),	child_unit_test(from_stack_to_stack),
		cmocka_unit_test(test_moved),	child_unit_test(ends),
		child_unit_test(stack_within),	child_unit_test(close_stacks),
		child_unit_test(frame_of_look), child_unit_test(tops),
		child_unit_test(may_be),	child_unit_test(none_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
