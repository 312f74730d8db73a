/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>

#include "patchcore/machine/wait.h"
#include "patchcore/tests/barrier.h"
#include "patchcore/tests/trap_case.h"

/* Ticks: longer than the library relies on a look at the handler of SIGTRAP. */
#define CHECK_TICKS 1000000

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

/* --- Executors --- */

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

/* --- The patcher's own signals ---------------------------------------------------------------- */

#define HELPS	20
#define PATCHES 100000

static volatile sig_atomic_t helped;

/* Between any two steps an executor runs the old code or the new. */
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

/* It cannot wait for itself. */
static void own_signals(const void *arg)
{
	struct machine_conf conf = conf_here();

	(void)arg;
	if (CHILD_TSAN)
		child_skip("the thread sanitizer delivers signals at times of its own");
	if (!conf.identity.tsc_invariant)
		child_skip("this machine has no invariant TSC");
	conf.level[0].waits.first = conf.level[0].waits.second = 20000;
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

/* --- A program that takes SIGTRAP after us ---------------------------------------------------- */

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

/* --- An owner of whose end the kernel says nothing -------------------------------------------- */

#define MUTEXES 3000 /* robust; the kernel marks 2,048 of them when the thread ends */

static pthread_mutex_t mutexes[MUTEXES];
static pthread_t owner;

static int end_there(void)
{
	if (pthread_self() == owner)
		syscall(SYS_exit, 0);
	return 0;
}

static void *patch_and_end(void *unused)
{
	pthread_mutexattr_t attr;

	MUST(pc_patch(site, new_code, CODE_LEN) == 0);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	for (int i = 0; i < MUTEXES; i++) {
		pthread_mutex_init(&mutexes[i], &attr);
		MUST(pthread_mutex_lock(&mutexes[i]) == 0);
	}
	owner = pthread_self();
	pc_patch(site, old_code, CODE_LEN);
	return unused;
}

static void owner_with_mutexes(const void *arg)
{
	pthread_t thread;

	(void)arg;
	start_without_conf();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("the kernel has no membarrier SYNC_CORE");
	barrier_play(end_there);
	MUST(pthread_create(&thread, NULL, patch_and_end, NULL) == 0);
	pthread_join(thread, NULL);
	MUST(*(volatile uint8_t *)site == CODE_INT3);
	alarm(20);
	MUST(code_run(site) == CODE_OLD);
	MUST(pc_patch(site, new_code, CODE_LEN) == 0 && pc_fini() == 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(foreign_on_site),    child_unit_test(stale),
		child_unit_test(sent_behind_site),   child_unit_test(waits),
		child_unit_test(own_signals),	     child_unit_test(taken_away),
		child_unit_test(owner_with_mutexes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
