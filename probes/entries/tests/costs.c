/* SPDX-License-Identifier: MIT */
/*
 * By hand: what it takes to turn entries on that nothing was compiled into, one by one and
 *together, while other threads run. In turn, there and back.
 *
 *	costs [LIBRARY [THREADS]]
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "probes/include/fastinst.h"

#define PROBES 65536
#define ROUNDS 3

static uint32_t ids[PROBES];
static size_t n;

static double seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Half of them compute, half of them sleep. */
static void *other(void *arg)
{
	for (volatile unsigned i = 0;; i++)
		if (arg)
			pause();
	return NULL;
}

static bool one_by_one(void)
{
	bool good = true;

	for (size_t i = 0; i < n; i++)
		good &= fi_activate(ids[i], NULL) == 0;
	return good;
}

static bool together(void)
{
	return fi_activate_batch(ids, n, NULL) == 0;
}

static void measure(const char *name, bool (*activate)(void))
{
	double begin = seconds();
	bool good = activate();
	double end = seconds();

	good &= fi_deactivate_batch(ids, n) == 0;
	printf("%-12s %9.2f ms on, %7.2f ms off%s\n", name, 1e3 * (end - begin),
	       1e3 * (seconds() - end), good ? "" : ", and not all of them");
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "libsqlite3.so.0";
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	int threads = argc > 2 ? atoi(argv[2]) : 4;
	char pattern[256];
	struct fi_probe probe;
	pthread_t thread;
	long found;

	if (!dlopen(path, RTLD_NOW) || fi_take_entries(name) < 0 || fi_init() < 0) {
		fprintf(stderr, "%s cannot be looked at\n", path);
		return 1;
	}
	snprintf(pattern, sizeof(pattern), "*%.200s*:*", name);
	found = fi_find(pattern, ids, PROBES);
	for (long i = 0; i < found && i < PROBES; i++)
		if (fi_get(ids[i], &probe) == 0 && probe.state == FI_OFF)
			ids[n++] = ids[i];
	for (intptr_t i = 0; i < threads; i++)
		pthread_create(&thread, NULL, other, (void *)(i % 2));
	/* Their stubs are made. */
	if (!n || !together() || fi_deactivate_batch(ids, n) < 0)
		return 1;
	printf("%zu functions of %s, %d other threads\n", n, name, threads);
	for (int i = 0; i < ROUNDS; i++) {
		measure("one by one", one_by_one);
		measure("together", together);
		measure("together", together);
		measure("one by one", one_by_one);
	}
	return 0;
}
