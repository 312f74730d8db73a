/* SPDX-License-Identifier: MIT */
/*
 * Changes whose patcher is no more: threads that end under way, children that
 * are forked under way; and patchers that are interrupted by themselves.
 */
#define _GNU_SOURCE /* memfd_create(), sched_setaffinity() */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/batch.h"
#include "patchcore/pages/text.h"
#include "patchcore/site/site.h"
#include "patchcore/site/thread.h"
#include "patchcore/tests/flights.h"
#include "patchcore/word/word.h"

static uint8_t *pages, *site;
static uint8_t old_code[CODE_LEN], new_code[CODE_LEN];
static struct sync sync_now;

static void map(void)
{
	struct pc_status status;

	code_load(old_code, CODE_OLD);
	code_load(new_code, CODE_NEW);
	pages = flights_map(1, RX, 32);
	site = flight_site(pages, 10);
	MUST(pc_get_status(&status) == 0);
	sync_now = (struct sync){ .policy = status.in_use,
				  .waits.first = status.first_wait,
				  .waits.second = status.second_wait,
				  .window = 8 };
}

/* --- Threads that end ------------------------------------------------------------------------ */

/* How far a patcher gets. */
enum end {
	OWNED,	  /* only about to look */
	HELD,	  /* nothing stored */
	INT3_PUT, /* ... */
	BACK_PUT,
	FRONT_PUT, /* not released */
	ENDS
};

static _Atomic(uint64_t) last; /* thread_id() of the patcher that began last */

/* Joined, it may still be there for a moment. */
static void join_for_good(pthread_t thread)
{
	pthread_join(thread, NULL);
	while (!thread_is_gone(last))
		usleep(100);
}

static struct word *begun(uint8_t starts)
{
	struct change change = { .bytes = new_code, .starts = starts };
	struct word *word;

	last = thread_id();
	MUST(text_begin(&change.span, site, CODE_LEN) == 0);
	MUST(word_hold(&word, &change, &sync_now) == 0);
	return word;
}

static void *patch_until(void *end)
{
	struct word *word;

	last = thread_id();
	if (*(enum end *)end == OWNED) {
		MUST(site_try_own(site_get((uintptr_t)site), thread_id()));
		return NULL;
	}
	word = begun(1);
	if (*(enum end *)end >= INT3_PUT)
		MUST(word_put_int3(word) == 0);
	if (*(enum end *)end >= BACK_PUT)
		word_put_back(word);
	if (*(enum end *)end >= FRONT_PUT)
		word_put_front(word);
	return NULL;
}

static void leave_at(enum end end)
{
	pthread_t thread;

	MUST(pc_patch(site, old_code, CODE_LEN) == 0);
	MUST(pthread_create(&thread, NULL, patch_until, &end) == 0);
	join_for_good(thread);
	MUST(code_prot(site) == (end == OWNED ? RX : RWX));
}

static void must_be_free(void)
{
	MUST(code_prot(site) == RX && site_turn(site_find((uintptr_t)site)) % 2 == 0);
	MUST(pc_patch(site, old_code, CODE_LEN) == 0 && code_run(site) == CODE_OLD);
	MUST(code_prot(site) == RX);
}

static bool int3_stands(enum end end)
{
	return end == INT3_PUT || end == BACK_PUT;
}

/* The executor that runs into it finishes it; the next that comes by gives the page back. */
static void must_run_through(enum end end)
{
	uint32_t number;

	leave_at(end);
	number = code_run(site);
	MUST(number == (end >= INT3_PUT ? CODE_NEW : CODE_OLD));
	MUST(pc_drain() == 0);
	if (!int3_stands(end))
		MUST(pc_finish_patch(site) >= 0);
	must_be_free();
}

static void must_finish(enum end end)
{
	leave_at(end);
	while (pc_finish_patch(site) != PC_FINISHED)
		;
	MUST(flight_look(site) == (end >= INT3_PUT ? FLIGHT_NEW : FLIGHT_OLD));
	must_be_free();
}

static int patch_now(void)
{
	return pc_patch(site, old_code, CODE_LEN);
}

static int start_now(void)
{
	return pc_start_patch(site, old_code, CODE_LEN);
}

static int batch_now(void)
{
	struct pc_op op = { .addr = site, .bytes = old_code, .len = CODE_LEN };

	return pc_patch_batch(&op, 1);
}

#define TRIES 100000 /* a wait of 1000 ticks is over long before */

/* What another thread has left is no more in the way, once it has been waited for what is due. */
static void must_make_way(enum end end)
{
	static int (*const ways[])(void) = { patch_now, start_now, batch_now };
	int ret;

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		leave_at(end);
		ret = -EAGAIN;
		for (int tries = 0; ret == -EAGAIN && tries < TRIES; tries++)
			ret = ways[i]();
		MUST(ret == 0 && pc_drain() == 0);
		must_be_free();
	}
}

