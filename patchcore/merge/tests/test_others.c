/* SPDX-License-Identifier: MIT */
/* Every other thread is asked, in any state, and in bounded time. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>

#include "patchcore/merge/others.c"
#include "patchcore/tests/child.h"

#define THREADS 8
#define ROUNDS	50

static atomic_bool stop;
static _Atomic(unsigned) asked, slept;
static __thread _Atomic(unsigned) asked_here;
static sem_t ready;

static void count_call(ucontext_t *context, struct others_room *room, void *arg)
{
	MUST(context && arg == &asked);
	/* A room of its own: with eight threads in here at once they would meet. */
	*(volatile pid_t *)room->bytes = (pid_t)syscall(SYS_gettid);
	atomic_fetch_add(&asked, 1);
	atomic_fetch_add(&asked_here, 1);
	MUST(*(volatile pid_t *)room->bytes == (pid_t)syscall(SYS_gettid));
}

static bool count_asleep(pid_t tid, const struct task_call *call, uint64_t blocked, bool takes,
			 struct others_room *room, void *arg)
{
	(void)blocked;
	(void)takes;
	MUST(tid > 0 && call->sleeps && call->pc && call->sp && room && arg == &asked);
	atomic_fetch_add(&slept, 1);
	return true;
}

static void prepare(void)
{
	if (CHILD_TSAN)
		child_skip("the thread sanitizer delivers signals when it likes");
	MUST(sem_init(&ready, 0, 0) == 0);
}

static pthread_t start(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, run, arg) == 0);
	MUST(sem_wait(&ready) == 0);
	return thread;
}

