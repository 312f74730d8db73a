/* SPDX-License-Identifier: MIT */
/* What may happen to a process with a change under way: children of every kind. */
#define _GNU_SOURCE /* memfd_create(), clone() */
#include "patchcore/life/tests/life.h"

#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/ptrace.h>

#include "patchcore/tests/flights.h"

#define CHILD_LIMIT (CHILD_ASAN ? 45 : 15) /* seconds, on a machine that starves it */
#define GUEST_MS    4			   /* that a guest gets while the patcher stands */
/*
 * For a system call that waits for nothing. A patcher that went on before it was made could be in
 * libc by then, whose locks such a child inherits and nothing ever opens.
 */
#define CLONE_MS    10000
#define STEPS_MAX   350 /* that a guest takes before it is killed */
#define STEPS_PRIME 89

extern char **environ;

/* --- Children with a memory of their own
 * ----------------------------------------------------------- */

unsigned life_child_cpu;

static void limit_child(void)
{
	const struct rlimit cpu = { life_child_cpu, life_child_cpu };

	alarm(CHILD_LIMIT);
	if (life_child_cpu)
		setrlimit(RLIMIT_CPU, &cpu);
}

static void goes_on(void)
{
	life_in_child = true;
	limit_child();
	life_must_be_whole();
}

/* The child goes on as its parent does. */
static void fork_here(void)
{
	pid_t pid = fork();

	if (pid == 0)
		goes_on();
	else
		life_child(pid);
}

static void fork_beside(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		goes_on();
		life_must_work(false);
		_exit(0);
	}
	life_child(pid);
}

/* --- Handlers of pthread_atfork()
 * -------------------------------------------------------------------- */

static bool hooks_on;
static uint8_t *extra;

/* What a handler may want: run what is being changed, and change something else. */
static void hook(void)
{
	static bool to_new;
	uint8_t bytes[CODE_LEN];

	if (!hooks_on)
		return;
	life_must_be_whole();
	to_new = !to_new;
	code_load(bytes, to_new ? CODE_NEW : CODE_OLD);
	MUST(pc_patch(extra, bytes, CODE_LEN) == 0);
	MUST(code_run(extra) == (to_new ? CODE_NEW : CODE_OLD));
}

static void hook_in_child(void)
{
	if (hooks_on)
		limit_child();
	hook();
}

/* Before the library is there. */
__attribute__((constructor(101))) static void register_first(void)
{
	pthread_atfork(hook, hook, hook_in_child);
}

/* When it is there, and before pc_init(). */
static void register_between(void)
{
	MUST(pthread_atfork(hook, hook, hook_in_child) == 0);
}

static void register_last(void)
{
	uint8_t *page = flights_map(1, RX, 8), bytes[CODE_LEN];

	extra = flight_site(page, 4);
	MUST(pthread_atfork(hook, hook, hook_in_child) == 0);
	MUST(pc_text_open(page, CODE_PAGE) == 0);
	code_load(bytes, CODE_OLD);
	MUST(pc_patch(extra, bytes, CODE_LEN) == 0);
}

static void fork_with_hooks(void)
{
	hooks_on = true;
	fork_here();
	hooks_on = false;
}

/* The child is what it is in fork_beside(), without the hooks. */
static void fork_beside_with_hooks(void)
{
	pid_t pid;

	hooks_on = true;
	pid = fork();
	hooks_on = false;
	if (pid == 0) {
		goes_on();
		life_must_work(false);
		_exit(0);
	}
	life_child(pid);
}

/* --- Without those handlers
 * ---------------------------------------------------------------------------- */

extern pid_t _Fork(void) __attribute__((weak)); /* glibc 2.34 */

static void raw_fork_here(void)
{
	pid_t pid = _Fork ? _Fork() : (pid_t)syscall(SYS_fork);

	if (pid == 0) {
		life_raw_child = true;
		goes_on();
	} else {
		life_child(pid);
	}
}

static void raw_fork_beside(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (pid == 0) {
		life_raw_child = true;
		goes_on();
		life_must_work(false);
		_exit(0);
	}
	life_child(pid);
}

/* --- Guests: children that share the memory
 * -------------------------------------------------------------- */

static char guest_stack[65536] __attribute__((aligned(16)));
static atomic_bool guest_ran;
static _Atomic(pid_t) guest;

/* libc's state is the parent's. */
static long raw(long number, long a, long b)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(number), "D"(a), "S"(b), "d"(0L)
			 : "rcx", "r11", "memory");
	return ret;
}

static bool is_whole(unsigned i)
{
	uint32_t number = life_run(i);

	return number == life.site[i].old || number == life.site[i].new ||
	       number == life.site[i].between;
}

static int be_guest(void *unused)
{
	bool whole = true;

	(void)unused;
	for (unsigned i = 0; i < life.sites; i++)
		whole &= is_whole(i);
	guest_ran = true;
	raw(SYS_exit_group, whole ? 0 : 1, 0);
	return 1;
}

static void vfork_now(void)
{
	pid_t pid = vfork();

	if (pid == 0)
		be_guest(NULL);
	life_child(pid);
}

