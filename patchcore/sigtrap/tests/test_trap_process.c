/* SPDX-License-Identifier: MIT */
/* Other processes: exec, vfork and posix_spawn while another thread patches. */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>

#include "patchcore/signals.h"
#include "patchcore/tests/trap_case.h"

extern char **environ;

#define TELL "--tell-signals" /* run as another program: exit status of it */

/* What a program finds that was started by one with patches in flight. */
static int tell_signals(void)
{
	struct sigaction now;
	sigset_t mask;

	if (sigaction(SIGTRAP, NULL, &now) < 0 || now.sa_handler != SIG_DFL)
		return 2;
	if (sigprocmask(SIG_SETMASK, NULL, &mask) < 0 || sigismember(&mask, SIGTRAP))
		return 3;
	return 0;
}

static char *const tell[] = { (char[]){ "/proc/self/exe" }, (char[]){ TELL }, NULL };

/* --- A thread that patches meanwhile -------------------------------------------------------- */

static atomic_bool stop;
static _Atomic(unsigned) patches;

static void *keep_patching(void *unused)
{
	for (unsigned i = 0; !stop; i++) {
		MUST(pc_patch(site, i % 2 ? old_code : new_code, CODE_LEN) == 0);
		patches++;
	}
	return unused;
}

static void start_patching(pthread_t *thread)
{
	start_without_conf();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("no membarrier");
	MUST(pthread_create(thread, NULL, keep_patching, NULL) == 0);
	while (patches < 3)
		sched_yield();
}

static void end_patching(pthread_t thread)
{
	stop = true;
	pthread_join(thread, NULL);
}

static void must_end_well(pid_t pid)
{
	int status;

	MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
	MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* --- exec --------------------------------------------------------------------------------- */

static void execs(const void *arg)
{
	(void)arg;
	start_without_conf();
	execve(tell[0], tell, environ);
	MUST(!"exec");
}

/* With INT3 on the site, which the new program does not have. */
static void execs_held(const void *arg)
{
	(void)arg;
	start_without_conf();
	put_int3();
	execve(tell[0], tell, environ);
	MUST(!"exec");
}

static void test_exec(void **state)
{
	(void)state;
	child_must_pass(execs, NULL);
	child_must_pass(execs_held, NULL);
}

/* --- posix_spawn and vfork ----------------------------------------------------------------- */

#define SPAWNS 20

static void spawns(const void *arg)
{
	pthread_t thread;
	pid_t pid;

	(void)arg;
	start_patching(&thread);
	for (int i = 0; i < SPAWNS; i++) {
		MUST(posix_spawn(&pid, tell[0], NULL, NULL, tell, environ) == 0);
		must_end_well(pid);
	}
	end_patching(thread);
}

static void test_spawn(void **state)
{
	(void)state;
	child_must_pass(spawns, NULL);
}

/*
 * The child of vfork() has the site in its memory, INT3 and all, and a copy of
 * the handler: it waits and goes on like any executor.
 */
__attribute__((noinline)) static pid_t vfork_and_execute(volatile unsigned *bad)
{
	pid_t pid = vfork();

	if (pid == 0) {
		for (int i = 0; i < 200; i++) {
			uint32_t number = code_run(site);

			if (number != CODE_OLD && number != CODE_NEW)
				++*bad;
		}
		execve(tell[0], tell, environ);
		_exit(4);
	}
	return pid;
}

static void vforks(const void *arg)
{
	volatile unsigned bad = 0;
	pthread_t thread;

	(void)arg;
	start_patching(&thread);
	for (int i = 0; i < SPAWNS; i++)
		must_end_well(vfork_and_execute(&bad));
	end_patching(thread);
	MUST(bad == 0);
}

static void test_vfork(void **state)
{
	(void)state;
	if (CHILD_TSAN)
		skip();
	child_must_pass(vforks, NULL);
}

/* By turns and not by luck: the INT3 stands, and goes while the child waits. */
static atomic_bool release_now;

static void *release_later(void *word)
{
	uint64_t count = trap_count();

	while (!release_now)
		sched_yield();
	while (trap_count() == count)
		sched_yield();
	put_rest(word);
	return NULL;
}

__attribute__((noinline)) static pid_t vfork_into_int3(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		release_now = true;
		_exit(code_run(site) == CODE_NEW ? 0 : 5);
	}
	return pid;
}

