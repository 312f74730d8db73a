/* SPDX-License-Identifier: MIT */
/* What programs do besides: children of all kinds, threads, libraries, signals. */
#define _GNU_SOURCE /* clone() */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/mapping.h"
#include "patchcore/signals.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/day/day.h"

#define CHILD_LIFE    60u /* seconds: the monitor is the first to find that one hangs */
#define SMALL_STACK   (64u * 1024)
#define VM_ROUNDS     300u
#define LIBRARY_SITES 4u
#define LOOK_MS	      3000  /* more than the library gives threads to answer */
#define ROOM	      4096u /* of an alternate stack, beside what traps take */

/* --- Children of fork() ----------------------------------------------------------------------- */

/* How the child of a fork ends. */
enum ending {
	ENDS_BY_EXIT,
	ENDS_BY_EXEC,
	ENDS_BY_KILL,
	ENDINGS
};

/* What the threads of the parent were changing is finished in the child. */
static void run_all(struct day_worker *w)
{
	day_step(w, "run all");
	for (unsigned i = 0; i < day_site_count; i++)
		day_run(&day_sites[i], 2, &w->seen);
}

static void end_library(struct day_worker *w)
{
	day_step(w, "pc_fini");
	DAY_MUST(w, pc_fini() == 0);
	run_all(w);
	if (day_below(w, 2))
		return;
	day_step(w, "pc_init");
	DAY_MUST(w, pc_init() == 0);
	DAY_MUST(w, pc_set_policy(day_options.policy) == 0);
	day_change_any(w);
	DAY_MUST(w, pc_drain() == 0);
}

static void live(struct day_worker *w, enum ending ending)
{
	run_all(w);
	/* What was in flight is not left to another thread. */
	day_step(w, "drain");
	DAY_MUST(w, pc_drain() == 0);
	day_step(w, "change");
	for (unsigned i = 0; i < 6 || (ending == ENDS_BY_KILL && !day_stopped()); i++)
		day_change_any(w);
	day_step(w, "check");
	if (day_below(w, 4) == 0 && !day_options.broken)
		day_code_check(w);
	if (day_below(w, 2) == 0 && !day_options.broken)
		end_library(w);
	day_add(&w->seen);
	day_step(w, "exec");
	if (ending == ENDS_BY_EXEC)
		execl("/bin/true", "true", (char *)NULL);
	_exit(0);
}

