/* SPDX-License-Identifier: MIT */
/*
 * A look sees every handler that will go back inside, and takes nothing else for one: old frames,
 * what lies beyond the end of a stack, threads that sleep with signals blocked.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/mapping.h"
#include "patchcore/merge/tests/over.h"
#include "patchcore/syscall/kernel_signal.h"
#include "patchcore/tests/asleep.h"

#define MANY 100u
#define WIDE 65536u /* bytes of a buffer that is never written */

static int ends[2], never[2];

/* xor al, 0; read() of a byte from a pipe; an addition: a thread that sleeps there is inside. */
#define GOT_READ 0x41u

static void put_read(void)
{
	static const uint8_t code[LEN + 1] = { 0x34, 0x00, 0x0f, 0x05, 0x04, 0x40 };
	static char byte;
	uint8_t *at;
	uint64_t buffer = (uintptr_t)&byte;

	over_begin();
	over_put_site(over_place(2));
	MUST(pipe(ends) == 0 && pipe(never) == 0);
	at = site - 22;
	/* mov edi, from; movabs rsi, buffer; mov edx, 1; xor eax, eax */
	*at++ = 0xbf;
	memcpy(at, &ends[0], 4);
	memcpy(at + 4, "\x48\xbe", 2);
	memcpy(at + 6, &buffer, 8);
	memcpy(at + 14, "\xba\x01\0\0\0", 5);
	memcpy(at + 19, "\x31\xc0", 2);
	memcpy(site, code, sizeof(code));
}

static void run_read(void)
{
	got_last = code_run(site - 22);
}

static pthread_t start(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, run, arg) == 0 && sem_wait(&ready) == 0);
	return thread;
}

/* Returns when it sleeps inside. */
static pthread_t start_inside(void *(*run)(void *), void *arg)
{
	pthread_t thread = start(run, arg);

	await_asleep(stander, SYS_read);
	return thread;
}

static void say_ready(void)
{
	stander = (pid_t)syscall(SYS_gettid);
	sem_post(&ready);
}

static void *read_inside(void *arg)
{
	say_ready();
	run_read();
	return arg;
}

static void take(int number, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	MUST(sigaction(number, &action, NULL) == 0);
}

static void must_leave(pthread_t thread)
{
	MUST(write(ends[1], "", 1) == 1 && pthread_join(thread, NULL) == 0);
	MUST(got_last == GOT_READ);
	MUST(over_at(site, mov) == 0 && site_is(mov));
}

/* --- Handlers that will go back --------------------------------------------------------------- */

/*
 * Without SA_SIGINFO the kernel leaves siginfo as it finds it. Here it finds that of an earlier
 * look, at the same place of the same stack.
 */
static void over_old_frame(const void *arg)
{
	pthread_t thread;

	put_read();
	take(SIGUSR1, stay_in_handler, SA_RESTART | *(const int *)arg);
	thread = start_inside(read_inside, NULL);
	MUST(over_at(site, mov) == -ETIMEDOUT);
	MUST(pthread_kill(thread, SIGUSR1) == 0);
	await_asleep(stander, SYS_clock_nanosleep);
	MUST(over_at(site, mov) == -ETIMEDOUT && !site_is(mov));
	leave = true;
	must_leave(thread);
}

/* SA_NODEFER: no signal is blocked in the handler. */
static void test_over_old_frame(void **state)
{
	static const int plain = 0, nests = SA_NODEFER;

	(void)state;
	child_must_pass(over_old_frame, &plain);
	child_must_pass(over_old_frame, &nests);
}

/* In a handler that sleeps in a call which lets all signals in meanwhile. */
static void suspend_in_handler(int number)
{
	sigset_t none;

	(void)number;
	sigemptyset(&none);
	while (!leave)
		sigsuspend(&none);
}

static void suspended(const void *arg)
{
	pthread_t thread;

	(void)arg;
	put_read();
	take(SIGUSR1, suspend_in_handler, SA_RESTART);
	take(SIGUSR2, note_signal, 0);
	thread = start_inside(read_inside, NULL);
	MUST(pthread_kill(thread, SIGUSR1) == 0);
	await_asleep(stander, SYS_rt_sigsuspend);
	MUST(over_at(site, mov) == -ETIMEDOUT && !site_is(mov));
	leave = true;
	MUST(pthread_kill(thread, SIGUSR2) == 0);
	await_asleep(stander, SYS_read);
	must_leave(thread);
}

