/* SPDX-License-Identifier: MIT */
/*
 * Probes on small stacks, such as coroutines have: how much of it they need, with functions that
 * need much; and in handlers, on alternate stacks, in children and in threads that end.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "patchcore/tests/child.h"
#include "probes/core/entry.h"
#include "probes/include/fastinst.h"
#include "probes/tests/sample.h"

#define PAGE	4096
#define SMALL	2048
#define PAINT	0xa5
#define LARGE	32768 /* that the probe function needs */
#define NEED	320   /* as fastinst.h says */
#define THREADS 100

SAMPLE(probed, 3)
SAMPLE(plain, 3)
SAMPLE(other, 3)

static uint32_t probed_id, other_id;
static volatile unsigned called;

static void (*volatile within)(void); /* what the probe function does */

static void need_much(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	volatile char large[LARGE];

	(void)id;
	(void)site;
	(void)regs;
	(void)data;
	memset((char *)large, 1, sizeof(large));
	called++;
	if (within)
		within();
}

static void start_probes(void)
{
	MUST(!fi_init());
	MUST(fi_find("probed", &probed_id, 1) == 1);
	MUST(fi_find("other", &other_id, 1) == 1);
}

/* --- Small stacks ----------------------------------------------------------------------------- */

void call_on(void *top, void (*function)(void));
asm(".pushsection .text\n"
    ".globl call_on\n"
    "call_on:\n"
    "	push %rbp\n"
    "	mov %rsp, %rbp\n"
    "	mov %rdi, %rsp\n"
    "	call *%rsi\n"
    "	mov %rbp, %rsp\n"
    "	pop %rbp\n"
    "	ret\n"
    ".popsection\n");

static void call_plain(void)
{
	plain(1, 2, 3);
}

static void call_probed(void)
{
	if (probed(1, 2, 3) != 8)
		abort();
}

