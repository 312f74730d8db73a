/* SPDX-License-Identifier: MIT */
/*
 * A process may not read of its own threads what a look must know. Then no thread is guessed at,
 * no signal of the program is taken, and no INT3 is put.
 */
#define _GNU_SOURCE /* unshare() */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/merge/merge.h"
#include "patchcore/merge/others.h"
#include "patchcore/merge/tests/over.h"
#include "patchcore/signals.h"
#include "patchcore/tests/asleep.h"

#define FIRST  (SIGRTMAX - 1) /* the one that is taken where nothing speaks against it */
#define NOBODY 65534

static _Atomic(int) taken;

static void *wait_for_first(void *arg)
{
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, FIRST);
	sigaddset(&set, SIGUSR2);
	MUST(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	stander = (pid_t)syscall(SYS_gettid);
	sem_post(&ready);
	/* Libc's own signal comes when the user is changed. */
	do
		taken = sigwaitinfo(&set, &info);
	while (taken < 0);
	return arg;
}

/* For all threads, as libc does it. */
static void become_nobody(void)
{
	if (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
		child_skip("no leave to become another user");
}

static void become_dark(void)
{
	become_nobody();
	MUST(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
}

static void become_dumpable(void)
{
	become_nobody();
	MUST(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
}

static void dark_root(void)
{
	MUST(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
}

static void leave_alone(void)
{
}

/* Before there are threads: the mount namespace is the process's own. */
static void mount_proc(const char *options)
{
	if (unshare(CLONE_NEWNS) < 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    (options ? mount("proc", "/proc", "proc", 0, options)
		     : mount("none", "/proc", "tmpfs", 0, NULL)) < 0)
		child_skip("no /proc to be mounted");
}

static void hide_proc(void)
{
	mount_proc(NULL);
}

static void hide_pids(void)
{
	mount_proc("hidepid=2");
}

static void allow_no_files(void)
{
	static const struct rlimit none;

	MUST(setrlimit(RLIMIT_NOFILE, &none) == 0);
}

struct denial {
	void (*first)(void); /* before there are threads */
	void (*then)(void);
	int ret;	 /* of a change */
	int ret_signals; /* of pc_check_signals(), which needs less */
};

static void count(ucontext_t *context, struct others_room *room, void *arg)
{
	(void)context;
	(void)room;
	(void)arg;
}

static void change(const void *arg)
{
	const struct denial *denial = arg;
	struct pc_signals report;
	pthread_t thread;

	if (CHILD_TSAN)
		child_skip("the thread sanitizer delivers signals when it likes");
	over_begin();
	over_put_site(over_place(2));
	denial->first();
	MUST(pthread_create(&thread, NULL, wait_for_first, NULL) == 0 && sem_wait(&ready) == 0);
	/* It may be that nothing says when it waits. */
	usleep(100000);
	denial->then();
	MUST(pc_check_signals(&report) == denial->ret_signals);
	MUST(over_at(site, mov) == denial->ret && site_is(denial->ret == 0 ? mov : adds));
	/* Also when the look itself finds out. */
	MUST(others_look(count, NULL, NULL) == (denial->ret == 0 ? -ETIMEDOUT : denial->ret));
	MUST(taken <= 0 && !sites_count().held);
	MUST(pthread_kill(thread, SIGUSR2) == 0 && pthread_join(thread, NULL) == 0);
	MUST(taken == SIGUSR2);
}

static const struct denial plain = { leave_alone, leave_alone, 0, 0 };
static const struct denial root = { leave_alone, dark_root, 0, 0 };
static const struct denial other = { leave_alone, become_dumpable, 0, 0 };
static const struct denial dark = { leave_alone, become_dark, -EACCES, 0 };
static const struct denial hidden = { hide_pids, become_dumpable, 0, 0 };
static const struct denial dark_hidden = { hide_pids, become_dark, -EACCES, 0 };
static const struct denial no_proc = { hide_proc, leave_alone, -EACCES, -ENOENT };
static const struct denial no_files = { leave_alone, allow_no_files, -EACCES, -EMFILE };

/* At file scope, where their arguments are constants. */
static const struct CMUnitTest tests[] = {
	child_unit_case("nothing is denied", change, &plain),
	child_unit_case("root, not dumpable", change, &root),
	child_unit_case("another user", change, &other),
	child_unit_case("another user, not dumpable", change, &dark),
	child_unit_case("hidepid", change, &hidden),
	child_unit_case("hidepid, not dumpable", change, &dark_hidden),
	child_unit_case("no /proc", change, &no_proc),
	child_unit_case("no file may be opened", change, &no_files),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
