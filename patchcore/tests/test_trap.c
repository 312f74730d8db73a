/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <ucontext.h>

#include <cmocka.h>

#include "patchcore/patchcore.h"
#include "patchcore/site.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"
#include "patchcore/trap.h"
#include "patchcore/wait.h"
#include "patchcore/word.h"

/* Ticks: more than those for which a look at who has SIGTRAP is good. */
#define CHECK_TICKS 1000000

static uint8_t *page, *site;
static uint8_t old_code[CODE_LEN], new_code[CODE_LEN];

/* A straddler that the library knows, with the old code. */
static void start(void)
{
	page = code_map(1, RWX);
	site = code_straddler(page);
	code_load(old_code, CODE_OLD);
	code_load(new_code, CODE_NEW);
	code_put(site, CODE_OLD);
	MUST(pc_init() == 0 && trap_is_ours());
	MUST(site_get((uintptr_t)site));
}

static void start_without_conf(void)
{
	conf_use_none();
	start();
}

/* --- Whoever had SIGTRAP before -------------------------------------------------------- */

static volatile struct {
	int count;
	int code;  /* si_code */
	int value; /* what sigqueue() sent */
	uintptr_t rip;
	bool usr1_held; /* SIGUSR1 was blocked meanwhile */
	bool trap_held;
} earlier;

static void note_mask(void)
{
	sigset_t mask;

	sigprocmask(SIG_SETMASK, NULL, &mask);
	earlier.usr1_held = sigismember(&mask, SIGUSR1);
	earlier.trap_held = sigismember(&mask, SIGTRAP);
	earlier.count++;
	errno = EILSEQ;
}

static void earlier_plain(int signal)
{
	MUST(signal == SIGTRAP);
	note_mask();
}

static void earlier_info(int signal, siginfo_t *info, void *context)
{
	MUST(signal == SIGTRAP && info->si_signo == SIGTRAP);
	earlier.code = info->si_code;
	earlier.value = info->si_value.sival_int;
	earlier.rip = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	note_mask();
}

static void set_earlier(void (*plain)(int))
{
	struct sigaction action = { .sa_handler = plain };

	sigaddset(&action.sa_mask, SIGUSR1);
	MUST(sigaction(SIGTRAP, &action, NULL) == 0);
}

static void set_earlier_info(void)
{
	struct sigaction action = { .sa_sigaction = earlier_info, .sa_flags = SA_SIGINFO };

	MUST(sigaction(SIGTRAP, &action, NULL) == 0);
}

/* nop; int3; mov eax, CODE_OLD; ret */
static uint8_t *foreign_trap(void)
{
	uint8_t *at = page + 64;

	at[1] = CODE_INT3;
	code_put(at + 2, CODE_OLD);
	return at;
}

static void chained_info(const void *arg)
{
	const uint8_t *at;

	(void)arg;
	set_earlier_info();
	start_without_conf();
	at = foreign_trap();
	MUST(code_run(at) == CODE_OLD);
	MUST(earlier.count == 1 && earlier.code == SI_KERNEL);
	MUST(earlier.rip == (uintptr_t)at + 2);
	MUST(trap_count() == 0);
}

static void test_chained_info(void **state)
{
	(void)state;
	child_must_pass(chained_info, NULL);
}

static void chained_plain(const void *arg)
{
	(void)arg;
	set_earlier(earlier_plain);
	start_without_conf();
	MUST(code_run(foreign_trap()) == CODE_OLD);
	MUST(earlier.count == 1);
}

static void test_chained_plain(void **state)
{
	(void)state;
	child_must_pass(chained_plain, NULL);
}

/* Its mask holds while it runs, and no longer. */
static void chained_mask(const void *arg)
{
	sigset_t mask;

	(void)arg;
	set_earlier(earlier_plain);
	start_without_conf();
	code_run(foreign_trap());
	MUST(earlier.usr1_held && earlier.trap_held);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	MUST(!sigismember(&mask, SIGUSR1) && !sigismember(&mask, SIGTRAP));
}

static void test_chained_mask(void **state)
{
	(void)state;
	child_must_pass(chained_mask, NULL);
}