static void ended(const void *arg)
{
	const bool *by_wait = arg;

	if (*by_wait)
		flights_use_wait(1000, 1000);
	else
		flights_use_membarrier();
	map();
	for (enum end end = OWNED; end < ENDS; end++) {
		must_run_through(end);
		must_finish(end);
		must_make_way(end);
	}
	MUST(pc_fini() == 0);
}

static void test_ended(void **state)
{
	bool by_wait = true;

	(void)state;
	child_must_pass(ended, &by_wait);
	by_wait = false;
	child_must_pass(ended, &by_wait);
}

#define SECOND 1 /* as if another instruction started there */

static void *hold_two(void *int3)
{
	struct word *word = begun(1 | 1 << SECOND);

	if (*(bool *)int3)
		MUST(word_put_int3(word) == 0);
	return NULL;
}

static void *own_second(void *unused)
{
	last = thread_id();
	MUST(site_try_hold(site_get((uintptr_t)site + SECOND), (uintptr_t)site + SECOND,
			   thread_id()));
	return unused;
}

/* As far as to note it, and then it is held, but does not know for whom. */
static void *hold_second_half(void *unused)
{
	struct word *word = begun(1);

	word->also[word->also_count++] = site_get((uintptr_t)site + SECOND);
	return own_second(unused);
}

static void *note_second(void *unused)
{
	struct word *word = begun(1);

	word->also[word->also_count++] = site_get((uintptr_t)site + SECOND);
	return unused;
}

static void run_to_end(void *(*fn)(void *), void *arg)
{
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, fn, arg) == 0);
	join_for_good(thread);
}

static bool both_are_free(void)
{
	return site_turn(site_find((uintptr_t)site)) % 2 == 0 &&
	       site_turn(site_find((uintptr_t)site + SECOND)) % 2 == 0;
}

/* The starts behind the first are released with it, however far it got. */
static void several_starts(const void *arg)
{
	bool int3 = false;

	(void)arg;
	flights_use_wait(1000, 1000);
	map();
	run_to_end(hold_two, &int3);
	MUST(pc_patch_starts(site, new_code, CODE_LEN, 1 | 1 << SECOND) == 0 && both_are_free());
	MUST(pc_patch(site, old_code, CODE_LEN) == 0);
	int3 = true;
	run_to_end(hold_two, &int3);
	MUST(site[SECOND] == CODE_INT3 && code_run(site) == CODE_NEW);
	MUST(pc_drain() == 0 && both_are_free() && code_prot(site) == RX);
	run_to_end(own_second, NULL);
	MUST(pc_patch(site + SECOND, new_code + SECOND, CODE_LEN - SECOND) == 0 && both_are_free());
	run_to_end(hold_second_half, NULL);
	MUST(pc_patch(site, old_code, CODE_LEN) == 0 && both_are_free());
	MUST(pc_fini() == 0 && code_prot(site) == RX);
}

static atomic_bool stay;

static void *stay_owner(void *unused)
{
	MUST(site_try_hold(site_get((uintptr_t)site + SECOND), (uintptr_t)site + SECOND,
			   thread_id()));
	stay = true;
	while (stay)
		usleep(100);
	site_release(site_get((uintptr_t)site + SECOND));
	return unused;
}

/* But not what it only wanted, and another thread has. */
static void noted_only(const void *arg)
{
	pthread_t thread;

	(void)arg;
	flights_use_wait(1000, 1000);
	map();
	MUST(pthread_create(&thread, NULL, stay_owner, NULL) == 0);
	while (!stay)
		;
	run_to_end(note_second, NULL);
	MUST(pc_patch(site, new_code, CODE_LEN) == 0);
	MUST(site_turn(site_find((uintptr_t)site + SECOND)) % 2 == 1);
	stay = false;
	pthread_join(thread, NULL);
	MUST(both_are_free());
}

/* No thread takes a change from a patcher that still exists. */
static void alive(const void *arg)
{
	enum end end = INT3_PUT;

	(void)arg;
	flights_use_wait(1000, 1000);
	map();
	end = HELD;
	patch_until(&end);
	MUST(pc_patch(site, old_code, CODE_LEN) == -EAGAIN);
	MUST(pc_finish_patch(site) == PC_FIRST_WAIT && pc_drain() == 0);
	MUST(flight_look(site) == FLIGHT_OLD && pc_fini() == -EBUSY);
}

/* --- Children --------------------------------------------------------------------------------- */

