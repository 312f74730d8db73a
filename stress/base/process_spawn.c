/* SPDX-License-Identifier: MIT */
#include "stress/base/process_spawn.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_OTHER_FD 3

extern char **environ;

struct spawn {
	const char *const *argv;
	char **env;
	int talk, said;
	pid_t parent;
	sigset_t mask; /* to run it with */
	volatile int error;
};

/* The environment, with messages in the language of all others. */
static char **plain_environment(void)
{
	static char plain[] = "LC_ALL=C";
	size_t count = 0, kept = 0;
	char **env;

	while (environ && environ[count])
		count++;
	env = calloc(count + 2, sizeof(*env));
	if (!env)
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (strncmp(environ[i], "LC_ALL=", strlen("LC_ALL=")))
			env[kept++] = environ[i];
	env[kept] = plain;
	return env;
}

/*
 * Between vfork() and exec, in the parent's memory: system calls only. Descriptors that are to
 * be moved are above those that they are moved to, see process.c.
 */
static _Noreturn void in_child(struct spawn *s)
{
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != s->parent)
		_exit(1);
	if (dup2(s->talk, STDIN_FILENO) >= 0 && dup2(s->talk, STDOUT_FILENO) >= 0 &&
	    dup2(s->said, STDERR_FILENO) >= 0) {
		close_range(FIRST_OTHER_FD, ~0u, 0);
		sigprocmask(SIG_SETMASK, &s->mask, NULL);
		execvpe(s->argv[0], (char *const *)(uintptr_t)s->argv, s->env);
	}
	s->error = errno;
	_exit(127);
}

/*
 * Not fork(): that would leave all pages of this process write-protected, to be copied one by
 * one while something is measured. Not posix_spawn(): it cannot ask for a signal at our end.
 */
static __attribute__((noinline)) pid_t spawn(struct spawn *s)
{
	pid_t pid = vfork();

	if (pid == 0)
		in_child(s);
	return pid < 0 ? -errno : pid;
}

pid_t process_spawn(const char *const argv[], int talk, int said)
{
	struct spawn s = {
		.argv = argv,
		.env = plain_environment(),
		.talk = talk,
		.said = said,
		.parent = getpid(),
	};
	sigset_t all;
	pid_t pid;

	if (!s.env)
		return -ENOMEM;
	/* No handler of ours may run in the child. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &s.mask);
	pid = spawn(&s);
	pthread_sigmask(SIG_SETMASK, &s.mask, NULL);
	free(s.env);
	if (pid > 0 && s.error) {
		waitpid(pid, NULL, 0);
		return -s.error;
	}
	return pid;
}