/* The kernel's restorer, but one that stays: as if the thread lost its CPU there. */
/* Read by assembly alone. */
static atomic_bool may_return __attribute__((used));
void slow_restorer(void);
__asm__(".pushsection .text\n"
	"	nop\n"
	"slow_restorer:\n"
	"1:	cmpb $0, may_return(%rip)\n"
	"	je 1b\n"
	"	movq $15, %rax\n"
	"	syscall\n"
	".popsection\n");

/* It has taken its address from the stack, where it was the beginning of the frame. */
static void at_restorer(const void *arg)
{
	struct kernel_action action = { .handler = (uintptr_t)note_signal,
					.flags = SA_RESTART | KERNEL_RESTORER,
					.restorer = (uintptr_t)slow_restorer };
	pthread_t thread;

	(void)arg;
	put_read();
	MUST(kernel_action(SIGUSR1, &action, NULL) == 0);
	thread = start_inside(read_inside, NULL);
	MUST(pthread_kill(thread, SIGUSR1) == 0);
	while (!handled)
		usleep(1000);
	MUST(over_at(site, mov) == -ETIMEDOUT && !site_is(mov));
	may_return = true;
	must_leave(thread);
}

/*
 * The handler's signal is reset past the C library, which leaves no restorer, either before or
 * after the first look.
 */
static void reset_signal(const void *arg)
{
	static const struct kernel_action reset = { .handler = (uintptr_t)SIG_DFL };
	const bool nests = *(const bool *)arg;
	pthread_t thread;

	put_read();
	take(SIGSEGV, stay_in_handler, SA_RESTART | (nests ? SA_NODEFER : 0));
	take(SIGUSR2, note_signal, 0);
	thread = start_inside(read_inside, NULL);
	MUST(pthread_kill(thread, SIGSEGV) == 0);
	await_asleep(stander, SYS_clock_nanosleep);
	/* A handler that blocks nothing has to be met by a look while it is there. */
	if (nests)
		MUST(over_at(site, mov) == -ETIMEDOUT && !site_is(mov));
	MUST(kernel_action(SIGSEGV, &reset, NULL) == 0);
	MUST(over_at(site, mov) == -ETIMEDOUT && !site_is(mov));
	leave = true;
	must_leave(thread);
}

static void test_reset_signal(void **state)
{
	static const bool plain = false, nests = true;

	(void)state;
	child_must_pass(reset_signal, &plain);
	child_must_pass(reset_signal, &nests);
}

#define NEAR (64u << 10)

static uint8_t *near_stack;

static void go_to_near_stack(int number)
{
	(void)number;
	pthread_kill(pthread_self(), SIGUSR2);
}

static void *read_with_near_stack(void *arg)
{
	stack_t alternate = { .ss_sp = near_stack, .ss_size = NEAR };

	MUST(sigaltstack(&alternate, NULL) == 0);
	return read_inside(arg);
}

/*
 * A handler on the thread's own stack has interrupted the code, and another has interrupted that,
 * on an alternate stack just below: between both lies no more than a page that cannot be read.
 */
