/* SPDX-License-Identifier: MIT */
/* Signals that end a process: blocked, passed on to a child, or noted; and the end of processes. */
#include "agent/launch/launch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

static const int endings[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
#define ENDINGS (sizeof(endings) / sizeof(*endings))

#define ENDING_STEP 0.02 /* seconds between two looks at a process */

static sigset_t before;
static bool are_blocked;
static volatile sig_atomic_t heir; /* the child, as long as its number is its own; or 0 */
static volatile sig_atomic_t was_noted;

void ending_hold(void)
{
	sigset_t set;

	if (are_blocked)
		return;
	sigemptyset(&set);
	for (size_t i = 0; i < ENDINGS; i++)
		sigaddset(&set, endings[i]);
	are_blocked = !sigprocmask(SIG_BLOCK, &set, &before);
}

void ending_let(void)
{
	if (are_blocked)
		sigprocmask(SIG_SETMASK, &before, NULL);
	are_blocked = false;
}

/* Passes on a signal of kill(), but not of the child, which may mean its whole group. */
static void on_ending(int number, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)context;
	if (!heir)
		was_noted = 1;
	else if (info->si_code <= 0 && info->si_pid != heir)
		kill(heir, number);
	errno = saved;
}

/* Unblocks the signals, and notes them, but those that are ignored. */
void ending_note(void)
{
	const struct sigaction ours = { .sa_sigaction = on_ending,
					.sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigaction now;

	for (size_t i = 0; i < ENDINGS; i++)
		if (!sigaction(endings[i], NULL, &now) && now.sa_handler != SIG_IGN)
			sigaction(endings[i], &ours, NULL);
	ending_let();
}

int ending_wait(pid_t child, int *status)
{
	siginfo_t info;

	heir = child;
	ending_note();
	/* The PID belongs to the child until it is reaped. */
	while (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
		;
	heir = 0;
	return waitpid(child, status, 0) < 0 ? -errno : 0;
}

/* A zombie is over, which kill() does not tell. */
bool ending_is_over(pid_t pid)
{
	struct pollfd end = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	bool over;

	if (end.fd < 0)
		return kill(pid, 0) < 0 && errno == ESRCH;
	over = poll(&end, 1, 0) > 0;
	close(end.fd);
	return over;
}

bool ending_noted(void)
{
	return was_noted;
}

void ending_until(pid_t pid, double seconds)
{
	double until = seconds_now() + seconds, left = ENDING_STEP;

	while (!was_noted && left > 0 && !ending_is_over(pid)) {
		usleep((useconds_t)((left < ENDING_STEP ? left : ENDING_STEP) * 1e6));
		if (seconds > 0)
			left = until - seconds_now();
	}
}

static void on_ignored(int number)
{
	(void)number;
}

void ending_ignore(int number)
{
	if (signal(number, on_ignored) == SIG_IGN)
		signal(number, SIG_IGN);
}
