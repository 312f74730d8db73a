/* SPDX-License-Identifier: MIT */
/*
 * Functions that execute another program. Those that replace this one report its counts first,
 * unless the file cannot be executed: shells try one after the other.
 *
 * LD_PRELOAD, where the agent is in it, becomes what the loader of the new program can take: see
 * probes/elf/preload.h.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/counts/base.h"
#include "probes/elf/preload.h"

static __typeof__(execvpe) *real_execvpe;
static __typeof__(posix_spawn) *real_posix_spawn, *real_posix_spawnp;
static const char *agent; /* as it stands in LD_PRELOAD */

/* At the start: later a signal handler may execute a program, and dlsym() is not safe there. */
__attribute__((constructor)) static void find_real(void)
{
	Dl_info self;

	*(void **)&real_execvpe = dlsym(RTLD_NEXT, "execvpe");
	*(void **)&real_posix_spawn = dlsym(RTLD_NEXT, "posix_spawn");
	*(void **)&real_posix_spawnp = dlsym(RTLD_NEXT, "posix_spawnp");
	if (dladdr(&agent, &self))
		agent = self.dli_fname;
}

/* --- The environment -------------------------------------------------------------------------- */

#define PRELOAD "LD_PRELOAD="

/* The variable LD_PRELOAD; NULL: the agent is not in it. */
static char *const *find_preload(char *const *envp)
{
	for (; envp && *envp; envp++)
		if (!strncmp(*envp, PRELOAD, strlen(PRELOAD)))
			return agent && strstr(*envp, agent) ? envp : NULL;
	return NULL;
}

static size_t count_variables(char *const *envp)
{
	size_t n = 0;

	while (envp && envp[n])
		n++;
	return n;
}

/* Bytes for the new LD_PRELOAD; all other strings of the environment are shared. */
static size_t text_size(char *const *envp)
{
	char *const *preload = find_preload(envp);

	return preload ? strlen(PRELOAD) + preload_size(*preload, agent) : 1;
}

/* The environment for the program in that file: the old one, or copy. */
static char *const *fit_environment(int folder, const char *path, char *const *envp, char **copy,
				    char *text, size_t size)
{
	char *const *before = find_preload(envp);
	size_t name = strlen(PRELOAD), at;
	struct preload preload;
	int saved = errno;

	if (!before)
		return envp;
	at = (size_t)(before - envp);
	preload_look(&preload, folder, path);
	errno = saved;
	memcpy(text, PRELOAD, name);
	preload_write(text + name, size - name, *before + name, agent, &preload);
	memcpy(copy, envp, (count_variables(envp) + 1) * sizeof(*copy));
	copy[at] = text;
	if (!text[name])
		memmove(copy + at, copy + at + 1, (count_variables(envp) - at) * sizeof(*copy));
	return copy;
}

/* The constructor of another library may come first. */
#define FIT_ENVIRONMENT(folder, path, envp)                                                        \
	if (!agent)                                                                                \
		find_real();                                                                       \
	char *copy_of_envp[count_variables(envp) + 1], text_of_preload[text_size(envp)];           \
                                                                                                   \
	(envp) = fit_environment(folder, path, envp, copy_of_envp, text_of_preload,                \
				 sizeof(text_of_preload))

/* --- In place of this program ----------------------------------------------------------------- */

/* @name: as execvpe(3) takes it, which finds that path; NULL: as execveat(2) has the others. */
static int execute_image(const char *name, int folder, const char *path, char *const *argv,
			 char *const *envp, int flags)
{
	bool is_open = flags & AT_EMPTY_PATH && !*path;
	char file[PATH_MAX];
	bool reports;
	int saved = errno;
	long ret;

	if (name)
		reports = preload_find(name, file, sizeof(file));
	else
		reports = is_open || !faccessat(folder, path, X_OK, 0);
	if (is_open)
		snprintf(file, sizeof(file), "/proc/self/fd/%d", folder);
	errno = saved;
	FIT_ENVIRONMENT(is_open ? AT_FDCWD : folder, name || is_open ? file : path, envp);
	if (reports)
		leave_image();
	if (name)
		ret = real_execvpe(name, argv, envp);
	else if (flags || folder != AT_FDCWD)
		ret = syscall(SYS_execveat, folder, path, argv, envp, flags);
	else
		ret = syscall(SYS_execve, path, argv, envp);
	if (reports)
		return_to_image();
	return (int)ret;
}

int execve(const char *path, char *const argv[], char *const envp[])
{
	return execute_image(NULL, AT_FDCWD, path, argv, envp, 0);
}

int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

int execveat(int folder, const char *path, char *const argv[], char *const envp[], int flags)
{
	return execute_image(NULL, folder, path, argv, envp, flags);
}

int fexecve(int fd, char *const argv[], char *const envp[])
{
	return execute_image(NULL, fd, "", argv, envp, AT_EMPTY_PATH);
}

int execvpe(const char *file, char *const argv[], char *const envp[])
{
	return execute_image(file, AT_FDCWD, NULL, argv, envp, 0);
}

int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

/* --- Beside this program ---------------------------------------------------------------------- */

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
	FIT_ENVIRONMENT(AT_FDCWD, path, envp);
	return real_posix_spawn(pid, path, actions, attributes, argv, envp);
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
		 const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
	char path[PATH_MAX];

	preload_find(file, path, sizeof(path));
	FIT_ENVIRONMENT(AT_FDCWD, path, envp);
	return real_posix_spawnp(pid, file, actions, attributes, argv, envp);
}

/* --- With a list of arguments ----------------------------------------------------------------- */

/* How many there are, with the NULL at their end; argv: NULL, or where they go. */
static size_t take_arguments(char **argv, const char *first, va_list list)
{
	size_t n = 0;

	for (const char *argument = first;; argument = va_arg(list, char *)) {
		if (argv)
			argv[n] = (char *)argument;
		n++;
		if (!argument)
			return n;
	}
}

#define WITH_LIST(function, file, first, envp_of)                                                  \
	do {                                                                                       \
		va_list list;                                                                      \
		char **argv, **envp;                                                               \
                                                                                                   \
		va_start(list, first);                                                             \
		argv = alloca(take_arguments(NULL, first, list) * sizeof(*argv));                  \
		va_end(list);                                                                      \
		va_start(list, first);                                                             \
		take_arguments(argv, first, list);                                                 \
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