/* True: it has ended by itself, and well. */
static void reap(struct day_worker *w, pid_t pid, bool may_be_killed)
{
	int status = -1;
	pid_t ret;

	day_step(w, "waitpid");
	do {
		ret = waitpid(pid, &status, 0);
	} while (ret < 0 && errno == EINTR);
	DAY_MUST(w, ret == pid);
	if (may_be_killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return;
	if (status != 0)
		day_error(w, "a child of '%s' ended with status %#x, at '%s'",
			  atomic_load(&w->slot->doing), (unsigned)status,
			  atomic_load(&w->slot->child_step) ? atomic_load(&w->slot->child_step)
							    : "nothing");
}

static void act_fork(struct day_worker *w)
{
	enum ending ending = (enum ending)day_below(w, ENDINGS);
	unsigned us = day_below(w, 3000);
	pid_t pid;

	atomic_store(&w->slot->child_step, "fork");
	day_step(w, "fork");
	pid = fork();
	if (pid < 0) {
		day_error(w, "fork: %s", strerror(errno));
		return;
	}
	if (pid == 0) {
		alarm(CHILD_LIFE);
		w->child = true;
		live(w, ending);
	}
	if (ending == ENDS_BY_KILL) {
		day_step(w, "kill");
		day_sleep(us);
		kill(pid, SIGKILL);
	}
	reap(w, pid, ending == ENDS_BY_KILL);
}

/* --- Children that share the memory ----------------------------------------------------------- */

/* Not inside a run of NOPs that is merged: such a child is no thread that would be looked at. */
static void run_in_shared_memory(const struct day_site *site, unsigned times, struct day_seen *seen)
{
	if (site->shape != DAY_NOPS)
		day_run(site, times, seen);
}

/* Runs sites, and may be killed at any of their traps. Nothing of libc that has a state. */
static void live_in_shared_memory(struct day_worker *w, unsigned first)
{
	struct day_seen seen = { 0 };

	for (unsigned i = 0; i < VM_ROUNDS && !day_stopped(); i++) {
		unsigned focus = atomic_load_explicit(&day->focus, memory_order_relaxed);

		run_in_shared_memory(&day_sites[focus % day_site_count], 10, &seen);
		run_in_shared_memory(&day_sites[(first + i) % day_site_count], 1, &seen);
	}
	(void)w;
	day_add(&seen);
}

/* Others know its id while it has not been waited for, and no longer. */
static pthread_mutex_t victims = PTHREAD_MUTEX_INITIALIZER;

static void reap_victim(struct day_worker *w, pid_t pid)
{
	pthread_mutex_lock(&victims);
	atomic_store(&w->slot->victim, 0);
	pthread_mutex_unlock(&victims);
	reap(w, pid, atomic_exchange(&w->slot->killed, false));
}

static void act_kill(struct day_worker *w)
{
	struct day_slot *slot = &day->slot[day_below(w, DAY_SLOTS)];
	pid_t victim;

	pthread_mutex_lock(&victims);
	victim = atomic_load(&slot->victim);
	if (victim) {
		atomic_store(&slot->killed, true);
		kill(victim, SIGKILL);
	}
	pthread_mutex_unlock(&victims);
}

__attribute__((noinline)) static void act_vfork(struct day_worker *w)
{
	unsigned first = day_below(w, day_site_count);
	pid_t pid;

	day_step(w, "vfork");
	pid = vfork();
	if (pid == 0) {
		atomic_store(&w->slot->victim, (int)syscall(SYS_getpid));
		live_in_shared_memory(w, first);
		_exit(0);
	}
	if (pid < 0)
		day_error(w, "vfork: %s", strerror(errno));
	else
		reap_victim(w, pid);
}

static int cloned(void *arg)
{
	struct day_worker *w = arg;

	live_in_shared_memory(w, (unsigned)w->random);
	return 0;
}

/* With and without the parent waiting for it. */
static void act_clone(struct day_worker *w)
{
	int flags = CLONE_VM | SIGCHLD | (day_below(w, 2) ? CLONE_VFORK : 0);
	pid_t pid;

	day_step(w, flags & CLONE_VFORK ? "clone, vfork" : "clone");
	day_random(w);
	pid = clone(cloned, w->clone_stack + SMALL_STACK, flags, w);
	if (pid < 0) {
		day_error(w, "clone: %s", strerror(errno));
		return;
	}
	atomic_store(&w->slot->victim, pid);
	if (!(flags & CLONE_VFORK))
		day_run(day_pick_any(w), 200, &w->seen);
	reap_victim(w, pid);
}

static void act_spawn(struct day_worker *w)
{
	char *const argv[] = { (char *)"true", NULL }, *const env[] = { NULL };
	pid_t pid;
	int ret;

	day_step(w, "posix_spawn");
	ret = posix_spawn(&pid, "/bin/true", NULL, NULL, argv, env);
	if (ret != 0)
		day_error(w, "posix_spawn: %s", strerror(ret));
	else
		reap(w, pid, false);
}

/* --- Threads ---------------------------------------------------------------------------------- */

static pthread_attr_t small;

/* What a thread of a worker works with; no two of them at a time. */
static struct day_worker helpers[DAY_SLOTS];

static struct day_worker *helper_of(struct day_worker *w)
{
	struct day_worker *helper = &helpers[w->index];

	helper->random = day_random(w) | 1;
	helper->seen = (struct day_seen){ 0 };
	helper->child = w->child;
	return helper;
}

static void *live_shortly(void *arg)
{
	struct day_worker *helper = arg;

	for (unsigned i = 0; i < 3; i++) {
		day_run(day_pick_any(helper), 20, &helper->seen);
		day_change_any(helper);
	}
	day_add(&helper->seen);
	return NULL;
}

static void add_seen(void *helper)
{
	day_add(&((struct day_worker *)helper)->seen);
}

/* Cancelled there, or wherever else the library would let it be. */
static void *patch_until_cancelled(void *arg)
{
	struct day_worker *helper = arg;

	pthread_cleanup_push(add_seen, helper);
	for (;;) {
		day_change_any(helper);
		pthread_testcancel();
	}
	pthread_cleanup_pop(0);
	return NULL;
}

static void *make_and_join(struct day_worker *w, void *(*fn)(void *), bool cancel)
{
	void *result = NULL;
	pthread_t thread;
	int ret;

	ret = pthread_create(&thread, &small, fn, helper_of(w));
	if (ret != 0) {
		day_error(w, "pthread_create: %s", strerror(ret));
		return NULL;
	}
	if (cancel) {
		day_sleep(day_below(w, 1000));
		day_step(w, "cancel");
		pthread_cancel(thread);
	}
	day_step(w, "join");
	pthread_join(thread, &result);
	return result;
}

static void act_thread(struct day_worker *w)
{
	DAY_MUST(w, make_and_join(w, live_shortly, false) == NULL);
}

static void act_cancel(struct day_worker *w)
{
	DAY_MUST(w, make_and_join(w, patch_until_cancelled, true) == PTHREAD_CANCELED);
}

/* --- Libraries -------------------------------------------------------------------------------- */

/* One for each worker. Threads that run its sites are counted, and keep it from being closed. */
static struct library {
	atomic_bool open;
	_Atomic(unsigned) users;
	uint8_t *site[LIBRARY_SITES];
} libraries[DAY_SLOTS];

void day_libraries_run(struct day_seen *seen)
{
	for (unsigned i = 0; i < DAY_SLOTS; i++) {
		struct library *library = &libraries[i];

		atomic_fetch_add(&library->users, 1);
		for (unsigned k = 0; atomic_load(&library->open) && k < LIBRARY_SITES; k++)
			day_run_load(library->site[k], 10, seen);
		atomic_fetch_sub(&library->users, 1);
	}
}

static bool find_sites(struct library *library, void *handle)
{
	for (unsigned k = 0; k < LIBRARY_SITES; k++) {
		char name[32];

		snprintf(name, sizeof(name), "day_library_%u", k);
		library->site[k] = dlsym(handle, name);
		if (!library->site[k])
			return false;
	}
	return true;
}

static void patch_library(struct day_worker *w, struct library *library)
{
	for (unsigned i = 0; i < 8; i++) {
		uint8_t *at = library->site[day_below(w, LIBRARY_SITES)];
		const uint8_t *bytes = day_load(day_below(w, 2));
		int ret = day_below(w, 2) ? pc_patch(at, bytes, CODE_LEN)
					  : pc_start_patch(at, bytes, CODE_LEN);

		w->seen.changes += ret == 0;
		w->seen.refused += ret == -EAGAIN;
		if (ret < 0 && ret != -EAGAIN)
			day_error(w, "a patch of a library: %s", strerror(-ret));
	}
}

static void forget_library(struct day_worker *w, struct library *library)
{
	uintptr_t low = UINTPTR_MAX, high = 0;
	int ret;

	for (unsigned k = 0; k < LIBRARY_SITES; k++) {
		uintptr_t at = (uintptr_t)library->site[k];

		low = at < low ? at : low;
		high = at > high ? at : high;
	}
	do {
		ret = pc_forget((void *)low, high - low + CODE_LEN);
	} while (ret == -EBUSY);
	DAY_MUST(w, ret == 0);
}

static void act_load(struct day_worker *w)
{
	struct library *library = &libraries[w->index];
	void *handle;

	if (!w->path[0])
		return;
	day_step(w, "dlopen");
	handle = dlopen(w->path, RTLD_NOW | RTLD_LOCAL);
	if (!handle || !find_sites(library, handle)) {
		day_error(w, "%s: %s", w->path, dlerror());
		return;
	}
	atomic_store(&library->open, true);
	day_step(w, "patch");
	patch_library(w, library);
	atomic_store(&library->open, false);
	day_step(w, "await users");
	while (atomic_load(&library->users))
		sched_yield();
	day_step(w, "forget");
	forget_library(w, library);
	day_step(w, "dlclose");
	DAY_MUST(w, dlclose(handle) == 0);
}

/* --- Signals ---------------------------------------------------------------------------------- */

/* Each worker has one of its own for handlers that come and go; all have one for a queue. */
static int own_signal(const struct day_worker *w)
{
	return SIGRTMAX - 2 - (int)w->index;
}

static int queue_signal(void)
{
	return SIGRTMAX - 1;
}

static _Atomic(unsigned) taken[DAY_SLOTS]; /* own signals that were handled */

static void on_signal(int signal)
{
	static _Atomic(unsigned) turn;
	unsigned random = atomic_fetch_add_explicit(&turn, 2654435761u, memory_order_relaxed);
	struct day_seen seen = { .handled = 1 };
	int saved = errno;

	(void)signal;
	random ^= random >> 15;
	day_run(&day_sites[atomic_load(&day->focus) % day_site_count], 3, &seen);
	day_run(&day_sites[random % day_site_count], 1, &seen);
	day_change_in_handler(random, &seen);
	day_add(&seen);
	errno = saved;
}

/* A signal of the library's own look that was on its way does not count as the worker's. */
static void on_own_signal(int signal, siginfo_t *info, void *context)
{
	unsigned index = (unsigned)(SIGRTMAX - 2 - signal);

	(void)context;
	if (index < DAY_SLOTS && info->si_code == SI_TKILL)
		atomic_fetch_add(&taken[index], 1);
}

/* One time it has a handler, on the thread's stack or an alternate one, the next it has none. */
static void act_handler(struct day_worker *w)
{
	int signal = day_below(w, 2) ? SIGUSR1 : SIGUSR2;
	struct sigaction action = { .sa_handler = day_below(w, 3) ? on_signal : SIG_IGN,
				    .sa_flags = SA_RESTART };

	if (day_below(w, 2))
		action.sa_flags |= SA_ONSTACK;
	if (day_below(w, 2))
		sigaddset(&action.sa_mask, SIGUSR1);
	if (day_below(w, 2))
		sigaddset(&action.sa_mask, SIGUSR2);
	DAY_MUST(w, sigaction(signal, &action, NULL) == 0);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/*
 * From its default, at which the library may have taken it: what is installed is there,
 * and gets what is sent. Then it is ignored, and has its default again when no look of
 * the library can have one on its way.
 */
static void act_own_signal(struct day_worker *w)
{
	static int64_t ignored[DAY_SLOTS];
	struct sigaction action = { .sa_sigaction = on_own_signal,
				    .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigaction none = { .sa_handler = SIG_DFL }, now;
	unsigned before = atomic_load(&taken[w->index]);
	int signal = own_signal(w);

	if (ignored[w->index]) {
		if (now_ms() - ignored[w->index] < LOOK_MS)
			return;
		DAY_MUST(w, sigaction(signal, &none, NULL) == 0);
		ignored[w->index] = 0;
		return;
	}
	DAY_MUST(w, sigaction(signal, &action, NULL) == 0);
	DAY_MUST(w, sigaction(signal, NULL, &now) == 0 && now.sa_sigaction == on_own_signal);
	DAY_MUST(w, pthread_kill(pthread_self(), signal) == 0);
	DAY_MUST(w, atomic_load(&taken[w->index]) == before + 1);
	none.sa_handler = SIG_IGN;
	DAY_MUST(w, sigaction(signal, &none, NULL) == 0);
	ignored[w->index] = now_ms();
}

static void act_send(struct day_worker *w)
{
	unsigned slots = day_options.workers + DAY_EXECUTORS;

	for (unsigned i = 0; i < 10; i++) {
		int signal = day_below(w, 2) ? SIGUSR1 : SIGUSR2;

		if (day_below(w, 8) == 0)
			kill(getpid(), signal);
		else
			pthread_kill(day_workers[day_below(w, slots)].thread, signal);
	}
}

/* A real-time signal that is blocked and waited for: what was sent comes, once. */
static void act_queue(struct day_worker *w)
{
	const struct timespec none = { 0 };
	union sigval value = { .sival_int = (int)day_below(w, 1000000) };
	siginfo_t info;
	sigset_t set;
	int ret;

	sigemptyset(&set);
	sigaddset(&set, queue_signal());
	DAY_MUST(w, pthread_sigqueue(pthread_self(), queue_signal(), value) == 0);
	day_run(day_pick_any(w), 20, &w->seen);
	if (day_below(w, 2))
		day_sleep(day_below(w, 200));
	do {
		ret = sigtimedwait(&set, &info, &none);
	} while (ret < 0 && errno == EINTR);
	if (ret < 0)
		day_error(w, "a queued signal is lost");
	else if (info.si_value.sival_int != value.sival_int)
		day_error(w, "a queued signal that was not sent: value %p from %d, code %d",
			  info.si_value.sival_ptr, (int)info.si_pid, info.si_code);
	DAY_MUST(w, sigtimedwait(&set, &info, &none) < 0);
}

/* Traps come on the alternate stack, which lies behind a guard page. */
static void act_stack(struct day_worker *w)
{
	stack_t stack = { .ss_sp = w->stack, .ss_size = w->stack_size };

	DAY_MUST(w, sigaltstack(&stack, NULL) == 0);
	for (unsigned i = 0; i < 5; i++)
		day_change_any(w);
	for (unsigned i = 0; i < 50; i++)
		day_run(day_pick_any(w), 20, &w->seen);
	stack.ss_flags = SS_DISABLE;
	DAY_MUST(w, sigaltstack(&stack, NULL) == 0);
}

/* The whole process stands still for a while. */
static void act_stop(struct day_worker *w)
{
	unsigned us = day_below(w, 3000);
	pid_t day_pid = getpid(), pid;

	day_step(w, "fork");
	pid = fork();
	if (pid == 0) {
		alarm(CHILD_LIFE);
		kill(day_pid, SIGSTOP);
		day_sleep(us);
		kill(day_pid, SIGCONT);
		_exit(0);
	}
	if (pid < 0)
		day_error(w, "fork: %s", strerror(errno));
	else
		reap(w, pid, false);
}

struct day_action day_life_actions[] = {
	{ "fork", 4, act_fork, false },
	{ "vfork", 6, act_vfork, false },
	{ "clone", 6, act_clone, false },
	{ "kill", 6, act_kill, false },
	{ "spawn", 1, act_spawn, false },
	{ "thread", 4, act_thread, false },
	{ "cancel", 3, act_cancel, false },
	{ "load", 2, act_load, false },
	{ "handler", 6, act_handler, false },
	{ "own", 4, act_own_signal, false },
	{ "send", 10, act_send, false },
	{ "queue", 6, act_queue, false },
	{ "stack", 2, act_stack, false },
	{ "stop", 1, act_stop, false },
	{ NULL, 0, NULL, false },
};

/* --- Beginning and end ------------------------------------------------------------------------ */

/* A library of its own, so that one is closed while another is used. */
static void copy_library(struct day_worker *w)
{
	int from = open(day_options.library, O_RDONLY | O_CLOEXEC), to;
	char buffer[4096];
	ssize_t n;

	if (from < 0)
		return;
	strcpy(w->path, "/tmp/day_library.XXXXXX");
	to = mkstemp(w->path);
	MUST(to >= 0);
	while ((n = read(from, buffer, sizeof(buffer))) > 0)
		MUST(write(to, buffer, (size_t)n) == n);
	close(from);
	close(to);
}

static void *map_stack(size_t size)
{
	uint8_t *at = mmap(NULL, size + CODE_PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	MUST(at != MAP_FAILED && mprotect(at, CODE_PAGE, PROT_NONE) == 0);
	return at + CODE_PAGE;
}

static void *meet(void *barrier)
{
	pthread_barrier_wait(barrier);
	return NULL;
}

/* As many threads as there may ever be at a time: libc keeps their stacks. */
static void touch_stacks(void)
{
	pthread_t thread[2 * DAY_WORKERS + DAY_EXECUTORS];
	unsigned workers = day_options.workers, n = 2 * workers + DAY_EXECUTORS;
	pthread_barrier_t barrier;

	pthread_barrier_init(&barrier, NULL, n);
	for (unsigned i = 0; i < n; i++)
		MUST(pthread_create(&thread[i], i < workers ? &small : NULL, meet, &barrier) == 0);
	for (unsigned i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&barrier);
}

/* A page of its own. One that had an alias once is a mapping of its own, so it has had one. */
static uint8_t *own_page(void)
{
	uint8_t *page = day_map(1, RX);

	MUST(page);
	if (pc_text_alias(page, CODE_PAGE) == 0)
		MUST(pc_text_close(page, CODE_PAGE) == 0);
	return page;
}

void day_life_begin(void)
{
	struct pc_signals signals;

	MUST(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, SMALL_STACK) == 0);
	touch_stacks();
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	MUST(pc_check_signals(&signals) == 0);
	for (unsigned i = 0; i < DAY_SLOTS; i++) {
		struct day_worker *w = &day_workers[i];

		/* A handler, a trap in it, and a look at the thread while it stands there. */
		w->stack_size = (3 * signals.stack_need + ROOM) / CODE_PAGE * CODE_PAGE + CODE_PAGE;
		w->stack = map_stack(w->stack_size);
		w->clone_stack = map_stack(SMALL_STACK);
		w->page = own_page();
		copy_library(w);
		helpers[i] = (struct day_worker){ .index = i, .slot = w->slot };
		helpers[i].page = own_page();
	}
}

void day_life_ready(struct day_worker *w)
{
	sigset_t set;

	(void)w;
	sigemptyset(&set);
	sigaddset(&set, queue_signal());
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void day_life_end(void)
{
	for (unsigned i = 0; i < DAY_SLOTS; i++)
		if (day_workers[i].path[0])
			unlink(day_workers[i].path);
}
