/* SPDX-License-Identifier: MIT */
/*
 * Baseline: a patcher in another process, asked over a socket.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "patchcore/baseline/baseline.h"
#include "patchcore/baseline/patcher.h"
#include "patchcore/word/word.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects all below */
static pid_t owner;					 /* the process that has opened it */
static pid_t patcher;					 /* 0: none */
static int line;					 /* to it */

static bool is_open(void)
{
	return patcher && owner == getpid();
}

static int ask_patcher(const struct patcher_request *request)
{
	int32_t answer;
	ssize_t len;

	if (send(line, request, sizeof(*request), MSG_NOSIGNAL) != (ssize_t)sizeof(*request))
		return -ESHUTDOWN;
	do
		len = recv(line, &answer, sizeof(answer), 0);
	while (len < 0 && errno == EINTR);
	return len == (ssize_t)sizeof(answer) ? answer : -ESHUTDOWN;
}

static void end_patcher(void)
{
	close(line);
	while (waitpid(patcher, NULL, __WALL) < 0 && errno == EINTR)
		;
	patcher = 0;
}

/*
 * A child without an exit signal: the program's SIGCHLD handler and its wait()
 * do not notice it. All signals are blocked in it.
 */
static pid_t clone_patcher(int socket)
{
	sigset_t all, before;
	pid_t pid, self = getpid();

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
	if (pid == 0)
		patcher_run(socket, self);
	if (pid < 0)
		pid = -errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

static int begin_patcher(void)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = clone_patcher(pair[1]);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return pid;
	}
	owner = getpid();
	patcher = pid;
	line = pair[0];
	/* Yama lets a process be traced by whom it names; elsewhere this fails, and is not needed.
	 */
	prctl(PR_SET_PTRACER, (unsigned long)pid, 0, 0, 0);
	return 0;
}

/* If some thread could not be stopped, the patcher has ended, which lets the others go. */
static bool has_given_up(int ret)
{
	return ret == -ETIMEDOUT || ret == -EPERM || ret == -ENOMEM || ret == -ESHUTDOWN;
}

static int patch_locked(const struct patcher_request *request)
{
	int ret = ask_patcher(request);

	if (has_given_up(ret)) {
		end_patcher();
		begin_patcher();
	}
	return ret;
}

/* Under the lock and not to be cancelled there. */
static int locked(int (*act)(const struct patcher_request *), const struct patcher_request *request)
{
	int state, ret;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&lock);
	ret = act(request);
	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(state, NULL);
	return ret;
}

/* With a first try, which tells whether it may. */
static int open_new(const struct patcher_request *try)
{
	int ret = is_open() ? -EALREADY : begin_patcher();

	if (ret < 0)
		return ret;
	ret = ask_patcher(try);
	if (ret < 0)
		end_patcher();
	return ret;
}

static int patch_open(const struct patcher_request *request)
{
	return is_open() ? patch_locked(request) : -ESHUTDOWN;
}

static int close_open(const struct patcher_request *unused)
{
	(void)unused;
	if (!is_open())
		return -ESHUTDOWN;
	end_patcher();
	return 0;
}

int baseline_ptrace_open(void)
{
	static const struct patcher_request try;

	return locked(open_new, &try);
}

int baseline_ptrace_close(void)
{
	return locked(close_open, NULL);
}

int baseline_ptrace_patch(void *addr, const void *bytes, size_t len)
{
	struct patcher_request request = { .addr = (uintptr_t)addr, .len = len };

	if (len < 1 || len > PC_PATCH_MAX || !bytes || *(const uint8_t *)bytes == WORD_INT3)
		return -EINVAL;
	if (request.addr > INT64_MAX - len)
		return -EFAULT;
	memcpy(request.bytes, bytes, len);
	return locked(patch_open, &request);
}
