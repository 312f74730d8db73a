/* SPDX-License-Identifier: MIT */
/*
 * A process that executes another program leaves what it has counted until then. If the program
 * cannot be executed, that is taken back.
 *
 * glibc's functions do not call each other by name, so there is one here for each. A child of
 * vfork() comes by, too: it has nothing to say, and must change nothing of its parent's.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include "probes/agent/agent.h"

static struct {
	int (*execve)(const char *path, char *const *argv, char *const *envp);
	int (*execvpe)(const char *file, char *const *argv, char *const *envp);
	int (*fexecve)(int fd, char *const *argv, char *const *envp);
	int (*execveat)(int dir, const char *path, char *const *argv, char *const *envp, int flags);
} real;

/* Not when they are called: that may be between fork() and exec, or in a signal handler. */
__attribute__((constructor)) static void find_real(void)
{
	*(void **)&real.execve = dlsym(RTLD_NEXT, "execve");
	*(void **)&real.execvpe = dlsym(RTLD_NEXT, "execvpe");
	*(void **)&real.fexecve = dlsym(RTLD_NEXT, "fexecve");
	*(void **)&real.execveat = dlsym(RTLD_NEXT, "execveat");
}

#define EXECUTE(function, ...)                                                                     \
	do {                                                                                       \
		long before = report_begin_exec();                                                 \
                                                                                                   \
		if (function)                                                                      \
			function(__VA_ARGS__);                                                     \
		else                                                                               \
			errno = ENOSYS;                                                            \
		report_end_exec(before);                                                           \
		return -1;                                                                         \
	} while (0)

int execve(const char *path, char *const *argv, char *const *envp)
{
	EXECUTE(real.execve, path, argv, envp);
}

int execv(const char *path, char *const *argv)
{
	EXECUTE(real.execve, path, argv, environ);
}

int execvpe(const char *file, char *const *argv, char *const *envp)
{
	EXECUTE(real.execvpe, file, argv, envp);
}

int execvp(const char *file, char *const *argv)
{
	EXECUTE(real.execvpe, file, argv, environ);
}

int fexecve(int fd, char *const *argv, char *const *envp)
{
	EXECUTE(real.fexecve, fd, argv, envp);
}

int execveat(int dir, const char *path, char *const *argv, char *const *envp, int flags)
{
	EXECUTE(real.execveat, dir, path, argv, envp, flags);
}

static size_t count(va_list args)
{
	size_t n = 1;

	while (va_arg(args, char *))
		n++;
	return n;
}

/* argv and, behind its NULL, what else there is. */
#define LIST(first, args, argv)                                                                    \
	va_list args;                                                                              \
	va_start(args, first);                                                                     \
	char *argv[count(args) + 1];                                                               \
	va_end(args);                                                                              \
	va_start(args, first);                                                                     \
	argv[0] = (char *)first;                                                                   \
	for (size_t i = 1; i < sizeof(argv) / sizeof(*argv); i++)                                  \
	argv[i] = va_arg(args, char *)

int execl(const char *path, const char *arg, ...)
{
	LIST(arg, args, argv);
	va_end(args);
	return execv(path, argv);
}

int execlp(const char *file, const char *arg, ...)
{
	LIST(arg, args, argv);
	va_end(args);
	return execvp(file, argv);
}

int execle(const char *path, const char *arg, ...)
{
	char *const *envp;

	LIST(arg, args, argv);
	envp = va_arg(args, char *const *);
	va_end(args);
	return execve(path, argv, envp);
}
