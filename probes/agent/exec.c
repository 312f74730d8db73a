/* SPDX-License-Identifier: MIT */
/*
 * The functions that execute another program in place of this one: what ran before is reported. A
 * file that cannot be executed is none, as shells try one after the other.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probes/agent/leave.h"

typedef int by_path_fn(const char *file, char *const argv[], char *const envp[]);

static by_path_fn *real_execvpe;
static int (*real_fexecve)(int fd, char *const argv[], char *const envp[]);

/* Now: later a signal handler may ask. */
__attribute__((constructor)) static void find_real(void)
{
	*(void **)&real_execvpe = dlsym(RTLD_NEXT, "execvpe");
	*(void **)&real_fexecve = dlsym(RTLD_NEXT, "fexecve");
}

static bool may_execute(int folder, const char *path, int flags)
{
	int saved = errno;
	bool may = flags & AT_EMPTY_PATH || !faccessat(folder, path, X_OK, 0);

	errno = saved;
	return may;
}

static bool is_in_path(const char *file)
{
	const char *folders = getenv("PATH");
	bool found = strchr(file, '/') && may_execute(AT_FDCWD, file, 0);

	for (folders = folders ? folders : "/bin:/usr/bin"; *folders && !found;
	     folders += *folders == ':') {
		int len = (int)strcspn(folders, ":");
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%.*s/%s", len, folders, file);
		found = may_execute(AT_FDCWD, path, 0);
		folders += len;
	}
	return found;
}

static int execute(int folder, const char *path, char *const *argv, char *const *envp, int flags)
{
	bool reports = may_execute(folder, path, flags);
	long ret;

	if (reports)
		leave_image();
	ret = flags || folder != AT_FDCWD ? syscall(SYS_execveat, folder, path, argv, envp, flags)
					  : syscall(SYS_execve, path, argv, envp);
	if (reports)
		leave_not();
	return (int)ret;
}

int execve(const char *path, char *const argv[], char *const envp[])
{
	return execute(AT_FDCWD, path, argv, envp, 0);
}

int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

int execveat(int folder, const char *path, char *const argv[], char *const envp[], int flags)
{
	return execute(folder, path, argv, envp, flags);
}

int fexecve(int fd, char *const argv[], char *const envp[])
{
	int ret;

	leave_image();
	ret = real_fexecve(fd, argv, envp);
	leave_not();
	return ret;
}

int execvpe(const char *file, char *const argv[], char *const envp[])
{
	bool reports = is_in_path(file);
	int ret;

	if (reports)
		leave_image();
	ret = real_execvpe(file, argv, envp);
	if (reports)
		leave_not();
	return ret;
}

int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

/* --- With a list of arguments ----------------------------------------------------------------- */

static size_t count_arguments(va_list list)
{
	size_t n = 1;

	while (va_arg(list, char *))
		n++;
	return n;
}

/* The arguments behind the first one, and the NULL at their end. */
static void fill_arguments(char **argv, const char *first, va_list list)
{
	*argv = (char *)first;
	while (*argv++)
		*argv = va_arg(list, char *);
}

#define WITH_LIST(function, file, first, envp_of)                                                  \
	do {                                                                                       \
		va_list list;                                                                      \
		char **argv, **envp;                                                               \
                                                                                                   \
		va_start(list, first);                                                             \
		argv = alloca(((first) ? count_arguments(list) + 1 : 1) * sizeof(*argv));          \
		va_end(list);                                                                      \
		va_start(list, first);                                                             \
		fill_arguments(argv, first, list);                                                 \
		envp = envp_of;                                                                    \
		va_end(list);                                                                      \
		return function(file, argv, envp);                                                 \
	} while (0)

int execl(const char *path, const char *arg, ...)
{
	WITH_LIST(execve, path, arg, environ);
}

int execlp(const char *file, const char *arg, ...)
{
	WITH_LIST(execvpe, file, arg, environ);
}

int execle(const char *path, const char *arg, ...)
{
	WITH_LIST(execve, path, arg, va_arg(list, char **));
}
