/* SPDX-License-Identifier: MIT */
/*
 * Executors that share the memory, and are no threads of the process: children of vfork(),
 * and of clone(CLONE_VM) in this and another namespace of process ids.
 */
#define _GNU_SOURCE /* memfd_create(), clone() */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/site/thread.h"
#include "patchcore/tests/barrier.h"
#include "patchcore/tests/scale.h"
#include "patchcore/tests/step.h"

#define OTHER  0x31323334u
#define FOURTH 0x41424344u

static uint8_t *pages, *site;
static uint8_t old_code[CODE_LEN], new_code[CODE_LEN], other_code[CODE_LEN];

static void map(void)
{
	code_load(old_code, CODE_OLD);
	code_load(new_code, CODE_NEW);
	code_load(other_code, OTHER);
	pages = flights_map(1, RX, 32);
	site = flight_site(pages, 10);
	MUST(pc_text_open(pages, CODE_PAGE) == 0);
	/* So that nothing of it is new under way. */
	MUST(pc_patch(site, new_code, CODE_LEN) == 0 && pc_patch(site, old_code, CODE_LEN) == 0);
}

/* --- Children -------------------------------------------------------------------------------- */

/* How a child comes to share the memory. */
struct sharing {
	int flags;
	bool shares_tls; /* which is as vfork() does it */
};

static const struct sharing sharings[] = {
	{ CLONE_VM | CLONE_VFORK | SIGCHLD, true },
	{ CLONE_VM | SIGCHLD, true },
	{ CLONE_VM | CLONE_NEWPID | SIGCHLD, true },
};

static char child_stack[65536] __attribute__((aligned(16)));

/* Does not call libc, whose state is the parent's. */
static void leave(int status)
{
	__asm__ volatile("syscall" : : "a"(SYS_exit_group), "D"(status) : "rcx", "r11", "memory");
	__builtin_unreachable();
}

static int run_in_child(void *wanted)
{
	leave(code_run(site) == *(uint32_t *)wanted ? 0 : 1);
	return 1;
}

/* Its process id, or 0 where this system has no such namespaces. */
static pid_t make_child(const struct sharing *sharing, uint32_t wanted)
{
	static uint32_t number;
	pid_t pid;

	number = wanted;
	pid = clone(run_in_child, child_stack + sizeof(child_stack), sharing->flags, &number);
	MUST(pid > 0 || (sharing->flags & CLONE_NEWPID));
	return pid > 0 ? pid : 0;
}

static void must_end_well(pid_t pid)
{
	int status;

	MUST(waitpid(pid, &status, 0) == pid && status == 0);
}

/* --- A patcher whose thread had such a child ------------------------------------------------- */

static const struct sharing *sharing_now;
static atomic_bool child_was, restored, stands, go_on;
static _Atomic(pthread_t) patcher;

static int stand_at_first(void)
{
	if (pthread_self() != patcher || stands)
		return 0;
	stands = true;
	barrier_await(&go_on, 5);
	return 0;
}

/* Nothing of the library was ever called by this thread, only by its child. */
static void *be_parent_then_patch(void *unused)
{
	pid_t pid = make_child(sharing_now, CODE_NEW);

	if (pid)
		must_end_well(pid);
	child_was = true;
	while (!restored)
		sched_yield();
	patcher = pthread_self();
	MUST(pc_patch(site, other_code, CODE_LEN) == 0);
	return unused;
}

static void not_gone(const void *arg)
{
	pthread_t thread;

	sharing_now = arg;
	flights_use_membarrier();
	barrier_play(stand_at_first);
	map();
	MUST(pc_start_patch(site, new_code, CODE_LEN) == 0);
	MUST(pthread_create(&thread, NULL, be_parent_then_patch, NULL) == 0);
	while (!child_was)
		sched_yield();
	MUST(pc_drain() == 0);
	MUST(pc_patch(site, old_code, CODE_LEN) == 0);
	restored = true;
	MUST(barrier_await(&stands, 5));
	/* The patcher is there, so all that is refused. */
	MUST(pc_patch(site, new_code, CODE_LEN) == -EAGAIN);
	MUST(pc_finish_patch(site) == PC_FIRST_WAIT && pc_drain() == 0);
	MUST(pc_finish_patch(site) == PC_FIRST_WAIT && flight_look(site) == FLIGHT_INT3_OLD);
	go_on = true;
	pthread_join(thread, NULL);
	MUST(code_run(site) == OTHER && pc_text_close(pages, CODE_PAGE) == 0);
	MUST(code_prot(pages) == RX && pc_fini() == 0);
}

