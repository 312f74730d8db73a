/* SPDX-License-Identifier: MIT */
/*
 * A program that starts another one in a way, or by itself says what it was given to preload: see
 * test_loaders.sh.
 *
 * usage: starts [WAY PROGRAM]
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void work(void);
__attribute__((noinline)) void work(void)
{
	__asm__ volatile("");
}

static void execute(const char *way, char **argv)
{
	if (!strcmp(way, "execv"))
		execv(argv[0], argv);
	if (!strcmp(way, "execvp"))
		execvp(argv[0], argv);
	if (!strcmp(way, "execvpe"))
		execvpe(argv[0], argv, environ);
	if (!strcmp(way, "execl"))
		execl(argv[0], argv[0], NULL);
	if (!strcmp(way, "execle"))
		execle(argv[0], argv[0], NULL, environ);
	if (!strcmp(way, "execlp"))
		execlp(argv[0], argv[0], NULL);
	if (!strcmp(way, "fexecve"))
		fexecve(open(argv[0], O_RDONLY), argv, environ);
	if (!strcmp(way, "execve") || !strcmp(way, "vfork"))
		execve(argv[0], argv, environ);
	_exit(126);
}

static int start(const char *way, char **argv)
{
	int status = -1;
	pid_t pid;

	if (!strcmp(way, "posix_spawn") &&
	    posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) != 0)
		return 125;
	if (!strcmp(way, "posix_spawnp") &&
	    posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0)
		return 125;
	if (strncmp(way, "posix", 5) != 0) {
		pid = strcmp(way, "vfork") != 0 ? fork() : vfork();
		if (!pid)
			execute(way, argv);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 124;
}

int main(int argc, char **argv)
{
	const char *preload = getenv("LD_PRELOAD");

	work();
	if (argc > 2)
		return start(argv[1], argv + 2);
	printf("preload %s\n", preload ? preload : "");
	return 0;
}