static void *hold_and_release(void *unused)
{
	release_later(put_int3());
	return unused;
}

static void vfork_meets_int3(const void *arg)
{
	pthread_t thread;

	(void)arg;
	start_without_conf();
	MUST(pthread_create(&thread, NULL, hold_and_release, NULL) == 0);
	while (*(volatile uint8_t *)site != CODE_INT3)
		sched_yield();
	must_end_well(vfork_into_int3());
	pthread_join(thread, NULL);
}

static void test_vfork_meets_int3(void **state)
{
	(void)state;
	if (CHILD_TSAN)
		skip();
	child_must_pass(vfork_meets_int3, NULL);
}

/* --- A fork while a thread changes what the program's SIGTRAP does ---------------------------- */

#define LOOKS 60000 /* at a child, a millisecond apart */

static sem_t filtered;
static int listener; /* tells of each rt_sigaction() of that thread, which stands there meanwhile */
static atomic_bool chained;

static void *set_chain_and_stand(void *unused)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigaction, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(*code), .filter = code };
	struct sigaction action = { .sa_handler = SIG_IGN };

	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	sem_post(&filtered);
	if (listener >= 0)
		MUST(pc_set_chained_trap(&action, NULL) == 0);
	chained = true;
	return unused;
}

/* The next system call that the thread stands in, as long as it makes any. */
static bool await_call(struct seccomp_notif *call)
{
	struct pollfd told = { .fd = listener, .events = POLLIN };

	while (poll(&told, 1, 10) < 1)
		if (chained)
			return false;
	memset(call, 0, sizeof(*call));
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, call) == 0;
}

static void let_go_on(const struct seccomp_notif *call)
{
	struct seccomp_notif_resp answer = { .id = call->id,
					     .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

	MUST(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) == 0);
}

/* A child that waits for the lock has all signals blocked. */
static void must_end_soon(pid_t pid)
{
	int status = -1;

	for (unsigned i = 0; i < LOOKS && waitpid(pid, &status, WNOHANG) == 0; i++)
		usleep(1000);
	if (status == -1)
		kill(pid, SIGKILL);
	MUST(status == 0);
}

/* The thread is not there to let go of what it holds. */
static void chain_forked(const void *arg)
{
	struct sigaction action = { .sa_handler = SIG_IGN };
	struct seccomp_notif call;
	unsigned calls = 0;
	pthread_t thread;
	pid_t pid;

	(void)arg;
	start_without_conf();
	MUST(sem_init(&filtered, 0, 0) == 0);
	MUST(pthread_create(&thread, NULL, set_chain_and_stand, NULL) == 0);
	MUST(sem_wait(&filtered) == 0);
	if (listener < 0)
		child_skip("the kernel has no listener for system calls");
	for (; await_call(&call); calls++) {
		pid = fork();
		if (pid == 0) {
			MUST(pc_set_chained_trap(&action, NULL) == 0);
			MUST(pc_patch(site, new_code, CODE_LEN) == 0);
			MUST(pc_fini() == 0);
			_exit(0);
		}
		must_end_soon(pid);
		let_go_on(&call);
	}
	MUST(calls > 0 && pthread_join(thread, NULL) == 0);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exec),   cmocka_unit_test(test_spawn),
		cmocka_unit_test(test_vfork),  cmocka_unit_test(test_vfork_meets_int3),
		child_unit_test(chain_forked),
	};

	if (argc > 1 && strcmp(argv[1], TELL) == 0)
		return tell_signals();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