/* A child's trap says nothing about the thread that it was born of. */
static void test_not_gone(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(sharings) / sizeof(*sharings); i++)
		child_must_pass(not_gone, &sharings[i]);
}

/* --- A child that is held up while it helps -------------------------------------------------- */

static pid_t parent;
static atomic_bool child_stands;
static _Atomic(int) first_seen; /* what the first sync of the second change saw, plus 1 */
static atomic_bool second_began;

static enum flight_bytes look_at_other(void)
{
	const size_t back = CODE_LEN - FLIGHT_FRONT;

	if (site[0] != CODE_INT3)
		return FLIGHT_MIXED;
	return memcmp(site + FLIGHT_FRONT, other_code + FLIGHT_FRONT, back) == 0 ? FLIGHT_INT3_NEW
										 : FLIGHT_INT3_OLD;
}

static int hold_child_up(void)
{
	int unset = 0;

	if (second_began)
		atomic_compare_exchange_strong(&first_seen, &unset, (int)look_at_other() + 1);
	if ((pid_t)syscall(SYS_getpid) == parent || child_stands)
		return 0;
	child_stands = true;
	barrier_await(&go_on, 5);
	return 0;
}

static void *be_parent(void *pid)
{
	*(pid_t *)pid = make_child(sharing_now, OTHER);
	return NULL;
}

static void held_up(const void *arg)
{
	pthread_t thread;
	pid_t pid;

	flights_use_membarrier();
	parent = (pid_t)syscall(SYS_getpid);
	barrier_play(hold_child_up);
	map();
	MUST(pc_start_patch(site, new_code, CODE_LEN) == 0);
	/* By a thread that the library has never seen. */
	sharing_now = arg;
	MUST(pthread_create(&thread, NULL, be_parent, &pid) == 0);
	pthread_join(thread, NULL);
	if (!pid)
		child_skip("no other namespace of process ids to be had");
	MUST(barrier_await(&child_stands, 5));
	/* Either the child is waited for, or its part is done without it. */
	for (int i = 0; i < 5 && pc_finish_patch(site) != PC_FINISHED; i++)
		;
	if (pc_finish_patch(site) == PC_FINISHED) {
		MUST(flight_look(site) == FLIGHT_NEW);
		MUST(pc_start_patch(site, other_code, CODE_LEN) == 0);
		second_began = true;
		go_on = true;
		usleep(20000);
	} else {
		go_on = true;
		MUST(pc_drain() == 0 && flight_look(site) == FLIGHT_NEW);
		MUST(pc_start_patch(site, other_code, CODE_LEN) == 0);
	}
	MUST(pc_drain() == 0 && code_run(site) == OTHER);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* A sync of the first change does not count for the second. */
	MUST(!first_seen || first_seen == FLIGHT_INT3_OLD + 1);
	MUST(pc_patch(site, old_code, CODE_LEN) == 0 && code_run(site) == CODE_OLD);
	MUST(pc_fini() == 0);
}

/* The child is alive and still owns its site; or owns none while it waits for the kernel. */
static void test_held_up(void **state)
{
	(void)state;
	child_must_pass(held_up, &sharings[1]);
	child_must_pass(held_up, &sharings[2]);
}

/* --- Many of them, and then patchers --------------------------------------------------------- */

#define CHILDREN 300
#define PATCHES	 (unsigned long)(200000 * test_scale())

static atomic_uint ready;

/* Each patcher has numbers of its own, so that a mix of two of them shows. */
static const uint32_t numbers[2][2] = { { CODE_OLD, CODE_NEW }, { OTHER, FOURTH } };

static bool is_number(uint32_t number)
{
	for (int i = 0; i < 4; i++)
		if (number == numbers[i / 2][i % 2])
			return true;
	return false;
}

/* There is always a change in flight, which a child runs into. */
static void vfork_often(unsigned turn)
{
	uint8_t code[CODE_LEN];
	int ret;

	for (unsigned i = 0; i < CHILDREN / 2; i++) {
		must_end_well(make_child(&sharings[0], CODE_NEW));
		MUST(pc_drain() == 0);
		code_load(code, i == CHILDREN / 2 - 1 && turn ? CODE_OLD : CODE_NEW);
		/* An executor that came too late to help may own the site, and be preempted just
		 * then. */
		while ((ret = pc_start_patch(site, code, CODE_LEN)) == -EAGAIN)
			sched_yield();
		MUST(ret == 0);
	}
}

