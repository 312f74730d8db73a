/* SPDX-License-Identifier: MIT */
/*
 * A child of fork() sees to what it inherits half done while no other of its threads is inside
 * the library, and lets none in meanwhile. Without either rule, a thread loses the page that it
 * has made writable.
 */
#define _GNU_SOURCE /* memfd_create(), RTLD_NEXT */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/pages/text.h"
#include "patchcore/site/fork.h"
#include "patchcore/tests/text_fork.h"

enum broken {
	NOTHING,
	NONE_IS_INSIDE,	 /* while another thread is */
	ADOPTED_AT_ONCE, /* it counts as done from the moment that a thread begins */
};

static enum broken broken;

/* The thread that sees to the rest is held up just before it gives pages back, once. */
static atomic_bool holds_up, is_at_it, is_ended;
static _Atomic(struct thread *) second;

/* The linker hands these calls to us: see local.mk. */
bool __real_thread_any_inside(void);
bool __wrap_thread_any_inside(void);
void __real_text_give_back_borrowed(void);
void __wrap_text_give_back_borrowed(void);

bool __wrap_thread_any_inside(void)
{
	return broken != NONE_IS_INSIDE && __real_thread_any_inside();
}

static int failures; /* so often there is no memory for it */

int __real_membarrier_sync(void);
int __wrap_membarrier_sync(void);

static void (*in_sync)(void); /* once */

int __wrap_membarrier_sync(void)
{
	void (*run)(void) = in_sync;

	in_sync = NULL;
	if (run)
		run();
	return failures-- > 0 ? -ENOMEM : __real_membarrier_sync();
}

/* Has the second thread a page of its own, or was it outside once since it came? */
static atomic_bool has_page;

static bool is_settled(void)
{
	const struct thread *thread = second;

	return has_page || (thread && atomic_load(&thread->inside) >= THREAD_PASSED);
}

void __wrap_text_give_back_borrowed(void)
{
	if (broken == ADOPTED_AT_ONCE)
		atomic_store(fork_adopted, FORK_ADOPTED);
	if (atomic_exchange(&holds_up, false)) {
		is_at_it = true;
		while (!is_settled())
			usleep(100);
	}
	__real_text_give_back_borrowed();
	if (is_ended)
		raise(SIGUSR1);
}

static bool is_all_adopted(void)
{
	return atomic_load(fork_adopted) == FORK_ADOPTED;
}

static void begin(struct text_span *span, size_t page)
{
	MUST(text_begin(span, (uint8_t *)page_at(page) + 64, CODE_LEN) == 0 && span->loan);
}

extern pid_t _Fork(void) __attribute__((weak)); /* glibc 2.34 */

/* Past the handlers, so that the child inherits what is half done. */
static void in_child(void (*run)(void))
{
	pid_t pid = _Fork ? _Fork() : (pid_t)syscall(SYS_fork);

	if (pid == 0) {
		alarm(CHILD_SECONDS);
		run();
		_exit(0);
	}
	MUST(pid > 0);
	must_end_well(pid);
}

/* --- While another is inside ----------------------------------------------------------------- */

static struct text_span own, left;

static void *patch_another(void *unused)
{
	must_patch((uint8_t *)page_at(2) + 64, CODE_NEW);
	return unused;
}

/*
 * The forking thread is in the middle of a change, and has a page on loan. It comes to the
 * library before the other thread does, as its signal handler would.
 */
static void go_on_inside(void)
{
	pthread_t thread;

	patch_another(NULL);
	MUST(pthread_create(&thread, NULL, patch_another, NULL) == 0);
	pthread_join(thread, NULL);
	must_be((const int[]){ RWX, RWX, RX });
	MUST(!is_all_adopted());
	text_end(&own);
	must_be((const int[]){ RX, RWX, RX });
	/* Now no thread is. */
	patch_another(NULL);
	must_be((const int[]){ RX, RX, RX });
	MUST(is_all_adopted());
}

static atomic_bool leaves;

static void *leave_page(void *unused)
{
	begin(&left, 1);
	has_page = true;
	while (!leaves)
		usleep(100);
	text_end(&left);
	return unused;
}

static void put_off(const void *arg)
{
	pthread_t thread;

	broken = *(const enum broken *)arg;
	start_with_threads();
	begin(&own, 0);
	MUST(pthread_create(&thread, NULL, leave_page, NULL) == 0);
	while (!has_page)
		usleep(100);
	in_child(go_on_inside);
	leaves = true;
	pthread_join(thread, NULL);
	text_end(&own);
	must_be((const int[]){ RX, RX, RX });
}

/* --- While one is at it ---------------------------------------------------------------------- */

static void *come_meanwhile(void *unused)
{
	while (!is_at_it)
		usleep(100);
	second = thread_self();
	begin(&own, 0);
	has_page = true;
	while (!is_all_adopted())
		usleep(100);
	return unused;
}

/* The page that was given back is not that of the thread that came. */
static void come_in_turn(void)
{
	pthread_t thread;

	has_page = false;
	holds_up = true;
	MUST(pthread_create(&thread, NULL, come_meanwhile, NULL) == 0);
	patch_another(NULL);
	pthread_join(thread, NULL);
	must_be((const int[]){ RWX, RX, RX });
}

static void waited_for(const void *arg)
{
	broken = *(const enum broken *)arg;
	start_with_threads();
	in_child(come_in_turn);
}

/* --- What cannot be seen to yet -------------------------------------------------------------- */

