/* SPDX-License-Identifier: MIT */
/*
 * A merge while another thread patches libc: where signals are blocked, or an INT3 of the
 * merge stands, none of libc's instructions is run.
 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "patchcore/merge.h"
#include "patchcore/patchcore.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"
#include "patchcore/word/word.h"

#define RUN    5u
#define MERGES 300
#define PLACES 32

static const uint8_t nops[RUN] = { 0x90, 0x90, 0x90, 0x90, 0x90 };

/* Instructions that are replaced by themselves, again and again. */
static uint8_t *places[PLACES];
static unsigned count;
static atomic_bool stop;
static _Atomic(unsigned long) changes;
static sem_t ready;

static void add(uintptr_t place)
{
	MUST(count < PLACES && pc_text_open((void *)place, 4) == 0);
	places[count++] = (uint8_t *)place;
}

/*
 * By the word protocol, as of a straddler: a window of two bytes is as small as can be. The
 * waits call nothing, so this thread can go through any libc.
 */
static void *patch_libc(void *arg)
{
	static const struct sync sync = {
		.policy = PC_POLICY_WAIT, .waits.first = 50000, .waits.second = 50000, .window = 2
	};

	sem_post(&ready);
	for (unsigned i = 0; !stop; i++) {
		uint8_t same[3];
		struct change change = change_in_place(places[i % count], same, sizeof(same));

		for (unsigned b = 0; b < sizeof(same); b++)
			same[b] = ((const volatile uint8_t *)places[i % count])[b];
		MUST(word_patch(&change, &sync) == 0);
		changes++;
	}
	return arg;
}

static void *spin(void *arg)
{
	sem_post(&ready);
	while (!stop)
		;
	return arg;
}

/* Blocks all signals and sleeps: looked at from outside. */
static void *sleep_blocked(void *arg)
{
	static const uint64_t all = ~UINT64_C(0);
	static const struct timespec ms = { .tv_nsec = 1000000 };

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
	sem_post(&ready);
	while (!stop)
		nanosleep(&ms, NULL);
	return arg;
}

static void merge_meanwhile(void)
{
	static void *(*const runs[])(void *) = { spin, sleep_blocked, patch_libc };
	uint8_t one[CODE_LEN], *site = code_map(1, RWX) + CODE_PAGE / 2 - 2;
	pthread_t threads[3];
	unsigned long before;

	code_load(one, CODE_NEW);
	code_put(site, 0);
	memcpy(site, nops, RUN);
	for (int i = 0; i < 3; i++)
		MUST(pthread_create(&threads[i], NULL, runs[i], NULL) == 0);
	for (int i = 0; i < 3; i++)
		MUST(sem_wait(&ready) == 0);
	for (before = changes; changes < before + 2 * count;)
		;
	for (int i = 0; i < MERGES; i++) {
		MUST(pc_patch_merge(site, one, RUN, PC_CHECK_THREADS) == 0);
		MUST(pc_patch(site, nops, RUN) == 0);
	}
	stop = true;
	for (int i = 0; i < 3; i++)
		MUST(pthread_join(threads[i], NULL) == 0);
}

static void prepare(void)
{
	if (CHILD_TSAN || CHILD_ASAN)
		child_skip("the sanitizers wrap what is patched");
	conf_use_none();
	MUST(pc_init() == 0 && sem_init(&ready, 0, 0) == 0);
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("the kernel has no membarrier SYNC_CORE");
}

static void functions(const void *arg)
{
	(void)arg;
	prepare();
	add((uintptr_t)snprintf);
	add((uintptr_t)vsnprintf);
	add((uintptr_t)strtol);
	add((uintptr_t)strtoul);
	add((uintptr_t)strtoull);
	add((uintptr_t)atoi);
	add((uintptr_t)strstr);
	add((uintptr_t)strchr);
	add((uintptr_t)strrchr);
	add((uintptr_t)memcpy);
	add((uintptr_t)memset);
	add((uintptr_t)clock_gettime);
	add((uintptr_t)getuid);
	add((uintptr_t)sigfillset);
	add((uintptr_t)pthread_sigmask);
	add((uintptr_t)pthread_setcancelstate);
	add((uintptr_t)sigaction);
	add((uintptr_t)syscall);
	add((uintptr_t)getpid);
	merge_meanwhile();
}

static void nothing(int signal)
{
	(void)signal;
}

/* The way back from libc's handlers, with all signals blocked if the handler was. */
static void restorer(const void *arg)
{
	struct {
		uintptr_t handler;
		unsigned long flags;
		uintptr_t restorer;
		uint64_t mask;
	} action;

	(void)arg;
	prepare();
	MUST(signal(SIGUSR1, nothing) != SIG_ERR);
	MUST(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &action, sizeof(action.mask)) == 0);
	MUST(action.restorer);
	add(action.restorer);
	merge_meanwhile();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(functions),
		child_unit_test(restorer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