static void sent(const void *arg)
{
	(void)arg;
	set_earlier_info();
	start_without_conf();
	MUST(raise(SIGTRAP) == 0);
	MUST(earlier.count == 1 && earlier.code == SI_TKILL);
	MUST(kill(getpid(), SIGTRAP) == 0);
	MUST(earlier.count == 2 && earlier.code == SI_USER);
	MUST(sigqueue(getpid(), SIGTRAP, (union sigval){ .sival_int = 4711 }) == 0);
	MUST(earlier.count == 3 && earlier.code == SI_QUEUE && earlier.value == 4711);
	MUST(trap_count() == 0);
}

static void test_sent(void **state)
{
	(void)state;
	child_must_pass(sent, NULL);
}

static void keeps_errno(const void *arg)
{
	(void)arg;
	set_earlier(earlier_plain);
	start_without_conf();
	errno = ENOTTY;
	code_run(foreign_trap());
	MUST(earlier.count == 1 && errno == ENOTTY);
}

static void test_keeps_errno(void **state)
{
	(void)state;
	child_must_pass(keeps_errno, NULL);
}

/* --- Nobody had it ---------------------------------------------------------------------- */

static void run_foreign(const void *disposition)
{
	set_earlier(disposition ? SIG_IGN : SIG_DFL);
	start_without_conf();
	code_run(foreign_trap());
}

static void raise_by_default(const void *arg)
{
	(void)arg;
	set_earlier(SIG_DFL);
	start_without_conf();
	raise(SIGTRAP);
}

static void test_default_dies(void **state)
{
	(void)state;
	child_must_die_of(run_foreign, NULL, SIGTRAP);
	child_must_die_of(raise_by_default, NULL, SIGTRAP);
}

static void ignored(const void *arg)
{
	(void)arg;
	set_earlier(SIG_IGN);
	start_without_conf();
	MUST(raise(SIGTRAP) == 0);
	MUST(kill(getpid(), SIGTRAP) == 0);
	MUST(trap_is_ours());
}

/* What is sent can be ignored. What the program does itself cannot. */
static void test_ignored(void **state)
{
	(void)state;
	child_must_pass(ignored, NULL);
	child_must_die_of(run_foreign, "ignored", SIGTRAP);
}

/* --- Ours, and what only looks like it -------------------------------------------------- */

static void mend(int signal, siginfo_t *info, void *context)
{
	earlier_info(signal, info, context);
	*site = old_code[0];
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] -= 1;
}

/* A debugger's INT3, say, on a site that the library has patched before. */
static void foreign_on_site(const void *arg)
{
	struct sigaction action = { .sa_sigaction = mend, .sa_flags = SA_SIGINFO };

	(void)arg;
	MUST(sigaction(SIGTRAP, &action, NULL) == 0);
	start_without_conf();
	*site = CODE_INT3;
	MUST(code_run(site) == CODE_OLD);
	MUST(earlier.count == 1 && earlier.rip == (uintptr_t)site + 1);
	MUST(trap_count() == 0);
}

static void test_foreign_on_site(void **state)
{
	(void)state;
	child_must_pass(foreign_on_site, NULL);
}

/* The handler as the kernel would call it. Returns where it would go on. */
static uintptr_t deliver(int code, uintptr_t rip)
{
	siginfo_t info = { .si_signo = SIGTRAP, .si_code = code };
	struct sigaction now;
	ucontext_t context;

	memset(&context, 0, sizeof(context));
	context.uc_mcontext.gregs[REG_RIP] = (greg_t)rip;
	MUST(sigaction(SIGTRAP, NULL, &now) == 0);
	now.sa_sigaction(SIGTRAP, &info, &context);
	return (uintptr_t)context.uc_mcontext.gregs[REG_RIP];
}

/* An executor that fetched the INT3 before it went, and trapped after that. */
static void stale(const void *arg)
{
	(void)arg;
	set_earlier_info();
	start_without_conf();
	MUST(deliver(SI_KERNEL, (uintptr_t)site + 1) == (uintptr_t)site);
	MUST(trap_count() == 1 && earlier.count == 0);
	MUST(deliver(SI_KERNEL, (uintptr_t)site + 2) == (uintptr_t)site + 2);
	MUST(trap_count() == 1 && earlier.count == 1);
}

