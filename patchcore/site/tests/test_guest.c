/* SPDX-License-Identifier: MIT */
/*
 * Places of guests: behind each instruction of one that comes another comes, what was left behind
 * by a child that was killed or by fork() is gone and stays gone, and threads that wait leave room.
 * A task that ends behind any instruction, or a thread in its place, keeps none.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "patchcore/site/thread.c"
#include "patchcore/tests/child.h"
#include "patchcore/tests/step.h"

static struct {
	unsigned long at; /* the other one comes behind so many instructions */
	bool over;	  /* there are no more */
} * meeting;		  /* shared with processes that are forked */

static uint64_t left, first, other;
static void (*break_it)(void);

static bool is_gone_or_none(uint64_t id)
{
	return !id || thread_is_gone(id);
}

/* As if the epoch were stored last. */
static void have_epoch_late(void)
{
	for (unsigned i = 0; i < GUESTS && !first; i++)
		if (guests[i].word)
			guests[i].epoch = 0;
}

/* As if the id of the one before stood until the next one's. */
static void have_id_stay(void)
{
	struct guest *guest = &guests[left % SLOTS - (SLOTS - GUESTS)];

	if (!guest->id)
		guest->id = left;
}

static bool come_there(void)
{
	if (break_it)
		break_it();
	MUST(is_gone_or_none(left));
	if (step_now.count != meeting->at)
		return true;
	other = thread_guest();
	MUST(other && is_gone_or_none(left));
	return true;
}

static void come_first(void)
{
	first = thread_guest();
}

static void meet(void)
{
	step_install();
	step_run(come_first, come_there);
	meeting->over = !other;
	MUST(first && is_gone_or_none(left));
	if (!other)
		return;
	MUST((first ^ other) & ((1u << THREAD_SLOT_BITS) - 1));
	MUST(!thread_is_gone(first) && !thread_is_gone(other));
	thread_guest_leave(first);
	thread_guest_leave(other);
}

static void never_used(const void *arg)
{
	(void)arg;
	meet();
}