static uint8_t *make_stack(size_t size)
{
	uint8_t *map =
		mmap(NULL, PAGE + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(map != MAP_FAILED);
	MUST(!mprotect(map, PAGE, PROT_NONE));
	return map + PAGE;
}

/* How much of a stack it needs. */
static size_t measure(void (*function)(void))
{
	uint8_t *stack = make_stack(4 * PAGE);
	size_t untouched = 0;

	memset(stack, PAINT, 4 * PAGE);
	call_on(stack + 4 * PAGE, function);
	while (stack[untouched] == PAINT)
		untouched++;
	munmap(stack - PAGE, 5 * PAGE);
	return 4 * PAGE - untouched;
}

static void *measure_here(void *needs)
{
	size_t *need = needs, bare = measure(call_plain);

	need[0] = measure(call_probed) - bare;
	need[1] = measure(call_probed) - bare;
	return NULL;
}

/* The first probe of a thread, and the next. */
static void measure_thread(size_t need[2])
{
	pthread_t thread;

	MUST(!pthread_create(&thread, NULL, measure_here, need));
	MUST(!pthread_join(thread, NULL));
	dprintf(2, "%zu bytes at first, then %zu\n", need[0], need[1]);
	MUST(need[0] && need[0] <= NEED);
	MUST(need[1] && need[1] <= NEED);
}

/* Not one of which a copy is run: it calls another. */
void note_stack(uint32_t id, void *site, const struct fi_regs *regs, void *data);
uintptr_t noted_stack;
asm(".pushsection .text\n"
    ".globl note_stack\n"
    "note_stack:\n"
    "	mov %rsp, noted_stack(%rip)\n"
    "	jmp getppid@PLT\n"
    ".popsection\n");

/* As syscall(3) reads what would be its seventh argument. */
static void an_argument_can_be_read(const void *arg)
{
	uint8_t *stack = make_stack(4 * PAGE);

	(void)arg;
	start_probes();
	MUST(!fi_activate_how(&probed_id, 1, note_stack, FI_KEEPS_VECTORS));
	call_on(stack + SMALL, call_probed);
	MUST(noted_stack - (uintptr_t)block_of_thread->stack < sizeof(block_of_thread->stack));
	MUST(noted_stack + 16 <=
	     (uintptr_t)(block_of_thread->stack + sizeof(block_of_thread->stack)));
}

static void little_is_needed(const void *arg)
{
	fi_function *const functions[] = { NULL, need_much, need_much };
	size_t need[2];

	(void)arg;
	start_probes();
	for (int i = 0; i < 3; i++) {
		MUST(!fi_activate_how(&probed_id, 1, functions[i], i == 2 ? FI_KEEPS_VECTORS : 0));
		measure_thread(need);
		measure_here(need);
		MUST(need[1] && need[1] <= NEED);
	}
	MUST(called == 8);
	MUST(!fi_lost(probed_id));
}

static void *call_small(void *data)
{
	uint8_t *stack = make_stack(PAGE);

	/* In the middle of a page: the stack ends where it is full, not at a fault. */
	memset(stack, PAINT, PAGE);
	call_on(stack + SMALL + 512, call_probed);
	MUST(stack[SMALL - PAGE / 4] == PAINT);
	munmap(stack - PAGE, 2 * PAGE);
	return data;
}

/* Its block and stack are the next one's. */
static void threads_come_and_go(const void *arg)
{
	pthread_t thread;

	(void)arg;
	start_probes();
	MUST(!fi_activate(probed_id, need_much));
	for (int i = 0; i < THREADS; i++) {
		MUST(!pthread_create(&thread, NULL, call_small, NULL));
		MUST(!pthread_join(thread, NULL));
	}
	MUST(called == THREADS);
	MUST(fi_count(probed_id) == THREADS);
}

/* --- Signals ---------------------------------------------------------------------------------- */

static volatile unsigned handled;

static void raise_one(void)
{
	raise(SIGUSR1);
}

static void on_signal(int number)
{
	(void)number;
	handled++;
	if (probed(1, 2, 3) != 8 || other(1, 2, 3) != 8)
		abort();
}

static void set_handler(int number, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	MUST(!sigaction(number, &action, NULL));
}

/* A handler in the midst of a probe function counts there, and calls none. */
static void handlers_come_in_between(const void *arg)
{
	(void)arg;
	start_probes();
	within = raise_one;
	set_handler(SIGUSR1, on_signal, 0);
	MUST(!fi_activate(probed_id, need_much));
	MUST(!fi_activate(other_id, NULL));
	call_small(NULL);
	call_small(NULL);
	MUST(called == 2);
	MUST(handled == 2);
	MUST(fi_count(probed_id) == 4);
	MUST(fi_lost(probed_id) == 2);
	MUST(fi_count(other_id) == 2);
}

static void on_alternate(int number)
{
	volatile char mine[256];

	memset((char *)mine, number, sizeof(mine));
	call_probed();
	for (size_t i = 0; i < sizeof(mine); i++)
		if (mine[i] != number)
			abort();
}

/* The kernel puts a frame on top of the alternate stack if the thread seems to have left it. */
static void alternate_stacks_are_not_left(const void *arg)
{
	static uint8_t alternate[16 * PAGE + LARGE];
	const stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };

	(void)arg;
	start_probes();
	MUST(!sigaltstack(&stack, NULL));
	within = raise_one;
	set_handler(SIGUSR1, on_signal, SA_ONSTACK);
	set_handler(SIGUSR2, on_alternate, SA_ONSTACK);
	MUST(!fi_activate(probed_id, need_much));
	MUST(!fi_activate(other_id, NULL));
	for (int i = 0; i < 100; i++)
		raise(SIGUSR2);
	MUST(called == 100);
	MUST(handled == 100);
}

/* --- Jumps and children ----------------------------------------------------------------------- */

static jmp_buf back;

static void jump_out(void)
{
	call_probed();
	longjmp(back, 1);
}

static void a_stack_may_be_left_by_longjmp(const void *arg)
{
	uint8_t *stack = make_stack(PAGE);
	volatile int n = 0;

	(void)arg;
	start_probes();
	MUST(!fi_activate(probed_id, need_much));
	if (setjmp(back) < 0 || n++ < 100)
		call_on(stack + PAGE, jump_out);
	MUST(called == 100);
	MUST(fi_count(probed_id) == 100);
}

static pid_t child;

static void fork_once(void)
{
	child = fork();
}

/* The child goes on in the probe function, on that stack. */
static void a_probe_function_may_fork(const void *arg)
{
	int status;

	(void)arg;
	start_probes();
	within = fork_once;
	MUST(!fi_activate(probed_id, need_much));
	call_small(NULL);
	within = NULL;
	call_small(NULL);
	if (!child)
		_exit(called == 2 && fi_count(probed_id) == 1 ? 0 : 1);
	MUST(waitpid(child, &status, 0) == child);
	MUST(!status);
	MUST(fi_count(probed_id) == 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		child_unit_test(an_argument_can_be_read),
		child_unit_test(little_is_needed),
		child_unit_test(threads_come_and_go),
		child_unit_test(handlers_come_in_between),
		child_unit_test(alternate_stacks_are_not_left),
		child_unit_test(a_stack_may_be_left_by_longjmp),
		child_unit_test(a_probe_function_may_fork),
	};

	/* They put frames of their own on the stack. */
	if (CHILD_ASAN || CHILD_TSAN)
		return CHILD_SKIPPED;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
