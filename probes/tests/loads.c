/* SPDX-License-Identifier: MIT */
/*
 * Threads that load libraries of their own, run them once, and unload them. test_loads.sh.
 *
 * usage: loads ROUNDS LIBRARY...
 *
 * With -DLIBRARY it is a library; with -DOPENS="PATH" its constructor loads another one, with
 * -DFORKS it forks.
 */
#ifdef LIBRARY
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

void first_run(void);
void last_run(void);

void first_run(void)
{
	__asm__ volatile("");
}

void last_run(void)
{
	__asm__ volatile("");
}

#ifdef OPENS
static void *other;

__attribute__((constructor)) static void start(void)
{
	other = dlopen(OPENS, RTLD_NOW);
}

__attribute__((destructor)) static void end(void)
{
	if (other)
		dlclose(other);
}
#endif

#ifdef FORKS
__attribute__((constructor)) static void start(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
}
#endif
#else
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 8

static long rounds;

static void run(void *handle, const char *name)
{
	void (*function)(void);

	*(void **)&function = dlsym(handle, name);
	if (!function)
		abort();
	function();
}

static void *work(void *library)
{
	for (long i = 0; i < rounds; i++) {
		void *handle = dlopen(library, RTLD_NOW);

		if (!handle)
			abort();
		run(handle, "first_run");
		run(handle, "last_run");
		dlclose(handle);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	int n = argc - 2;

	if (n < 1 || n > THREADS)
		return 1;
	rounds = atol(argv[1]);
	for (int i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, work, argv[2 + i]))
			return 1;
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	printf("%ld\n", n * rounds);
	return 0;
}
#endif