static pid_t make_guest(int (*fn)(void *))
{
	pid_t pid = clone(fn, guest_stack + sizeof(guest_stack), CLONE_VM | SIGCHLD, NULL);

	MUST(pid > 0);
	return pid;
}

/* For a moment the patcher looks on. */
static void clone_here(void)
{
	life_child(make_guest(be_guest));
	for (int i = 0; i < GUEST_MS * 10 && !guest_ran; i++)
		usleep(100);
}

static void spawn_here(void)
{
	char *const argv[] = { "life", "--passed", NULL };
	pid_t pid;

	MUST(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ) == 0);
	life_child(pid);
}

/* --- Guests that are killed
 * ----------------------------------------------------------------------------- */

static int be_traced(void *unused)
{
	raw(SYS_ptrace, PTRACE_TRACEME, 0);
	raw(SYS_kill, raw(SYS_getpid, 0, 0), SIGSTOP);
	return be_guest(unused);
}

/* What is to be delivered of what has stopped it: an INT3, and not a step. */
static long passed_on(pid_t pid, int status)
{
	siginfo_t info;

	if (WSTOPSIG(status) == SIGSTOP || ptrace(PTRACE_GETSIGINFO, pid, 0, &info) < 0)
		return 0;
	return WSTOPSIG(status) == SIGTRAP && info.si_code != SI_KERNEL ? 0 : WSTOPSIG(status);
}

/* It is killed after so many instructions, most of them in the handler of its trap. */
static void kill_guest(void)
{
	unsigned steps = life_turn * STEPS_PRIME % STEPS_MAX;
	pid_t pid = make_guest(be_traced);
	int status;

	for (unsigned i = 0; i < steps; i++) {
		MUST(waitpid(pid, &status, __WALL) == pid);
		if (!WIFSTOPPED(status))
			return;
		if (ptrace(PTRACE_SINGLESTEP, pid, 0, passed_on(pid, status)) < 0)
			break;
	}
	kill(pid, SIGKILL);
	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status))
		;
}

static void be_guest_for_ever(void)
{
	guest = (pid_t)raw(SYS_getpid, 0, 0);
	for (;;)
		for (unsigned i = 0; i < life.sites; i++)
			if (!is_whole(i))
				raw(SYS_exit_group, 1, 0);
}

static void vfork_for_ever(void)
{
	pid_t pid = vfork();
	int status;

	if (pid == 0)
		be_guest_for_ever();
	MUST(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
}

static void kill_soon(void)
{
	while (!guest)
		sched_yield();
	usleep(life_turn * STEPS_PRIME % 300);
	kill(guest, SIGKILL);
}

const struct event fork_events[] = {
	{ .name = "fork",
	  .what = "by the patcher, in the handler of a signal; the child goes on with the "
		  "operation",
	  .to_it = fork_here,
	  .libc = true,
	  .outcome = "both" },
	{ .name = "fork beside",
	  .what = "by another thread",
	  .beside = fork_beside,
	  .outcome = "both",
	  .wait_ms = GUEST_MS },
	{ .name = "fork, handlers",
	  .what = "as the first, with handlers of `pthread_atfork` from before, between and after "
		  "the "
		  "library's own, which run the sites and patch another",
	  .before = register_between,
	  .prepare = register_last,
	  .to_it = fork_with_hooks,
	  .libc = true,
	  .outcome = "both" },
	{ .name = "fork beside, handlers",
	  .what = "as the second, with the same handlers",
	  .before = register_between,
	  .prepare = register_last,
	  .beside = fork_beside_with_hooks,
	  .outcome = "both",
	  .wait_ms = GUEST_MS },
	{ .name = "_Fork",
	  .what = "by the patcher, in the handler of a signal: no handlers of `pthread_atfork`",
	  .to_it = raw_fork_here,
	  .libc = true,
	  .outcome = "both" },
	{ .name = "clone beside",
	  .what = "the system call, by another thread: a process, and no handlers either",
	  .beside = raw_fork_beside,
	  .outcome = "both",
	  .wait_ms = CLONE_MS },
	{ .name = "vfork",
	  .what = "by the patcher, in the handler of a signal; the child runs the sites",
	  .to_it = vfork_now },
	{ .name = "vfork beside",
	  .what = "by another thread; the child runs the sites",
	  .beside = vfork_now,
	  .wait_ms = GUEST_MS },
	{ .name = "clone(CLONE_VM)",
	  .what = "by the patcher, in the handler of a signal; the child runs the sites",
	  .to_it = clone_here },
	{ .name = "posix_spawn",
	  .what = "by the patcher, in the handler of a signal",
	  .to_it = spawn_here,
	  .libc = true },
	{ .name = "kill of a clone",
	  .what = "a child that shares the memory and runs the sites is killed, after a number of "
		  "instructions that differs each time",
	  .beside = kill_guest,
	  .wait_ms = 500 },
	{ .name = "kill of a vfork",
	  .what = "the patcher's child of `vfork`, which runs the sites, is killed",
	  .to_it = vfork_for_ever,
	  .beside = kill_soon },
};

const unsigned fork_event_count = sizeof(fork_events) / sizeof(*fork_events);