static void near_alternate(const void *arg)
{
	struct sigaction action = { .sa_handler = stay_in_handler, .sa_flags = SA_ONSTACK };
	pthread_attr_t attr;
	pthread_t thread;

	(void)arg;
	put_read();
	near_stack = mmap(NULL, NEAR + CODE_PAGE + 2 * NEAR, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(mprotect(near_stack + NEAR, CODE_PAGE, PROT_NONE) == 0);
	take(SIGUSR1, go_to_near_stack, SA_RESTART);
	/* All are blocked, so that it cannot answer. */
	sigfillset(&action.sa_mask);
	MUST(sigaction(SIGUSR2, &action, NULL) == 0);
	MUST(pthread_attr_init(&attr) == 0 &&
	     pthread_attr_setstack(&attr, near_stack + NEAR + CODE_PAGE, 2 * NEAR) == 0);
	MUST(pthread_create(&thread, &attr, read_with_near_stack, NULL) == 0 &&
	     sem_wait(&ready) == 0);
	await_asleep(stander, SYS_read);
	MUST(pthread_kill(thread, SIGUSR1) == 0);
	await_asleep(stander, SYS_clock_nanosleep);
	MUST(over_at(site, mov) == -ETIMEDOUT && !site_is(mov));
	leave = true;
	must_leave(thread);
}

/* --- The handler of the look itself ----------------------------------------------------------- */

/* The look's signal finds the thread inside; it is held before the handler has done anything. */
static void held_in_look(const void *arg)
{
	struct stand where = { .in_look = true };
	pthread_t thread;
	pid_t tracer;

	(void)arg;
	over_begin();
	over_put_site(over_place(2));
	where.at = site + 2;
	MUST(pthread_create(&thread, NULL, run_until_other, site - 2) == 0 &&
	     sem_wait(&ready) == 0);
	tracer = stand_start(&where);
	/* In the round whose signal it has, and in one after it. */
	MUST(over_at(site, mov) == -ETIMEDOUT && !site_is(mov));
	MUST(over_at(site, mov) == -ETIMEDOUT && !site_is(mov));
	MUST(kill(tracer, SIGKILL) == 0 && waitpid(tracer, NULL, 0) == tracer);
	MUST(over_at(site, mov) == 0 && site_is(mov));
	MUST(pthread_join(thread, NULL) == 0 && got_last == GOT_NEW);
}

/* --- Old frames ------------------------------------------------------------------------------- */

static sigjmp_buf before;

static void leave_handler(int number)
{
	(void)number;
	siglongjmp(before, 1);
}

static void sleep_wide(void)
{
	volatile char wide[WIDE];

	MUST(read(never[0], (char *)wide, 1) == 1);
}

/* The frame of a signal that came inside lies in the middle of a buffer. */
static void *leave_frame(void *arg)
{
	say_ready();
	if (sigsetjmp(before, 1) == 0)
		run_read();
	sem_post(&ready);
	sleep_wide();
	return arg;
}

static void old_frame(const void *arg)
{
	const bool jumps = *(const bool *)arg;
	pthread_t thread;

	put_read();
	take(SIGUSR1, jumps ? leave_handler : note_signal, SA_RESTART);
	thread = start_inside(leave_frame, NULL);
	MUST(pthread_kill(thread, SIGUSR1) == 0);
	while (!jumps && !handled)
		usleep(1000);
	if (!jumps)
		MUST(write(ends[1], "", 1) == 1);
	MUST(sem_wait(&ready) == 0);
	await_asleep(stander, SYS_read);
	MUST(over_at(site, mov) == 0 && site_is(mov));
	MUST(write(never[1], "", 1) == 1 && pthread_join(thread, NULL) == 0);
}

static void test_old_frame(void **state)
{
	static const bool returns = false, jumps = true;

	(void)state;
	child_must_pass(old_frame, &returns);
	child_must_pass(old_frame, &jumps);
}

/* --- Beyond the end of a stack ---------------------------------------------------------------- */

static uint64_t to_block;

static void *sleep_blocked(void *arg)
{
	char byte;

	kernel_mask(SIG_SETMASK, to_block);
	say_ready();
	MUST(read(never[0], &byte, 1) == 1);
	return arg;
}

static void *wait_for_signal(void *arg)
{
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	MUST(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	say_ready();
	MUST(sigwaitinfo(&set, &info) == SIGUSR2);
	return arg;
}

static void *sleep_in_handler(void *arg)
{
	say_ready();
	raise(SIGUSR1);
	return arg;
}

struct sleeper {
	void *(*run)(void *);
	long call; /* in which it sleeps */
};

#define STACK 131072u

/* As of a handler of another thread that has interrupted the code inside. */
static uintptr_t *plant_frame(uint8_t *at)
{
	struct kernel_action action;
	ucontext_t *context = (ucontext_t *)(void *)(at + sizeof(action.restorer));

	MUST(kernel_action(SIGUSR1, NULL, &action) == 0);
	memcpy(at, &action.restorer, sizeof(action.restorer));
	context->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)(site + 2);
	return (uintptr_t *)(void *)&context->uc_mcontext.gregs[REG_RIP];
}

static void beyond_end(const void *arg)
{
	const struct sleeper *sleeper = arg;
	uint8_t *stack =
		mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t thread;
	uintptr_t *place;

	over_begin();
	over_put_site(over_place(2));
	MUST(pipe(never) == 0);
	to_block = ~UINT64_C(0);
	take(SIGUSR1, stay_in_handler, 0);
	place = plant_frame(stack + STACK + 4096);
	MUST(pthread_attr_init(&attr) == 0 && pthread_attr_setstack(&attr, stack, STACK) == 0);
	MUST(pthread_create(&thread, &attr, sleeper->run, NULL) == 0 && sem_wait(&ready) == 0);
	await_asleep(stander, sleeper->call);
	/* Three instructions are waited for; of NOPs a frame would be moved. */
	MUST(over_at(site, mov) == 0 && site_is(mov));
	MUST(*place == (uintptr_t)site + 2);
	memset(site, 0x90, LEN);
	MUST(pc_patch_merge(site, mov, LEN, PC_CHECK_THREADS) == 0 && site_is(mov));
	MUST(*place == (uintptr_t)site + 2);
	leave = true;
	MUST(write(never[1], "", 1) == 1 && pthread_kill(thread, SIGUSR2) == 0);
	MUST(pthread_join(thread, NULL) == 0);
}

static void test_beyond_end(void **state)
{
	static const struct sleeper blocked = { sleep_blocked, SYS_read };
	static const struct sleeper waits = { wait_for_signal, SYS_rt_sigtimedwait };
	static const struct sleeper handler = { sleep_in_handler, SYS_clock_nanosleep };

	(void)state;
	signal(SIGUSR2, SIG_IGN);
	child_must_pass(beyond_end, &blocked);
	child_must_pass(beyond_end, &waits);
	child_must_pass(beyond_end, &handler);
	signal(SIGUSR2, SIG_DFL);
}

/* --- Threads that sleep ----------------------------------------------------------------------- */

/* With just the signals blocked that an executor blocks while it waits at an INT3. */
static void blocked_like_executor(const void *arg)
{
	struct kernel_action action;
	pthread_t thread;

	(void)arg;
	over_begin();
	over_put_site(over_place(2));
	MUST(pipe(never) == 0 && kernel_action(SIGTRAP, NULL, &action) == 0);
	to_block = action.mask | kernel_bit(SIGTRAP);
	thread = start(sleep_blocked, NULL);
	await_asleep(stander, SYS_read);
	MUST(over_at(site, mov) == 0 && site_is(mov));
	MUST(write(never[1], "", 1) == 1 && pthread_join(thread, NULL) == 0);
}

/* Of a thread that blocks nothing no stack is read: there is no handler. */
static void no_stack_read(const void *arg)
{
	(void)arg;
	over_begin();
	over_put_site(over_place(2));
	MUST(pipe(never) == 0);
	to_block = 0;
	child_filter(SYS_process_vm_readv, 0, 0, SECCOMP_RET_ERRNO | EPERM);
	for (unsigned i = 0; i < 8; i++)
		start(sleep_blocked, NULL);
	MUST(over_at(site, mov) == 0 && site_is(mov));
	memset(site, 0x90, LEN);
	MUST(pc_patch_merge(site, mov, LEN, PC_CHECK_THREADS) == 0 && site_is(mov));
}

/* Reads of files by this thread so far. */
static unsigned long reads(void)
{
	unsigned long count = 0;
	char line[128];
	FILE *file = fopen("/proc/thread-self/io", "re");

	if (!file)
		child_skip("the kernel does not count reads");
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, "syscr: ", 7) == 0)
			count = strtoul(line + 7, NULL, 10);
	fclose(file);
	return count;
}