static void must_exit_well(pid_t pid)
{
	int status;

	MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
	MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static atomic_int at_end; /* what the other has done, plus 1; or -1: it shall go on */
static enum end stop_at;

static void *patch_in_steps(void *unused)
{
	struct word *word;
	struct text_span span;

	word = begun(1);
	MUST(word_put_int3(word) == 0);
	if (stop_at == BACK_PUT)
		word_put_back(word);
	at_end = 1;
	while (at_end > 0)
		usleep(100);
	MUST(word_finish(word) == 0);
	span = word->span;
	word_release(word);
	text_end(&span);
	return unused;
}

static void fork_at(enum end end)
{
	pthread_t thread;
	pid_t pid;

	stop_at = end;
	at_end = 0;
	MUST(pc_patch(site, old_code, CODE_LEN) == 0);
	MUST(pthread_create(&thread, NULL, patch_in_steps, NULL) == 0);
	while (!at_end)
		;
	pid = fork();
	if (pid == 0) {
		alarm(CHILD_SECONDS);
		MUST(code_run(site) == CODE_NEW && pc_drain() == 0);
		must_be_free();
		MUST(pc_fini() == 0);
		_exit(0);
	}
	must_exit_well(pid);
	MUST(flight_look(site) == (end == BACK_PUT ? FLIGHT_INT3_NEW : FLIGHT_INT3_OLD));
	at_end = -1;
	pthread_join(thread, NULL);
	must_be_free();
}

/* The child's executor completes its copy; the parent's patcher its own. */
static void forked(const void *arg)
{
	pid_t pid;

	(void)arg;
	flights_use_wait(1000, 1000);
	map();
	fork_at(INT3_PUT);
	fork_at(BACK_PUT);
	/* What is in flight is finished before the fork. */
	MUST(pc_start_patch(site, new_code, CODE_LEN) == 0);
	pid = fork();
	if (pid == 0) {
		MUST(flight_look(site) == FLIGHT_NEW && pc_drain() == 0);
		_exit(code_prot(site) == RX ? 0 : 1);
	}
	must_exit_well(pid);
	MUST(flight_look(site) == FLIGHT_NEW && pc_drain() == 0);
	must_be_free();
}

/* --- A patcher that is interrupted
 * ---------------------------------------------------------------- */

static struct {
	int count;
	bool run; /* run the site in each sync, ... */
	pid_t parent, child;
	int fork_at; /* ... or fork in this one, from 1 on */
} syncs;

static void on_membarrier(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 0;
	if (++syncs.count == syncs.fork_at) {
		syncs.child = fork();
		if (syncs.child == 0)
			alarm(CHILD_SECONDS);
	}
	if (!syncs.run)
		return;
	syncs.run = false;
	MUST(code_run(site) == CODE_NEW);
}

static void play_membarrier(void)
{
	struct sigaction action = { .sa_sigaction = on_membarrier,
				    .sa_flags = SA_SIGINFO | SA_NODEFER };

	flights_use_membarrier();
	map();
	MUST(sigaction(SIGSYS, &action, NULL) == 0);
	flights_filter_membarrier(SECCOMP_RET_TRAP);
	syncs.parent = getpid();
}

static void by_patch(void)
{
	MUST(pc_patch(site, new_code, CODE_LEN) == 0);
}

static void by_finish(void)
{
	MUST(pc_start_patch(site, new_code, CODE_LEN) == 0);
	while (pc_finish_patch(site) != PC_FINISHED)
		;
}

static void by_drain(void)
{
	MUST(pc_start_patch(site, new_code, CODE_LEN) == 0 && pc_drain() == 0);
}

static void by_batch(void)
{
	struct pc_op op = { .addr = site, .bytes = new_code, .len = CODE_LEN };

	MUST(pc_patch_batch(&op, 1) == 0);
}

static void (*const ways[])(void) = { by_patch, by_finish, by_drain, by_batch };

/* Its own signal handler cannot wait for it, and does the rest. */
static void runs_it(const void *arg)
{
	(void)arg;
	play_membarrier();
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		syncs.run = true;
		ways[i]();
		MUST(!syncs.run && flight_look(site) == FLIGHT_NEW);
		must_be_free();
	}
}

static void forks_in(void (*way)(void), int at)
{
	syncs.count = 0;
	syncs.fork_at = at;
	way();
	syncs.fork_at = 0;
	MUST(flight_look(site) == FLIGHT_NEW);
	must_be_free();
	by_drain();
	must_be_free();
	if (getpid() != syncs.parent)
		_exit(0);
	must_exit_well(syncs.child);
}

/* Both go on with it, each with its own copy; no lock is in the way. */
static void forks(const void *arg)
{
	(void)arg;
	play_membarrier();
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		forks_in(ways[i], 1);
		forks_in(ways[i], 2);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ended), child_unit_test(several_starts),
		child_unit_test(noted_only),  child_unit_test(alive),
		child_unit_test(forked),      child_unit_test(runs_it),
		child_unit_test(forks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