static void left_by_fork(const void *arg)
{
	pid_t pid;
	int status;

	(void)arg;
	left = thread_guest();
	MUST(left && !thread_is_gone(left));
	pid = fork();
	if (!pid) {
		thread_adopt();
		meet();
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
}

static char child_stack[65536] __attribute__((aligned(16)));

static int die_as_guest(void *unused)
{
	(void)unused;
	left = thread_guest();
	syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
	return 0;
}

/* Two at a time, as where a task that becomes known runs into an INT3. */
static int die_as_two(void *unused)
{
	left = thread_guest();
	other = thread_guest();
	thread_guest_leave(other);
	first = thread_guest();
	return die_as_guest(unused);
}

/* It has no list of robust futexes but that of the guest, by which the kernel tells of its end. */
static void have_child_killed(int (*child)(void *))
{
	pid_t pid = clone(child, child_stack + sizeof(child_stack),
			  CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
	int status;

	MUST(pid > 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	MUST(left && thread_is_gone(left));
}

static void left_by_kill(const void *arg)
{
	(void)arg;
	have_child_killed(die_as_guest);
	meet();
}

static void left_by_two(const void *arg)
{
	(void)arg;
	have_child_killed(die_as_two);
	MUST(first && other && first != left && thread_is_gone(first) && thread_is_gone(other));
}

#define CROWD (2 * GUESTS)

static void *become_known(void *unused)
{
	MUST(thread_id());
	return unused;
}

/* The thread that makes a record may run into an INT3, and is a guest there, however many wait. */
static void crowded(const void *arg)
{
	pthread_t threads[CROWD];
	uint64_t guest = lock_making(), within;

	(void)arg;
	MUST(guest);
	for (unsigned i = 0; i < CROWD; i++)
		MUST(pthread_create(&threads[i], NULL, become_known, NULL) == 0);
	usleep(100000);
	alarm(20);
	while (!(within = thread_guest()))
		usleep(1000);
	thread_guest_leave(within);
	atomic_store_explicit(&making, 0, memory_order_release);
	thread_guest_leave(guest);
	for (unsigned i = 0; i < CROWD; i++)
		pthread_join(threads[i], NULL);
}

/* --- Places of tasks that end without giving them back ---------------------------------------- */

#define ENDED (GUESTS + 6) /* more than there are places */

static bool die_there(void)
{
	if (step_now.count == meeting->at)
		syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
	return true;
}

static void leave_first(void)
{
	thread_guest_leave(first);
}

static int step_claim(void *unused)
{
	step_run(come_first, die_there);
	syscall(SYS_exit_group, 0);
	return unused != NULL;
}

/* The list that it comes into is that of the guest around it. */
static int step_nested(void *unused)
{
	MUST(thread_guest());
	return step_claim(unused);
}

static int step_leave(void *unused)
{
	come_first();
	step_run(leave_first, die_there);
	syscall(SYS_exit_group, 0);
	return unused != NULL;
}

/* One that finds none asks after those that have them; the next call may have one. */
static uint64_t guest_soon(void)
{
	uint64_t id = thread_guest();

	return id ? id : thread_guest();
}

static void must_all_be_free(void)
{
	for (unsigned i = 0; i < GUESTS; i++)
		MUST(guest_soon());
	MUST(!thread_guest());
}

/* Children of vfork(), killed behind the same instruction. One place that is lost is missed. */
static void ended_by_kill(int (*child)(void *))
{
	int status = 0;

	step_install();
	for (unsigned i = 0; i < 2; i++) {
		pid_t pid = clone(child, child_stack + sizeof(child_stack),
				  CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);

		MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
		MUST(WIFEXITED(status) || WTERMSIG(status) == SIGKILL);
	}
	meeting->over = WIFEXITED(status);
	/* Of a child that runs to its end, the guest that it leaves behind is its own affair. */
	if (!meeting->over)
		must_all_be_free();
}

static void killed_in_claim(const void *arg)
{
	(void)arg;
	ended_by_kill(step_claim);
}

static void killed_in_nested(const void *arg)
{
	(void)arg;
	ended_by_kill(step_nested);
}

static void killed_in_leave(const void *arg)
{
	(void)arg;
	ended_by_kill(step_leave);
}

/* As a filter ends the calling thread alone. */
static void *end_as_guest(void *unused)
{
	guest_soon();
	syscall(SYS_exit, 0);
	return unused;
}

static void *end_while_making(void *unused)
{
	MUST(lock_making());
	syscall(SYS_exit, 0);
	return unused;
}

static void threads_end(const void *arg)
{
	pthread_t thread;

	(void)arg;
	if (CHILD_ASAN)
		child_skip(
			"the sanitizer keeps an account of threads, which such an end is not in");
	alarm(20);
	MUST(pthread_create(&thread, NULL, end_while_making, NULL) == 0);
	pthread_join(thread, NULL);
	MUST(thread_id());
	for (unsigned i = 0; i < ENDED; i++) {
		MUST(pthread_create(&thread, NULL, end_as_guest, NULL) == 0);
		pthread_join(thread, NULL);
	}
	/* The kernel wakes a thread that joins this one a moment before this one is gone. */
	usleep(10000);
	must_all_be_free();
}

static void test_met_at_each_instruction(void **state)
{
	if (CHILD_TSAN || CHILD_ASAN)
		skip();
	*meeting = (typeof(*meeting)){ 0 };
	while (!meeting->over) {
		meeting->at++;
		child_must_pass((child_fn *)*state, NULL);
	}
	print_message("met at each of %lu instructions\n", meeting->at - 1);
	assert_true(meeting->at > 20);
}

/* The same is noticed where it is broken. */
static void must_be_noticed(child_fn *fn, void (*how)(void))
{
	int status = 0;

	if (CHILD_TSAN || CHILD_ASAN)
		skip();
	*meeting = (typeof(*meeting)){ 0 };
	break_it = how;
	while (!meeting->over && !status) {
		meeting->at++;
		status = child_run(fn, NULL);
	}
	break_it = NULL;
	assert_int_not_equal(status, 0);
}

static void test_late_epoch_is_noticed(void **state)
{
	(void)state;
	must_be_noticed(never_used, have_epoch_late);
}

static void test_id_that_stays_is_noticed(void **state)
{
	(void)state;
	must_be_noticed(left_by_fork, have_id_stay);
	must_be_noticed(left_by_kill, have_id_stay);
}

static int share_meeting(void **state)
{
	(void)state;
	meeting = mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	return meeting == MAP_FAILED ? -1 : 0;
}

#define MET(fn)                                                                                    \
	{                                                                                          \
#fn, test_met_at_each_instruction, NULL, NULL, (void *)(fn)                        \
	}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		MET(never_used),
		MET(left_by_fork),
		MET(left_by_kill),
		MET(killed_in_claim),
		MET(killed_in_nested),
		MET(killed_in_leave),
		child_unit_test(threads_end),
		child_unit_test(left_by_two),
		child_unit_test(crowded),
		cmocka_unit_test(test_late_epoch_is_noticed),
		cmocka_unit_test(test_id_that_stays_is_noticed),
	};

	return cmocka_run_group_tests(tests, share_meeting, NULL);
}
