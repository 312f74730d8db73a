/* SPDX-License-Identifier: MIT */
/*
 * Calls in calls, in a second thread and in a child, one of them with a pause of 30 ms in it: for
 * the filters of "fastinst trace".
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N __attribute__((noinline))

struct pair {
	int x, y;
};

static volatile long sink;

N static void wait_for(long ms)
{
	struct timespec time = { 0, ms * 1000000 };

	nanosleep(&time, NULL);
	sink++;
}

N static int leaf(int n, const char *name)
{
	sink += n + *name;
	return n + 1;
}

N static int middle(int n)
{
	int sum = leaf(n, "one") + leaf(n + 1, "two");

	if (n == 3)
		wait_for(30);
	sink++;
	return sum;
}

N static double scaled(double x, struct pair p)
{
	sink += (long)x + p.x + p.y;
	return x * 2;
}

N static void *run(void *arg)
{
	for (int i = 10; i < 13; i++)
		middle(i);
	sink++;
	return arg;
}

N static void work(void)
{
	for (int i = 0; i < 5; i++)
		middle(i);
	scaled(1.5, (struct pair){ 3, 4 });
	scaled(2.5, (struct pair){ 5, 6 });
	sink++;
}

int main(void)
{
	pthread_t thread;
	pid_t child;

	work();
	leaf(99, "main");
	pthread_create(&thread, NULL, run, NULL);
	pthread_join(thread, NULL);
	child = fork();
	if (!child) {
		leaf(77, "child");
		exit(0);
	}
	waitpid(child, NULL, 0);
	return 0;
}
