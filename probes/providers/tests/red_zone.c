/* SPDX-License-Identifier: MIT */
/*
 * usage: red_zone LIBRARY EXECUTIONS jump|call
 *
 * Runs the leaves of LIBRARY that many times while another thread turns their markers on and off,
 * and counts the results that are not those of the markers left alone. "call" is the broken way: a
 * CALL at the marker. Exit status: 0 counted, 1 something else failed.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/core/core.h"
#include "probes/include/fastinst.h"

#define LEAVES 16
#define INPUTS 8

typedef uint64_t leaf_fn(uint64_t a, uint64_t b);

static leaf_fn *const *leaves;
static uint32_t ids[LEAVES];
static uint64_t expected[LEAVES][INPUTS];
static _Atomic uint64_t toggles, rounds;
static _Atomic int done;
static volatile double used;

static void fail(const char *what, long ret)
{
	fprintf(stderr, "%s: %s\n", what, strerror((int)-ret));
	exit(1);
}

/* Takes vectors and stack, as a probe function may. */
static void probe(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	volatile double room[64];

	(void)site;
	(void)regs;
	(void)data;
	for (int i = 0; i < 64; i++)
		room[i] = id + i * 1.5;
	used = room[id % 64];
}

/* Until the executor has been everywhere: a toggle that it does not meet tries nothing. */
static void let_it_run(void)
{
	uint64_t round = atomic_load_explicit(&rounds, memory_order_relaxed);

	while (atomic_load_explicit(&rounds, memory_order_relaxed) < round + 2 &&
	       !atomic_load_explicit(&done, memory_order_relaxed))
		sched_yield();
}

static void *toggle(void *arg)
{
	int ret;

	(void)arg;
	while (!atomic_load_explicit(&done, memory_order_relaxed)) {
		ret = fi_activate_batch(ids, LEAVES, toggles & 2 ? probe : NULL);
		let_it_run();
		if (!ret)
			ret = fi_deactivate_batch(ids, LEAVES);
		let_it_run();
		if (ret)
			fail("a toggle", ret);
		atomic_fetch_add_explicit(&toggles, 2, memory_order_relaxed);
	}
	return NULL;
}

/* The broken way: as at a function's entry. */
static void break_all(void)
{
	int ret = core_lock();

	for (int i = 0; i < LEAVES && !ret; i++) {
		ret = site_arm_call(probe_get(ids[i]));
		probe_get(ids[i])->armed = true;
	}
	if (ret)
		fail("a call", ret);
	core_unlock();
}

static uint64_t run(uint64_t executions)
{
	uint64_t wrong = 0;

	for (uint64_t n = 0; n < executions; n++) {
		unsigned leaf = n % LEAVES, input = n / LEAVES % INPUTS;

		if (leaf == 0)
			atomic_fetch_add_explicit(&rounds, 1, memory_order_relaxed);
		wrong += leaves[leaf](input * 3, input) != expected[leaf][input];
	}
	return wrong;
}

static uint64_t hits(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < LEAVES; i++)
		sum += fi_count(ids[i]);
	return sum;
}

int main(int argc, char **argv)
{
	void *library = argc == 4 ? dlopen(argv[1], RTLD_NOW) : NULL;
	uint64_t executions, before, wrong;
	pthread_t toggler;
	long ret;

	leaves = library ? dlsym(library, "leaves") : NULL;
	if (!leaves) {
		fprintf(stderr, "%s\n", argc == 4 ? dlerror() : "three arguments are needed");
		return 1;
	}
	for (int i = 0; i < LEAVES * INPUTS; i++)
		expected[i / INPUTS][i % INPUTS] = leaves[i / INPUTS](i % INPUTS * 3, i % INPUTS);
	ret = fi_init();
	if (!ret)
		ret = fi_find("red.zone", ids, LEAVES);
	if (ret != LEAVES)
		fail("the markers", ret < 0 ? ret : 0);
	if (strcmp(argv[3], "call") == 0)
		break_all();
	if (pthread_create(&toggler, NULL, toggle, NULL))
		return 1;
	executions = strtoull(argv[2], NULL, 0);
	/* Starved, the toggler may not have run yet. */
	wrong = run(executions);
	for (before = toggles; toggles < before + 8; executions += LEAVES * INPUTS * 8)
		wrong += run(LEAVES * INPUTS * 8);
	atomic_store_explicit(&done, 1, memory_order_relaxed);
	pthread_join(toggler, NULL);
	printf("%" PRIu64 " executions, %" PRIu64 " hits, %" PRIu64 " toggles, %" PRIu64 " wrong\n",
	       executions, hits(), toggles * LEAVES, wrong);
	return 0;
}
