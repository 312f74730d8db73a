/* SPDX-License-Identifier: MIT */
/*
 * A program that knows how often its functions were called: test_fastinst.sh compiles it with
 * -fpatchable-function-entry=5 and holds what fastinst counted against what this prints.
 *
 * usage: counted once|threads|fork|plugin FILE|exec|vfork|exit|wait|long
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLAIN __attribute__((patchable_function_entry(0)))

unsigned long leaf(unsigned long x);
unsigned long even(unsigned long n);
unsigned long fib(unsigned long n);

__attribute__((noinline)) unsigned long leaf(unsigned long x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 2654435761u + 1;
}

__attribute__((noinline)) unsigned long even(unsigned long n)
{
	__asm__ volatile("" : "+r"(n));
	return n % 2 ? leaf(n) : leaf(n + 1) + leaf(n);
}

__attribute__((noinline)) unsigned long fib(unsigned long n)
{
	__asm__ volatile("" : "+r"(n));
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

PLAIN static void *work(void *arg)
{
	unsigned long *sum = arg;

	for (unsigned long i = 0; i < 1000; i++)
		*sum += even(i);
	*sum += fib(10);
	return NULL;
}

PLAIN static void say(unsigned long times)
{
#ifdef LIAR
	times += leaf(1) == 0;
#endif
	/* Of 1000 calls of even() half call leaf() twice; fib(10) is 177 calls. */
	printf("leaf %lu\neven %lu\nfib %lu\n", 1500 * times, 1000 * times, 177 * times);
	fflush(stdout);
}

PLAIN static void threads(void)
{
	unsigned long sums[8] = { 0 };
	pthread_t thread[8];

	for (int i = 0; i < 8; i++)
		pthread_create(&thread[i], NULL, work, &sums[i]);
	for (int i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
	say(8);
}

/* What it computes is what matters, while probes are toggled. */
PLAIN static void *work_long(void *arg)
{
	for (int i = 0; i < 400; i++)
		work(arg);
	return NULL;
}

PLAIN static void compute(void)
{
	unsigned long sums[4] = { 0 };
	pthread_t thread[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, work_long, &sums[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 4; i++)
		printf("%lu\n", sums[i]);
}

PLAIN static void forks(void)
{
	unsigned long sum = 0;

	work(&sum);
	for (int i = 0; i < 3; i++) {
		if (fork() == 0) {
			work(&sum);
			exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	say(4);
}

PLAIN static int plugin(const char *file)
{
	for (int i = 0; i < 3; i++) {
		void *handle = dlopen(file, RTLD_NOW);
		unsigned long (*run)(unsigned long);

		if (!handle) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		*(void **)&run = dlsym(handle, "plugin_run");
		run(100);
		dlclose(handle);
	}
	printf("plugin_run 3\nplugin_step 300\n");
	return 0;
}

/* In children, by each function that there is, after one that fails: all their calls and those
 * here. */
PLAIN static void execs(char *self)
{
	char *const argv[] = { self, "quiet", NULL }, *const none[] = { self, NULL };
	unsigned long sum = 0;
	int fd = open(self, O_RDONLY | O_CLOEXEC);

	work(&sum);
	for (int way = 0; way < 8; way++) {
		if (fork() != 0)
			continue;
		work(&sum);
		execve("/nowhere", none, environ);
		execl("/nowhere", "nowhere", NULL);
		switch (way) {
		case 0:
			execve(self, argv, environ);
			break;
		case 1:
			execv(self, argv);
			break;
		case 2:
			execvp(self, argv);
			break;
		case 3:
			execvpe(self, argv, environ);
			break;
		case 4:
			execl(self, self, "quiet", NULL);
			break;
		case 5:
			execlp(self, self, "quiet", NULL);
			break;
		case 6:
			execle(self, self, "quiet", NULL, environ);
			break;
		default:
			fexecve(fd, argv, environ);
		}
		_exit(1);
	}
	while (wait(NULL) > 0)
		;
	say(17);
}

/* The child has its parent's memory, and nothing to report. */
PLAIN static void vforks(char *self)
{
	unsigned long sum = 0;
	pid_t child;

	work(&sum);
	child = vfork();
	if (child == 0) {
		execl(self, self, "quiet", NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	say(2);
}

/* Until a line comes: then one round. */
PLAIN static void wait_for_lines(void)
{
	unsigned long sum = 0;
	char line[64];

	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		work(&sum);
		puts("one round");
		fflush(stdout);
	}
}

PLAIN int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned long sum = 0;

	if (!strcmp(what, "threads")) {
		threads();
	} else if (!strcmp(what, "long")) {
		compute();
	} else if (!strcmp(what, "fork")) {
		forks();
	} else if (!strcmp(what, "plugin") && argc == 3) {
		return plugin(argv[2]);
	} else if (!strcmp(what, "exec")) {
		execs(argv[0]);
	} else if (!strcmp(what, "vfork")) {
		vforks(argv[0]);
	} else if (!strcmp(what, "quiet")) {
		work(&sum);
	} else if (!strcmp(what, "wait")) {
		wait_for_lines();
	} else {
		work(&sum);
		say(1);
		if (!strcmp(what, "exit"))
			_exit(3);
	}
	return 0;
}
