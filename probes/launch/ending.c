/* SPDX-License-Identifier: MIT */
#include "probes/launch/ending.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/wait.h>

static const int endings[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
#define ENDINGS (sizeof(endings) / sizeof(*endings))

static sigset_t before;
static bool held;
static volatile sig_atomic_t heir; /* the child, as long as its number is its own; or 0 */

void ending_hold(void)
{
	sigset_t set;

	if (held)
		return;
	sigemptyset(&set);
	for (size_t i = 0; i < ENDINGS; i++)
		sigaddset(&set, endings[i]);
	held = !sigprocmask(SIG_BLOCK, &set, &before);
}

void ending_let(void)
{
	if (held)
		sigprocmask(SIG_SETMASK, &before, NULL);
	held = false;
}

/* By kill() and the like, and not by the child, which may mean its whole group. */
static void on_ending(int number, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)context;
	if (heir && info->si_code <= 0 && info->si_pid != heir)
		kill(heir, number);
	errno = saved;
}

static void take(int number)
{
	const struct sigaction ours = { .sa_sigaction = on_ending, .sa_flags = SA_SIGINFO };
	struct sigaction now;

	if (!sigaction(number, NULL, &now) && now.sa_handler != SIG_IGN)
		sigaction(number, &ours, NULL);
}

int ending_wait(pid_t child, int *status)
{
	siginfo_t info;

	heir = child;
	for (size_t i = 0; i < ENDINGS; i++)
		take(endings[i]);
	ending_let();
	/* Its number is its own until it is reaped. */
	while (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
		;
	heir = 0;
	return waitpid(child, status, 0) < 0 ? -errno : 0;
}