static void *vfork_then_patch(void *mine)
{
	unsigned turn = *(unsigned *)mine;
	uint8_t code[2][CODE_LEN];

	for (int i = 0; i < 2; i++)
		code_load(code[i], numbers[turn][i]);
	while (ready != turn)
		sched_yield();
	vfork_often(turn);
	ready++;
	while (ready < 2)
		sched_yield();
	for (unsigned long i = 0; i < PATCHES; i++) {
		int ret = pc_patch(site, code[i % 2], CODE_LEN);

		MUST(ret == 0 || ret == -EAGAIN);
		/* Each patcher does so while it waits for the other. */
		if (ret < 0)
			MUST(pc_finish_patch(site) >= 0);
	}
	ready++;
	return NULL;
}

static void tears(const void *arg)
{
	static unsigned turns[] = { 0, 1 };
	pthread_t threads[2];

	(void)arg;
	if (CHILD_TSAN)
		child_skip("the thread sanitizer does not follow a vfork");
	flights_use_membarrier();
	map();
	MUST(pc_start_patch(site, new_code, CODE_LEN) == 0);
	for (int i = 0; i < 2; i++)
		MUST(pthread_create(&threads[i], NULL, vfork_then_patch, &turns[i]) == 0);
	/* With pauses: where there are two CPUs, both patchers are to run at a time. */
	for (unsigned i = 1; ready < 4; i++) {
		MUST(is_number(code_run(site)));
		if (i % 32 == 0)
			usleep(20);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	MUST(pc_drain() == 0 && is_number(code_run(site)));
	MUST(pc_text_close(pages, CODE_PAGE) == 0 && pc_fini() == 0);
}

/* --- Killed at each instruction -------------------------------------------------------------- */

static struct {
	unsigned long at; /* it is killed behind so many instructions */
	bool over;	  /* there are no more */
} * killed;		  /* shared with processes that are forked */

static bool die_there(void)
{
	if (step_now.count == killed->at)
		syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
	return true;
}

static int step_until_killed(void *run)
{
	step_run((void (*)(void))run, die_there);
	leave(0);
	return 1;
}

/* A child that has nothing of the kernel's that a thread has, and all that memory holds. */
static void kill_child_of(void (*run)(void))
{
	pid_t pid = clone(step_until_killed, child_stack + sizeof(child_stack),
			  CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)run);
	int status;

	MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
	killed->over = WIFEXITED(status) && !WEXITSTATUS(status);
	MUST(killed->over || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
}

static void register_self(void)
{
	thread_id();
}

/* In the list of the thread whose memory the child has. */
static pthread_mutex_t robust;

static void make_robust(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	MUST(pthread_mutex_init(&robust, &attr) == 0);
	pthread_mutexattr_destroy(&attr);
}

static void *have_child_killed(void *id)
{
	MUST(pthread_mutex_lock(&robust) == 0);
	kill_child_of(register_self);
	*(uint64_t *)id = thread_id();
	MUST(*(uint64_t *)id && !thread_is_gone(*(uint64_t *)id));
	return NULL;
}

static void *tell_id(void *id)
{
	*(uint64_t *)id = thread_id();
	MUST(*(uint64_t *)id && !thread_is_gone(*(uint64_t *)id));
	return NULL;
}

/* No thread that comes for the first time waits, nor does the one that had the child. */
static void killed_while_new(const void *arg)
{
	void *(*const threads[])(void *) = { have_child_killed, tell_id, tell_id };
	uint64_t ids[3] = { 0 };
	pthread_t thread;

	(void)arg;
	alarm(20);
	step_install();
	make_robust();
	for (int i = 0; i < 3; i++) {
		MUST(pthread_create(&thread, NULL, threads[i], &ids[i]) == 0);
		pthread_join(thread, NULL);
	}
	for (int i = 0; i < 3; i++) {
		MUST(ids[i] && ids[i] != ids[(i + 1) % 3]);
		while (!thread_is_gone(ids[i]))
			usleep(100);
	}
	MUST(thread_id() && thread_await_all());
	/* The kernel tells that its owner has ended. */
	MUST(pthread_mutex_lock(&robust) == EOWNERDEAD);
}

static void share_killed(void)
{
	killed = mmap(NULL, sizeof(*killed), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	MUST(killed != MAP_FAILED);
	*killed = (typeof(*killed)){ 0 };
}

static void test_killed_while_new(void **state)
{
	(void)state;
	if (CHILD_TSAN || CHILD_ASAN)
		skip();
	share_killed();
	while (!killed->over) {
		killed->at++;
		child_must_pass(killed_while_new, NULL);
	}
	print_message("killed at each of %lu instructions\n", killed->at - 1);
	assert_true(killed->at > 100);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_gone),
		cmocka_unit_test(test_held_up),
		child_unit_test(tears),
		cmocka_unit_test(test_killed_while_new),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
