/* SPDX-License-Identifier: MIT */
/* One visit: an operation, what happens at a step of it, and what must hold then. */
#define _GNU_SOURCE
#include "patchcore/life/tests/life.h"

#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

#include "patchcore/async.h"
#include "patchcore/patchcore.h"
#include "patchcore/syscall/task.h"
#include "patchcore/tests/code.h"

#define LIMIT_MS (CHILD_ASAN ? 60000 : 20000) /* of a visit, on a machine that starves it */
#define POLL_NS	 200000			      /* between two looks at whether the patcher is done */
#define LOOK_NS	 500000			      /* between two looks at what the main thread had */

struct seen *seen;
bool life_in_child, life_raw_child;
pthread_t life_patcher;
pid_t life_patcher_tid;
atomic_bool life_patcher_stands;
sigjmp_buf life_out;
unsigned life_turn;

static const struct visit *visit_now;

/* --- What must hold
 * --------------------------------------------------------------------------------- */

static bool is(unsigned i, uint32_t number)
{
	return life_run(i) == number;
}

void life_must_be_whole(void)
{
	for (unsigned i = 0; i < life.sites; i++) {
		const struct life_site *site = &life.site[i];
		uint32_t number = life_run(i);

		MUST(number == site->old || number == site->new || number == site->between);
	}
}

static void all_must_be(bool new)
{
	for (unsigned i = 0; i < life.sites; i++)
		MUST(is(i, new ? life.site[i].new : life.site[i].old));
}

int life_change(unsigned i, bool to_new)
{
	return visit_now->protocol->change(i, to_new);
}

/* A change that is refused, in a child that shares its code or by a rule, changes nothing. */
static void must_change(unsigned i, bool to_new, bool forbidden)
{
	uint32_t before = life_run(i);
	int ret = life_change(i, to_new);

	if (ret == 0) {
		MUST(is(i, to_new ? life.site[i].new : life.site[i].old));
		return;
	}
	/* -EPERM: a page that was just getting its alias, which is still the parent's memory. */
	MUST(forbidden || ((ret == -EACCES || ret == -EPERM) &&
			   (life_in_child || life_raw_child || visit_now->event->ends)));
	/* The code that such a child shares with its parent, that may change. */
	MUST(is(i, before) || life_raw_child);
	if ((ret == -EACCES || ret == -EPERM) && !forbidden)
		seen->refused++;
}

/* What a thread that has ended was about to open or close, or the parent of a child was. */
static bool may_be_open(void)
{
	return life_in_child || (visit_now->event->ends && !visit_now->protocol->ready);
}

void life_must_work(bool forbidden)
{
	/*
	 * No more is tried without libc, of which any lock may be held. A new target of a call
	 * takes memory, and the address sanitizer's allocator has a lock for each size.
	 */
	if (!life_raw_child || (visit_now->protocol->ready && !CHILD_ASAN))
		for (unsigned i = 0; i < life.sites; i++)
			for (int turn = 0; turn < 3; turn++)
				must_change(i, turn % 2, forbidden);
	if (life_raw_child)
		return;
	MUST(pc_drain() == 0 || forbidden);
	MUST(code_prot(life.pages) == life.prot || may_be_open());
	MUST(pc_fini() == 0 || forbidden);
	MUST(code_prot(life.pages) == RX);
	MUST(point_is_installed());
	life_must_be_whole();
}

/* --- Children
 * ----------------------------------------------------------------------------------------- */

#define CHILDREN_MAX 8

static pid_t children[CHILDREN_MAX];
static unsigned child_count;

void life_child(pid_t pid)
{
	MUST(pid > 0 && child_count < CHILDREN_MAX);
	children[child_count++] = pid;
	seen->children++;
}

void life_await_children(void)
{
	int status;

	for (unsigned i = 0; i < child_count; i++) {
		MUST(waitpid(children[i], &status, 0) == children[i]);
		if (status)
			dprintf(2, "a child ended with status %#x\n", (unsigned)status);
		MUST(status == 0);
	}
	child_count = 0;
}

/* --- A visit
 * ------------------------------------------------------------------------------------------- */

static _Atomic(uint32_t) asked, answered; /* futexes */

static void nap(_Atomic(uint32_t) *word, uint32_t old, long ns)
{
	struct timespec time = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, old, &time, NULL, 0);
}

