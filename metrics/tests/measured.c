/* SPDX-License-Identifier: MIT */
/*
 * Calls that are known, for metrics: threads, recursion, children, messages. "cpu": burns some and
 * prints how many seconds main() has used. A path: of a library that is loaded, whose plugin_run()
 * is called.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define CALLS	25000

int limit = 300;
static volatile unsigned char small = 200;

#define APART __attribute__((noinline, noclone))

APART long leaf(int a, long b);
APART int fib(int n);
APART int work(int n);
APART int send_msg(int to, int tag, int len, int e, int f, int g, int seventh);
APART long write_all(int fd, const char *text, long len);

long leaf(int a, long b)
{
	__asm__ volatile("" : "+r"(a), "+r"(b));
	return a - b;
}

int fib(int n)
{
	int sum = n < 2 ? n : fib(n - 1) + fib(n - 2);

	__asm__ volatile("" : "+r"(sum));
	return sum;
}

int work(int n)
{
	long sum = 0;

	for (int i = 0; i < n; i++)
		sum += leaf(-1, small);
	return sum != 0;
}

int send_msg(int to, int tag, int len, int e, int f, int g, int seventh)
{
	__asm__ volatile("" : "+r"(len) : "r"(to), "r"(tag), "r"(e), "r"(f), "r"(g), "r"(seventh));
	return len;
}

long write_all(int fd, const char *text, long len)
{
	long written = write(fd, text, (size_t)len);

	__asm__ volatile("" : "+r"(written));
	return written;
}

static void *run(void *arg)
{
	work(CALLS);
	return arg;
}

static double used(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int burn(void)
{
	double start = used();

	while (used() < start + 0.2)
		fib(10);
	printf("%.9f\n", used() - start);
	return 0;
}

static int make_threads(int n)
{
	pthread_t thread;

	for (int i = 0; i < n; i++) {
		if (pthread_create(&thread, NULL, run, NULL))
			return 1;
		pthread_join(thread, NULL);
	}
	return 0;
}

static int with_child(void)
{
	int status;

	if (!fork()) {
		work(100);
		exit(0);
	}
	wait(&status);
	work(10);
	return status;
}

static int load(const char *library, unsigned long calls)
{
	void *handle = dlopen(library, RTLD_NOW);
	unsigned long (*run)(unsigned long) =
		handle ? (unsigned long (*)(unsigned long))dlsym(handle, "plugin_run") : NULL;

	return !run || run(calls) != calls;
}

static int write_some(void)
{
	int fd = open("/dev/null", O_WRONLY);
	long sum = 0;

	for (int i = 0; i < 123; i++)
		sum += write_all(fd, "text", i % 5);
	return sum < 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pthread_t thread[THREADS];

	if (!strcmp(what, "cpu"))
		return burn();
	if (!strcmp(what, "many"))
		return make_threads(atoi(argv[2]));
	if (!strcmp(what, "child"))
		return with_child();
	if (!strcmp(what, "exit"))
		exit(work(5) - 1);
	if (!strcmp(what, "kill"))
		return work(77) + raise(9);
	if (!strcmp(what, "write"))
		return write_some();
	if (strchr(what, '/'))
		return load(what, strtoul(argv[2], NULL, 10));
	if (!strcmp(what, "exec"))
		return work(5) + execl("/proc/self/exe", argv[0], "child", NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, run, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 10; i++)
		send_msg(i, i % 2 ? 5 : 6, 1000 * i, 0, 0, 0, 7);
	return fib(15) != 610;
}