static unsigned long reads_of_change(void)
{
	unsigned long first = reads();

	MUST(over_at(site, mov) == 0);
	memcpy(site, adds, LEN);
	return reads() - first;
}

static void await_sleepers(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		start(sleep_blocked, NULL);
		await_asleep(stander, SYS_read);
	}
}

/*
 * A change reads four small files of each thread, however many there are: two of them again in the
 * end, to tell that it slept all the while. These threads need not
 * answer, so that none is asked again.
 */
static void reads_per_thread(const void *arg)
{
	unsigned long few, many;

	(void)arg;
	over_begin();
	over_put_site(over_place(2));
	MUST(pipe(never) == 0);
	/* Else each change reads the list of mappings. */
	MUST(pc_text_open(site, LEN) == 0);
	to_block = ~UINT64_C(0);
	await_sleepers(1);
	reads_of_change();
	few = reads_of_change();
	await_sleepers(MANY);
	many = reads_of_change();
	dprintf(2, "%lu reads, with %u more threads %lu\n", few, MANY, many);
	MUST(many - few == 4 * MANY);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_over_old_frame),	child_unit_test(suspended),
		child_unit_test(at_restorer),		cmocka_unit_test(test_reset_signal),
		child_unit_test(near_alternate),	child_unit_test(held_in_look),
		cmocka_unit_test(test_old_frame),	cmocka_unit_test(test_beyond_end),
		child_unit_test(blocked_like_executor), child_unit_test(no_stack_read),
		child_unit_test(reads_per_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