static void test_stale(void **state)
{
	(void)state;
	child_must_pass(stale, NULL);
}

/* A signal may come while the thread is just there, behind the first byte. */
static void sent_behind_site(const void *arg)
{
	static const int codes[] = {
		SI_USER, SI_TKILL, SI_QUEUE, SI_TIMER, TRAP_TRACE, TRAP_HWBKPT
	};
	const int count = sizeof(codes) / sizeof(*codes);

	(void)arg;
	set_earlier_info();
	start_without_conf();
	for (int i = 0; i < count; i++) {
		MUST(deliver(codes[i], (uintptr_t)site + 1) == (uintptr_t)site + 1);
		MUST(earlier.count == i + 1 && earlier.code == codes[i]);
	}
	MUST(trap_count() == 0);
}

static void test_sent_behind_site(void **state)
{
	(void)state;
	child_must_pass(sent_behind_site, NULL);
}

/* --- Executors ----------------------------------------------------------------------------- */

static atomic_uint result; /* of the executor, 0 before */

static void *execute(void *at)
{
	errno = ENOTTY;
	result = code_run(at);
	MUST(errno == ENOTTY);
	return NULL;
}

static struct word *put_int3(void)
{
	static const struct sync sync = { .window = 8 };
	struct change change = change_in_place(site, new_code, CODE_LEN);
	struct word *word;

	MUST(word_begin(&word, &change, &sync) == 0);
	return word;
}

static void put_rest(struct word *word)
{
	word_put_back(word);
	word_put_front(word);
	word_release(word);
}

/* Until an executor has met the INT3, again and again, and still has nothing to show. */
static void wait_for_traps(uint64_t count)
{
	while (trap_count() < count)
		sched_yield();
	MUST(result == 0);
}

static void waits(const void *arg)
{
	pthread_t thread;
	struct word *word;

	(void)arg;
	start_without_conf();
	word = put_int3();
	MUST(pthread_create(&thread, NULL, execute, site) == 0);
	wait_for_traps(1);
	word_put_back(word);
	wait_for_traps(trap_count() + 2);
	word_put_front(word);
	word_release(word);
	pthread_join(thread, NULL);
	MUST(result == CODE_NEW);
}

static void test_waits(void **state)
{
	(void)state;
	child_must_pass(waits, NULL);
}

/*
 * mov r11, rsp; mov rsp, rdi; then the site; mov rsp, r11; ret. The stack that
 * it is given is none, so a signal can be taken on the alternate one only.
 */
static void put_stackless(void)
{
	static const uint8_t before[] = { 0x49, 0x89, 0xe3, 0x48, 0x89, 0xfc };
	static const uint8_t after[] = { 0x4c, 0x89, 0xdc, 0xc3 };

	memcpy(site - sizeof(before), before, sizeof(before));
	memcpy(site + CODE_LEN, after, sizeof(after));
}

/* What the kernel needs for one frame, and little more. */
static size_t small_stack(void)
{
	size_t frame = getauxval(AT_MINSIGSTKSZ);

	/* A sanitizer makes the handler's own frames larger. */
	return (frame ? frame : 4096) + (CHILD_ASAN || CHILD_TSAN ? 65536 : 1024);
}

/* At the end of a page, with a page before it that must not be touched. */
static void *execute_stackless(void *unused)
{
	size_t size = small_stack(), pages = 2 + size / CODE_PAGE;
	uint8_t *stack = code_map(pages, PROT_READ | PROT_WRITE);
	stack_t small = { .ss_sp = stack + pages * CODE_PAGE - size, .ss_size = size };
	uint32_t (*fn)(uint64_t) = (uint32_t(*)(uint64_t))(uintptr_t)(site - 6);

	(void)unused;
	if (mprotect(stack, CODE_PAGE, PROT_NONE) < 0 || sigaltstack(&small, NULL) < 0)
		child_skip("no stack as small as that");
	result = fn(8);
	small.ss_flags = SS_DISABLE;
	sigaltstack(&small, NULL);
	return NULL;
}

static void small_alternate_stack(const void *arg)
{
	pthread_t thread;
	struct word *word;

	(void)arg;
	start_without_conf();
	put_stackless();
	word = put_int3();
	MUST(pthread_create(&thread, NULL, execute_stackless, NULL) == 0);
	wait_for_traps(1);
	put_rest(word);
	pthread_join(thread, NULL);
	MUST(result == CODE_NEW);
}

