/* SPDX-License-Identifier: MIT */
/*
 * A program that counts its calls itself, and leaves functions in every way that there is:
 * exceptions, longjmp(), tail calls, cancelled threads, children, libraries that are unloaded.
 * test_exact.sh holds what fastinst counted against what this prints.
 *
 * usage: exact PLUGIN; EXACT_LIE=FUNCTION has it tell one call more of that one
 *
 * With -DPLUGIN it is the library.
 */
#include <atomic>
#include <stdint.h>

#define PROBED	 extern "C" __attribute__((noinline, visibility("default")))
#define COUNT(x) counts[x].fetch_add(1, std::memory_order_relaxed)

/* A compiler that makes a copy for some callers gives it another name. */
#ifndef __clang__
#define ONE __attribute__((noclone))
#else
#define ONE
#endif

enum {
	LEAF,
	THROWS,
	CATCHES,
	AGAIN,
	CLEANS,
	JUMPS,
	JUMPED,
	TAIL,
	EVEN,
	ODD,
	CANCELLED,
	WAITS,
	CLEANED,
	CHILD,
	PLUGIN_RUN,
	PLUGIN_STEP,
	FUNCTIONS
};

typedef std::atomic<uint64_t> counter;

#ifdef PLUGIN
static std::atomic<counter *> shared;
#define counts (shared.load(std::memory_order_relaxed))

extern "C" void plugin_counters(counter *where)
{
	shared = where;
}

PROBED ONE unsigned long plugin_step(unsigned long x)
{
	COUNT(PLUGIN_STEP);
	return x * 3 + 1;
}

PROBED ONE unsigned long plugin_run(unsigned long n)
{
	unsigned long sum = 0;

	COUNT(PLUGIN_RUN);
	for (unsigned long i = 0; i < n; i++)
		sum += plugin_step(i);
	return sum;
}
#else
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS	500
#define FORKS	4
#define LOADS	20

static const char *const names[FUNCTIONS] = { "leaf",	 "throws", "catches",	 "again",
					      "cleans",	 "jumps",  "jumped",	 "tail",
					      "even",	 "odd",	   "cancelled",	 "waits",
					      "cleaned", "child",  "plugin_run", "plugin_step" };

static counter *counts; /* of children, too */
static std::atomic<unsigned long> sink;
static const char *plugin;

PROBED ONE unsigned long leaf(unsigned long x)
{
	COUNT(LEAF);
	return x * 2654435761u + 1;
}

/* --- Exceptions ------------------------------------------------------------------------------- */

PROBED ONE void cleans(unsigned long x)
{
	COUNT(CLEANS);
	sink += x;
}

struct guard {
	unsigned long x;
	~guard()
	{
		cleans(x);
	}
};

PROBED ONE unsigned long throws(unsigned long n)
{
	guard g = { n };

	COUNT(THROWS);
	if (!n)
		throw 7;
	return throws(n - 1) + leaf(n);
}

PROBED ONE unsigned long again(unsigned long n)
{
	COUNT(AGAIN);
	try {
		return throws(n);
	} catch (int) {
		leaf(n);
		throw;
	}
}

PROBED ONE unsigned long catches(unsigned long n)
{
	COUNT(CATCHES);
	try {
		return again(n);
	} catch (int x) {
		return leaf((unsigned long)x);
	}
}

/* --- longjmp() -------------------------------------------------------------------------------- */

PROBED ONE unsigned long jumps(unsigned long n, jmp_buf *to)
{
	COUNT(JUMPS);
	if (!n)
		longjmp(*to, 1);
	return n > 1000 ? n : jumps(n - 1, to) + leaf(n);
}

PROBED ONE unsigned long jumped(unsigned long n)
{
	jmp_buf here;

	COUNT(JUMPED);
	if (!setjmp(here))
		return jumps(n, &here);
	return leaf(1);
}

/* --- Tail calls ------------------------------------------------------------------------------- */

PROBED ONE unsigned long tail(unsigned long x)
{
	COUNT(TAIL);
	return leaf(x + 1);
}

PROBED unsigned long odd(unsigned long n);

PROBED ONE unsigned long even(unsigned long n)
{
	COUNT(EVEN);
	return n ? odd(n - 1) : 1;
}

PROBED ONE unsigned long odd(unsigned long n)
{
	COUNT(ODD);
	return n ? even(n - 1) : 0;
}

/* --- Cancelled threads ------------------------------------------------------------------------ */

PROBED ONE void cleaned(void *data)
{
	COUNT(CLEANED);
	leaf((unsigned long)(uintptr_t)data);
}

PROBED ONE void waits(std::atomic<bool> *begun)
{
	COUNT(WAITS);
	*begun = true;
	pthread_testcancel();
}

PROBED ONE void *cancelled(void *begun)
{
	COUNT(CANCELLED);
	pthread_cleanup_push(cleaned, begun);
	for (;;)
		waits(static_cast<std::atomic<bool> *>(begun));
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancel_some(void)
{
	std::atomic<bool> begun[THREADS];
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++) {
		begun[i] = false;
		if (pthread_create(&thread[i], NULL, cancelled, &begun[i]))
			abort();
	}
	for (int i = 0; i < THREADS; i++) {
		while (!begun[i])
			usleep(100);
		pthread_cancel(thread[i]);
		pthread_join(thread[i], NULL);
	}
}

/* --- Children, libraries ---------------------------------------------------------------------- */

PROBED ONE void child(unsigned long n)
{
	COUNT(CHILD);
	for (unsigned long i = 0; i < n; i++)
		sink += catches(3) + jumped(3) + tail(i);
}

static void fork_some(void)
{
	int left = 0;

	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();

		if (!pid) {
			child(20);
			exit(0);
		}
		left += pid > 0;
	}
	for (int status; left && wait(&status) > 0; left--)
		if (status)
			abort();
}

static void load_one(void)
{
	void *handle = dlopen(plugin, RTLD_NOW);
	void (*counters)(counter *);
	unsigned long (*run)(unsigned long);

	if (!handle)
		abort();
	*(void **)&counters = dlsym(handle, "plugin_counters");
	*(void **)&run = dlsym(handle, "plugin_run");
	counters(counts);
	sink += run(10);
	dlclose(handle);
}

/* To load is no cancellation point. */
static void *load_cancelled(void *)
{
	pthread_cancel(pthread_self());
	load_one();
	pthread_testcancel();
	abort();
}

/* --- All of them ------------------------------------------------------------------------------ */

/* A child may not call exit() where another thread was loading or unloading at the fork. */
static std::atomic<bool> forked;

static void *work(void *)
{
	for (unsigned long i = 0; i < ROUNDS || !forked; i++)
		sink += catches(i % 5) + jumped(i % 7) + tail(i) + even(i % 9);
	for (int i = 0; i < LOADS; i++)
		load_one();
	return NULL;
}

int main(int argc, char **argv)
{
	const char *lie = getenv("EXACT_LIE");
	pthread_t thread[THREADS], loader;

	plugin = argc > 1 ? argv[1] : "";
	counts = static_cast<counter *>(mmap(NULL, FUNCTIONS * sizeof(*counts),
					     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
					     0));
	if (counts == MAP_FAILED)
		return 1;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, work, NULL))
			return 1;
	cancel_some();
	fork_some();
	forked = true;
	if (pthread_create(&loader, NULL, load_cancelled, NULL) || pthread_join(loader, NULL))
		return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < FUNCTIONS; i++)
		printf("%s %llu\n", names[i],
		       (unsigned long long)counts[i] + (lie && !strcmp(lie, names[i])));
	return 0;
}
#endif