static void set(_Atomic(uint32_t) *word)
{
	*word = 1;
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static clockid_t main_clock; /* the CPU time of the main thread */

static int64_t main_cpu_ns(void)
{
	struct timespec time;

	MUST(clock_gettime(main_clock, &time) == 0);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/*
 * Until the main thread is done, or has had so much time: to run or asleep. It may be waiting for
 * this thread. Time in which it lacks a CPU does not count, however busy the machine is.
 */
static void await_answer(int64_t most_ns)
{
	int64_t cpu = main_cpu_ns(), asleep = 0;

	while (!answered && asleep + main_cpu_ns() - cpu < most_ns) {
		nap(&answered, 0, LOOK_NS);
		if (task_state(getpid()) != 'R')
			asleep += LOOK_NS;
	}
}

static void at_point(void)
{
	const struct event *event = visit_now->event;

	seen->met = true;
	if (event->beside) {
		life_patcher_stands = event->wait_ms > 0;
		set(&asked);
		if (event->wait_ms)
			await_answer(event->wait_ms * INT64_C(1000000));
		life_patcher_stands = false;
	}
	if (event->to_it)
		event->to_it();
}

static void end_child(int ret)
{
	if (ret < 0 && ret != -EACCES)
		seen->child_ret = ret;
	life_must_be_whole();
	life_must_work(false);
	_exit(0);
}

static void *operate(void *unused)
{
	int ret;

	life_patcher_tid = (pid_t)syscall(SYS_gettid);
	if (sigsetjmp(life_out, 1) == 0) {
		point_arm(&visit_now->point, at_point);
		ret = visit_now->protocol->operate();
		point_disarm();
		if (life_in_child)
			end_child(ret);
		seen->ret = ret;
		seen->returned = true;
	}
	pthread_testcancel();
	return unused;
}

/* Until the patcher has ended; meanwhile it serves what the patcher asks for. */
static void serve(void)
{
	bool done = false, joined = false;

	while (!joined || (asked && !done)) {
		if (asked && !done) {
			visit_now->event->beside();
			done = true;
			set(&answered);
		}
		joined = joined || pthread_tryjoin_np(life_patcher, NULL) == 0;
		if (!joined)
			nap(&asked, done, POLL_NS);
	}
}

static void must_be_as_told(void)
{
	bool single = visit_now->protocol->single;

	life_must_be_whole();
	if (!seen->returned)
		MUST(visit_now->event->ends);
	else if (seen->ret == 0)
		all_must_be(true);
	else if (single)
		all_must_be(false);
}

static void pay(const struct visit *visit)
{
	const struct event *event;

	visit_now = visit;
	event = visit_now->event;
	life_turn = visit_now->turn;
	point_install();
	if (event->before)
		event->before();
	visit_now->protocol->prepare();
	if (event->prepare)
		event->prepare();
	MUST(pthread_getcpuclockid(pthread_self(), &main_clock) == 0);
	MUST(pthread_create(&life_patcher, NULL, operate, NULL) == 0);
	serve();
	if (event->after)
		event->after();
	life_await_children();
	must_be_as_told();
	life_must_work(event->forbids);
}

/* --- Surveys
 * --------------------------------------------------------------------------------------------- */

struct look {
	const struct protocol *protocol;
	struct survey *survey;
	unsigned call;
};

static void *take_steps(void *arg)
{
	const struct look *look = arg;

	point_survey(look->survey, look->call, look->protocol->steps, life_state);
	MUST(look->protocol->operate() == 0);
	point_disarm();
	return NULL;
}

static void survey_call(const void *arg)
{
	const struct look *look = arg;
	pthread_t patcher;

	point_install();
	look->protocol->prepare();
	MUST(pthread_create(&patcher, NULL, take_steps, (void *)look) == 0);
	pthread_join(patcher, NULL);
}

/* Where there are many calls, only each so many of those behind which nothing has changed. */
#define CALLS_ENOUGH 32

static bool is_of_interest(const struct survey *survey, unsigned call)
{
	return survey->state[call] != survey->state[call + 1] ||
	       call % (1 + survey->calls / CALLS_ENOUGH) == 0;
}

bool life_survey(const struct protocol *protocol, struct survey *survey)
{
	struct look look = { protocol, survey, CALLS_MAX };

	/* At full speed first, to see what the calls are. */
	if (child_run(survey_call, &look) != 0 || survey->calls >= CALLS_MAX)
		return false;
	for (look.call = 0; look.call <= survey->calls; look.call++)
		if (is_of_interest(survey, look.call) && child_run(survey_call, &look) != 0)
			return false;
	return survey->count < POINTS_MAX;
}

/* --- In a process of its own
 * ----------------------------------------------------------------------------- */

/* Not by a signal to it: it may be stopped. */
static int await(pid_t pid)
{
	int status = -1, fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd ended = { .fd = fd, .events = POLLIN };
	bool hangs = poll(&ended, 1, LIMIT_MS) == 0;

	close(fd);
	if (hangs)
		kill(-pid, SIGKILL);
	waitpid(pid, &status, 0);
	return hangs ? -1 : status;
}

int life_visit(const struct visit *visit)
{
	static const struct rlimit no_core;
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		signal(SIGILL, SIG_DFL);
		setrlimit(RLIMIT_CORE, &no_core);
		pay(visit);
		_exit(0);
	}
	if (pid < 0)
		return -1;
	setpgid(pid, pid);
	status = await(pid);
	/* Children that it has left behind. */
	kill(-pid, SIGKILL);
	return status;
}