static void block_all(void)
{
	sigset_t all;

	sigfillset(&all);
	MUST(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
}

/* The signal stays with the library, and one is enough. */
static bool one_handler(void)
{
	struct sigaction action;
	int handlers = 0;

	for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
		if (sigaction(i, NULL, &action) == 0 &&
		    ((action.sa_flags & SA_SIGINFO) || action.sa_handler != SIG_DFL))
			handlers++;
	return handlers == 1;
}

/* --- Threads of every kind ---------------------------------------------------------- */

static void *spin(void *arg)
{
	sem_post(&ready);
	while (!stop)
		;
	return arg;
}

static _Atomic(uint32_t) never;

static void *sleep_on(void *arg)
{
	sem_post(&ready);
	/* Restarted after our signal, so it comes back only when woken. */
	while (!stop)
		syscall(SYS_futex, &never, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	return arg;
}

static void wake(void)
{
	stop = true;
	never = 1;
	syscall(SYS_futex, &never, FUTEX_WAKE_PRIVATE, 1000, NULL, NULL, 0);
}

static void each_once(const void *arg)
{
	pthread_t threads[THREADS];

	(void)arg;
	prepare();
	for (int i = 0; i < THREADS; i++)
		threads[i] = start(i % 2 ? spin : sleep_on, NULL);
	for (unsigned i = 1; i <= ROUNDS; i++) {
		MUST(others_look(count_call, NULL, &asked) == 0);
		MUST(asked == i * THREADS);
		MUST(asked_here == 0);
		MUST(one_handler());
	}
	wake();
	for (int i = 0; i < THREADS; i++)
		MUST(pthread_join(threads[i], NULL) == 0);
	MUST(others_look(count_call, NULL, &asked) == 0 && asked == ROUNDS * THREADS);
}

/* --- Threads that come and go ---------------------------------------------------------- */

static void *end_at_once(void *arg)
{
	return arg;
}

static void *storm(void *arg)
{
	pthread_t thread;

	sem_post(&ready);
	while (!stop)
		if (pthread_create(&thread, NULL, end_at_once, NULL) == 0)
			pthread_join(thread, NULL);
	return arg;
}

static void come_and_go(const void *arg)
{
	pthread_t threads[3];

	(void)arg;
	prepare();
	for (int i = 0; i < 3; i++)
		threads[i] = start(storm, NULL);
	for (unsigned i = 1; i <= ROUNDS; i++) {
		MUST(others_look(count_call, NULL, &asked) == 0);
		MUST(asked >= 3 * i);
	}
	stop = true;
	for (int i = 0; i < 3; i++)
		MUST(pthread_join(threads[i], NULL) == 0);
}

static void *look_and_end(void *arg)
{
	sem_wait(&ready);
	/* Until the first thread is a zombie and no more. */
	for (int i = 0; i < 1000; i++) {
		struct timespec ms = { .tv_nsec = 1000000 };

		nanosleep(&ms, NULL);
		asked = 0;
		MUST(others_look(count_call, NULL, &asked) == 0);
		if (asked == 0)
			_exit(0);
	}
	_exit(1);
	return arg;
}

/* The first thread has ended and stays listed for ever. */
static void first_has_ended(const void *arg)
{
	pthread_t thread;

	(void)arg;
	prepare();
	MUST(pthread_create(&thread, NULL, look_and_end, NULL) == 0);
	sem_post(&ready);
	pthread_exit(NULL);
}

/* --- Threads that do not take the signal ------------------------------------------------ */

static void *spin_blocked(void *arg)
{
	block_all();
	return spin(arg);
}

static void *sleep_blocked(void *arg)
{
	block_all();
	return sleep_on(arg);
}

static void *wait_for_signals(void *arg)
{
	sigset_t all;
	siginfo_t info;

	block_all();
	sigfillset(&all);
	sem_post(&ready);
	MUST(sigwaitinfo(&all, &info) == SIGUSR1);
	return arg;
}

static void other_handler(int signal)
{
	(void)signal;
}

static void must_time_out(void)
{
	struct sigaction action = { .sa_handler = other_handler };
	pthread_t other = start(sleep_on, NULL);

	MUST(others_look(count_call, count_asleep, &asked) == -ETIMEDOUT);
	MUST(one_handler());
	/* Now it blocks what a thread in that handler blocks, and is sent the signal. */
	sigfillset(&action.sa_mask);
	MUST(sigaction(SIGTRAP, &action, NULL) == 0);
	MUST(others_look(count_call, count_asleep, &asked) == -ETIMEDOUT);
	MUST(one_handler());
	/* It is still pending there: it is the library's own. */
	MUST(others_look(count_call, count_asleep, &asked) == -ETIMEDOUT);
	MUST(one_handler());
	wake();
	MUST(pthread_join(other, NULL) == 0);
}

/* Let the signals in, which may be pending: nothing must come of it. */
static void *spin_then_unblock(void *arg)
{
	sigset_t none;

	spin_blocked(arg);
	sigemptyset(&none);
	MUST(pthread_sigmask(SIG_SETMASK, &none, NULL) == 0);
	MUST(asked_here == 0);
	return arg;
}

static void blocked_and_running(const void *arg)
{
	pthread_t thread;

	(void)arg;
	prepare();
	thread = start(spin_then_unblock, NULL);
	must_time_out();
	MUST(pthread_join(thread, NULL) == 0);
}

static void blocked_and_asleep(const void *arg)
{
	pthread_t thread[2];

	(void)arg;
	prepare();
	thread[0] = start(sleep_blocked, NULL);
	thread[1] = start(wait_for_signals, NULL);
	for (unsigned i = 1; i <= ROUNDS; i++) {
		MUST(others_look(count_call, count_asleep, &asked) == 0);
		MUST(asked == 0 && slept >= 2 * i);
	}
	wake();
	pthread_kill(thread[1], SIGUSR1);
	MUST(pthread_join(thread[0], NULL) == 0 && pthread_join(thread[1], NULL) == 0);
}

static bool never_mind(pid_t tid, const struct task_call *call, uint64_t blocked, bool takes,
		       struct others_room *room, void *arg)
{
	(void)blocked;
	(void)takes;
	return !tid || !call || !room || !arg;
}

/* What the caller does not accept of a sleeper is no answer. */
static void refused_asleep(const void *arg)
{
	(void)arg;
	prepare();
	start(sleep_blocked, NULL);
	MUST(others_look(count_call, never_mind, &asked) == -ETIMEDOUT);
	MUST(others_look(count_call, NULL, &asked) == -ETIMEDOUT);
	MUST(asked == 0);
}

/* One that wakes while it is looked at may be anywhere by the end of that. */
static bool wake_asleep(pid_t tid, const struct task_call *call, uint64_t blocked, bool takes,
			struct others_room *room, void *arg)
{
	(void)blocked;
	MUST(tid && call->sleeps && room && arg);
	if (slept)
		return false;
	MUST(!takes);
	wake();
	while (!slept)
		;
	return true;
}

static void *sleep_then_spin(void *arg)
{
	sigset_t none;

	sleep_blocked(arg);
	slept = 1;
	sigemptyset(&none);
	MUST(pthread_sigmask(SIG_SETMASK, &none, NULL) == 0);
	while (!asked)
		;
	return arg;
}

static void woken_asleep(const void *arg)
{
	pthread_t thread;

	(void)arg;
	prepare();
	thread = start(sleep_then_spin, NULL);
	MUST(others_look(count_call, wake_asleep, &asked) == 0 && asked == 1);
	MUST(pthread_join(thread, NULL) == 0);
}

/* --- The signal --------------------------------------------------------------------------- */

/* With every real-time signal taken there is none, and no handler is touched. */
static void no_signal_free(const void *arg)
{
	struct sigaction action = { .sa_handler = other_handler }, now;

	(void)arg;
	prepare();
	for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
		MUST(sigaction(i, &action, NULL) == 0);
	MUST(others_look(count_call, NULL, &asked) == -EAGAIN);
	action.sa_handler = SIG_DFL;
	MUST(sigaction(SIGRTMIN + 3, &action, NULL) == 0);
	MUST(others_look(count_call, NULL, &asked) == 0);
	for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
		MUST(sigaction(i, NULL, &now) == 0 &&
		     (now.sa_handler == other_handler) == (i != SIGRTMIN + 3));
}

static void move_on(ucontext_t *context, struct others_room *room, void *arg)
{
	greg_t *gregs = context->uc_mcontext.gregs;

	(void)room;
	if (gregs[REG_RIP] == (greg_t)(uintptr_t)arg)
		gregs[REG_RIP] += 2;
}

extern char loop_start[];

static void *run_loop(void *arg)
{
	sem_post(&ready);
	/* A thread at the jump, which leads to itself, gets past it only if fn moves it. */
	__asm__ volatile(".globl loop_start\nloop_start: .byte 0xeb, 0xfe" ::: "memory");
	return arg;
}

/* What fn changes in the context is what the thread goes on with. */
static void moved(const void *arg)
{
	pthread_t thread;

	(void)arg;
	prepare();
	thread = start(run_loop, NULL);
	while (pthread_tryjoin_np(thread, NULL) != 0)
		MUST(others_look(move_on, NULL, loop_start) == 0);
}

/* --- Rounds at the same time ----------------------------------------------------------------- */

static void *look_on(void *arg)
{
	sem_post(&ready);
	while (!stop)
		MUST(others_look(count_call, NULL, arg) == 0);
	return NULL;
}

/* Several at once take turns. */
static void together(const void *arg)
{
	pthread_t threads[3];

	(void)arg;
	prepare();
	for (int i = 0; i < 3; i++)
		threads[i] = start(look_on, &asked);
	for (int i = 0; i < ROUNDS; i++)
		MUST(others_look(NULL, NULL, NULL) == 0);
	stop = true;
	for (int i = 0; i < 3; i++)
		MUST(pthread_join(threads[i], NULL) == 0);
	MUST(asked > 0);
}

static _Atomic(pid_t) sleeper;

static void *sleep_noted(void *arg)
{
	sleeper = (pid_t)syscall(SYS_gettid);
	return sleep_on(arg);
}

static atomic_bool in_handler, has_forked;

static void stand_until_forked(ucontext_t *context, struct others_room *room, void *arg)
{
	(void)context;
	(void)room;
	(void)arg;
	in_handler = true;
	while (!has_forked)
		;
}

/* The thread that spins was asked before, since it was made before. */
static bool fork_once(pid_t tid, const struct task_call *call, uint64_t blocked, bool takes,
		      struct others_room *room, void *arg)
{
	int status;
	pid_t pid;

	(void)tid;
	(void)call;
	(void)blocked;
	(void)takes;
	(void)room;
	(void)arg;
	if (has_forked)
		return true;
	while (!in_handler)
		;
	pid = fork();
	if (pid == 0) {
		MUST(others_look(count_call, NULL, &asked) == 0 && asked == 0);
		MUST(one_handler());
		start(spin, NULL);
		MUST(others_look(count_call, NULL, &asked) == 0 && asked == 1);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	has_forked = true;
	return true;
}

/* A child of fork() made in the middle of a round begins anew. */
static void fork_within(const void *arg)
{
	(void)arg;
	prepare();
	start(spin, NULL);
	start(sleep_noted, NULL);
	while (task_state(sleeper) != 'S')
		sched_yield();
	MUST(others_look(stand_until_forked, fork_once, NULL) == 0 && has_forked);
	MUST(others_look(count_call, NULL, &asked) == 0 && asked == 2);
}

/* --- Many threads ------------------------------------------------------------------------- */

/* A thread is found without a look at all others, also if a list names it again. */
static void found_at_once(const void *arg)
{
	struct round round = { .pass = 1 };
	unsigned longest = 0;

	(void)arg;
	count = 0;
	for (pid_t tid = 1000; tid < 1000 + 4000; tid++)
		MUST(note_thread(tid, &round) && find_slot(tid)->tid == tid);
	for (pid_t tid = 1000; tid < 1000 + 4000; tid++)
		MUST(note_thread(tid, &round));
	MUST(count == 4000 && !find_slot(999) && !find_slot(5000));
	for (unsigned i = 0; i < CHAINS; i++) {
		unsigned length = 0;

		for (unsigned at = chains[i]; at; at = slot_at(at - 1)->next)
			length++;
		longest = length > longest ? length : longest;
	}
	MUST(longest <= 4);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(each_once),
		child_unit_test(come_and_go),
		child_unit_test(first_has_ended),
		child_unit_test(blocked_and_running),
		child_unit_test(blocked_and_asleep),
		child_unit_test(refused_asleep),
		child_unit_test(woken_asleep),
		child_unit_test(no_signal_free),
		child_unit_test(moved),
		child_unit_test(together),
		child_unit_test(fork_within),
		child_unit_test(found_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