/* Membarrier has no memory at first: the page stays with the change that is in flight. */
static void try_again(void)
{
	failures = 1000; /* to look which threads are inside, and to drain */
	patch_another(NULL);
	failures = 0;
	must_be((const int[]){ RWX, RX, RX });
	MUST(!is_all_adopted());
	patch_another(NULL);
	must_be((const int[]){ RX, RX, RX });
	MUST(is_all_adopted() && code_run(code_straddler(base)) == CODE_NEW);
}

/* With the old instruction on a straddler; the new one is for the caller. */
static void start_with_straddler(uint8_t code[CODE_LEN])
{
	start_with_threads();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("no membarrier SYNC_CORE");
	MUST(mprotect(base, CODE_PAGE, RW) == 0);
	code_put(code_straddler(base), CODE_OLD);
	MUST(mprotect(base, CODE_PAGE, RX) == 0);
	code_load(code, CODE_NEW);
}

static void tried_again(const void *arg)
{
	uint8_t code[CODE_LEN];

	(void)arg;
	start_with_straddler(code);
	MUST(pc_start_patch(code_straddler(base), code, CODE_LEN) == 0);
	in_child(try_again);
	MUST(pc_drain() == 0);
	must_be((const int[]){ RX, RX, RX });
}

/* --- A child that goes on with a change of its parent's --------------------------------------- */

static bool in_raw_child;

/* The parent's code is what it was before the child went on, and came to its end. */
static void fork_amid_change(void)
{
	uint8_t *at = code_straddler(base), before[CODE_LEN], after[CODE_LEN];
	pid_t pid;

	memcpy(before, at, CODE_LEN);
	pid = _Fork ? _Fork() : (pid_t)syscall(SYS_fork);
	in_raw_child = pid == 0;
	if (in_raw_child)
		return;
	must_end_well(pid);
	memcpy(after, at, CODE_LEN);
	MUST(after[0] == WORD_INT3 && memcmp(before, after, CODE_LEN) == 0);
}

/* As a handler of a signal may: here in the middle of the first sync. */
static void alias_left_alone(const void *arg)
{
	uint8_t code[CODE_LEN];
	int ret;

	(void)arg;
	start_with_straddler(code);
	MUST(pc_text_alias(base, CODE_PAGE) == 0);
	in_sync = fork_amid_change;
	ret = pc_patch(code_straddler(base), code, CODE_LEN);
	if (in_raw_child)
		_exit(ret == -EACCES ? 0 : 1);
	MUST(ret == 0 && code_run(code_straddler(base)) == CODE_NEW);
	MUST(pc_text_close(base, CODE_PAGE) == 0);
}

/* --- A thread that becomes known while another forks ------------------------------------------ */

static __thread bool stands;
static atomic_bool is_standing;

/* Called while a thread becomes known, in place of libc's. */
int pthread_mutexattr_setrobust(pthread_mutexattr_t *attr, int robust)
{
	int (*real)(pthread_mutexattr_t *, int) = dlsym(RTLD_NEXT, "pthread_mutexattr_setrobust");

	is_standing |= stands;
	while (stands)
		pause();
	return real(attr, robust);
}

static void *become_known(void *unused)
{
	stands = true;
	MUST(thread_id());
	return unused;
}

/* A child that waited for the other would do so with its signals blocked. */
static void *fork_unknown(void *unused)
{
	pid_t pid = _Fork ? _Fork() : (pid_t)syscall(SYS_fork), ended = 0;
	int status = 0;

	if (pid == 0)
		_exit(thread_id() && pc_init() == 0 ? 0 : 1);
	for (int i = 0; i < 2000 && !ended; i++) {
		ended = waitpid(pid, &status, WNOHANG);
		usleep(10000);
	}
	kill(pid, SIGKILL);
	MUST(ended == pid && status == 0);
	return unused;
}

static void known_in_child(const void *arg)
{
	pthread_t threads[2];

	(void)arg;
	MUST(pthread_create(&threads[0], NULL, become_known, NULL) == 0);
	while (!is_standing)
		usleep(100);
	MUST(pthread_create(&threads[1], NULL, fork_unknown, NULL) == 0);
	pthread_join(threads[1], NULL);
}

/* --- A thread that ends while it is at it ----------------------------------------------------- */

static void end_thread(int unused)
{
	(void)unused;
	is_ended = false;
	syscall(SYS_exit, 0);
}

/* The next that comes does not wait for it. */
static void come_after(void)
{
	pthread_t thread;

	signal(SIGUSR1, end_thread);
	is_ended = true;
	MUST(pthread_create(&thread, NULL, patch_another, NULL) == 0);
	while (is_ended)
		usleep(100);
	alarm(CHILD_SECONDS);
	patch_another(NULL);
	MUST(is_all_adopted());
}

static void ended(const void *arg)
{
	(void)arg;
	start_with_threads();
	in_child(come_after);
}

/* --- Both, and without the one that each is for ---------------------------------------------- */

static void test_put_off(void **state)
{
	static const enum broken nothing = NOTHING, variant = NONE_IS_INSIDE;

	(void)state;
	child_must_pass(put_off, &nothing);
	child_must_fail(put_off, &variant);
}

static void test_waited_for(void **state)
{
	static const enum broken nothing = NOTHING, variant = ADOPTED_AT_ONCE;

	(void)state;
	child_must_pass(waited_for, &nothing);
	child_must_fail(waited_for, &variant);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_put_off),	 cmocka_unit_test(test_waited_for),
		child_unit_test(tried_again),	 child_unit_test(alias_left_alone),
		child_unit_test(known_in_child), child_unit_test(ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