static void test_small_alternate_stack(void **state)
{
	(void)state;
	child_must_pass(small_alternate_stack, NULL);
}

/* --- The patcher's own signals ---------------------------------------------------------------- */

#define HELPS	20
#define PATCHES 100000

static volatile sig_atomic_t helped;

/* Whatever happens in between, it runs the old code or the new. */
static void on_timer(int signal)
{
	struct site *known = site_find((uintptr_t)site);
	bool held = site_turn(known) % 2 && *(volatile uint8_t *)site == CODE_INT3;
	uint32_t number = code_run(site);

	(void)signal;
	MUST(number == CODE_OLD || number == CODE_NEW);
	helped += held;
}

static void start_timer(void)
{
	const struct itimerspec often = { { 0, 70001 }, { 0, 70001 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 };
	struct sigaction action = { .sa_handler = on_timer };
	timer_t timer;

	MUST(sigaction(SIGUSR2, &action, NULL) == 0);
	MUST(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	MUST(timer_settime(timer, 0, &often, NULL) == 0);
}

static void own_signals(const void *arg)
{
	struct machine_conf conf = conf_here();

	(void)arg;
	if (!conf.identity.tsc_invariant)
		child_skip("this machine has no invariant TSC");
	conf.first_wait = conf.second_wait = 20000;
	conf_use(&conf);
	start();
	MUST(pc_set_policy(PC_POLICY_WAIT) == 0);
	MUST(pc_text_open(page, CODE_PAGE) == 0);
	start_timer();
	for (int i = 0; i < PATCHES && helped < HELPS; i++) {
		MUST(pc_patch(site, i % 2 ? old_code : new_code, CODE_LEN) == 0);
		MUST(memcmp(site, i % 2 ? old_code : new_code, CODE_LEN) == 0);
	}
	if (helped < HELPS)
		child_skip("the timer never came at the right time");
}

/* It cannot wait for itself. */
static void test_own_signals(void **state)
{
	(void)state;
	child_must_pass(own_signals, NULL);
}

/* --- Whoever takes SIGTRAP after us --------------------------------------------------------------
 */

static int patch_with(const uint8_t *code)
{
	ticks_wait(2 * CHECK_TICKS);
	return pc_patch(site, code, CODE_LEN);
}

static void taken_away(const void *arg)
{
	struct sigaction other = { .sa_handler = earlier_plain }, ours, now;

	(void)arg;
	start_without_conf();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("no membarrier");
	MUST(patch_with(new_code) == 0);
	MUST(sigaction(SIGTRAP, &other, &ours) == 0);
	MUST(patch_with(old_code) == -EBUSY);
	MUST(pc_patch(site, old_code, CODE_LEN) == -EBUSY);
	MUST(code_run(site) == CODE_NEW);
	MUST(patch_with(old_code) == -EBUSY);
	/* What needs no INT3 needs no SIGTRAP. */
	MUST(pc_patch(page, old_code, CODE_LEN) == 0);
	MUST(sigaction(SIGTRAP, NULL, &now) == 0 && now.sa_handler == earlier_plain);
	MUST(sigaction(SIGTRAP, &ours, NULL) == 0);
	MUST(pc_patch(site, old_code, CODE_LEN) == 0);
	MUST(code_run(site) == CODE_OLD);
}

static void test_taken_away(void **state)
{
	(void)state;
	child_must_pass(taken_away, NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chained_info), cmocka_unit_test(test_chained_plain),
		cmocka_unit_test(test_chained_mask), cmocka_unit_test(test_sent),
		cmocka_unit_test(test_keeps_errno),  cmocka_unit_test(test_default_dies),
		cmocka_unit_test(test_ignored),	     cmocka_unit_test(test_foreign_on_site),
		cmocka_unit_test(test_stale),	     cmocka_unit_test(test_sent_behind_site),
		cmocka_unit_test(test_waits),	     cmocka_unit_test(test_small_alternate_stack),
		cmocka_unit_test(test_own_signals),  cmocka_unit_test(test_taken_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
