/* SPDX-License-Identifier: MIT */
/*
 * Probes on the calls of -finstrument-functions, in a program that counts its calls itself.
 *
 * Prints what is wrong, and how many probes there are and how many are jumps. The same checks must
 * fail where a function does not count itself, and where the same bytes inside of another
 * instruction are taken for a call (only with -DBREAKABLE, in a child).
 *
 * 0, 1, or 77: no decoder.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fastinst.h>

#include "hooked.h"
#ifdef BREAKABLE
#include "probes/insn/insn.h"
#endif

#define PLAIN	__attribute__((no_instrument_function))
#define IDS	256
#define WORKERS 2
#define ROUNDS	20000
#define TOGGLES 300
#define CALL	0xe8
#define RET	0xc3

static const char *const names[SAMPLES] = { "sample_leaf",  "sample_either",  "sample_last",
					    "sample_again", "sample_inlined", "sample_hidden" };
static uint32_t ids[IDS];
static size_t ids_n;
static int failed;
static bool quiet;	   /* what is wrong is expected to be */
static _Atomic bool go_on; /* workers work again */

PLAIN static void wrong(const char *what, uint64_t is, uint64_t says)
{
	if (!quiet)
		printf("WRONG: %s: %llu, the program says %llu\n", what, (unsigned long long)is,
		       (unsigned long long)says);
	failed = 1;
}

/* All probes of one kind in a function: it may return at several places. */
PLAIN static uint64_t counted(int which, enum fi_kind kind)
{
	struct fi_probe probe;
	uint64_t sum = 0;

	for (size_t i = 0; i < ids_n; i++)
		if (!fi_get(ids[i], &probe) && probe.kind == kind &&
		    !strcmp(probe.function, names[which]))
			sum += fi_count(ids[i]);
	return sum;
}

PLAIN static uint64_t work(void)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		sum += sample_either(i);
		sample_last(i);
		if (i % 16 == 0)
			sum ^= sample_again(i % 8) + sample_inlined(i) + sample_hidden_one(i);
	}
	return sum;
}

/* The sum of its results, and how many there were. */
struct result {
	uint64_t sum, times;
};

PLAIN static void *worker(void *data)
{
	struct result *result = data;

	do {
		result->sum += work();
		result->times++;
	} while (go_on);
	return NULL;
}

PLAIN static void run_workers(void (*meanwhile)(void), uint64_t expected)
{
	pthread_t threads[WORKERS];
	struct result results[WORKERS] = { 0 };

	for (size_t i = 0; i < WORKERS; i++)
		if (pthread_create(&threads[i], NULL, worker, &results[i]))
			exit(1);
	meanwhile();
	for (size_t i = 0; i < WORKERS; i++) {
		pthread_join(threads[i], NULL);
		if (results[i].sum != expected * results[i].times)
			wrong("the results", results[i].sum, expected * results[i].times);
	}
}

PLAIN static void nothing(void)
{
}

/* With threads in the functions all the time. */
PLAIN static void toggle(void)
{
	for (int i = 0; i < TOGGLES; i++) {
		fi_activate_batch(ids, ids_n, NULL);
		fi_deactivate_batch(ids, ids_n);
	}
	go_on = false;
}

/* --- The oracle ------------------------------------------------------------------------------- */

/* What was counted is what was called. */
PLAIN static void check_counts(uint64_t expected)
{
	uint64_t calls[SAMPLES], entries[SAMPLES], exits[SAMPLES];

	for (int i = 0; i < SAMPLES; i++) {
		calls[i] = sample_calls[i];
		entries[i] = counted(i, FI_ENTRY);
		exits[i] = counted(i, FI_EXIT);
	}
	if (fi_activate_batch(ids, ids_n, NULL))
		wrong("activate", 1, 0);
	run_workers(nothing, expected);
	if (fi_deactivate_batch(ids, ids_n))
		wrong("deactivate", 1, 0);
	for (int i = 0; i < SAMPLES; i++) {
		uint64_t made = sample_calls[i] - calls[i];

		if (counted(i, FI_ENTRY) - entries[i] != made)
			wrong("entries counted", counted(i, FI_ENTRY) - entries[i], made);
		if (counted(i, FI_EXIT) - exits[i] != made)
			wrong("exits counted", counted(i, FI_EXIT) - exits[i], made);
	}
}

PLAIN static void check_off(uint64_t expected)
{
	uint64_t before = counted(SAMPLE_LEAF, FI_ENTRY) + counted(SAMPLE_LAST, FI_EXIT);
	uint64_t after;

	run_workers(nothing, expected);
	after = counted(SAMPLE_LEAF, FI_ENTRY) + counted(SAMPLE_LAST, FI_EXIT);
	if (after != before)
		wrong("counted while all are off", after - before, 0);
}

PLAIN static void check_constant(void)
{
	if ((sample_constant() & 0xff) != CALL)
		wrong("the byte in a constant", sample_constant() & 0xff, CALL);
}

PLAIN static int broken_is_seen(void (*check)(uint64_t), uint64_t expected)
{
	int before = failed, seen;

	failed = 0;
	quiet = true;
	check(expected);
	quiet = false;
	seen = failed;
	failed = before;
	return seen;
}

/* --- Broken ----------------------------------------------------------------------------------- */

#ifdef BREAKABLE
uint32_t __real_function_index(const struct function_code *code, uint64_t at);
uint32_t __wrap_function_index(const struct function_code *code, uint64_t at);

static bool any_byte;

PLAIN uint32_t __wrap_function_index(const struct function_code *code, uint64_t at)
{
	return any_byte ? 0 : __real_function_index(code, at);
}

PLAIN static int child_is_broken(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		any_byte = true;
		quiet = true;
		if (fi_init() < 0)
			_exit(2);
		check_constant();
		_exit(failed);
	}
	if (waitpid(pid, &status, 0) != pid)
		return 0;
	return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}
#endif

PLAIN int main(void)
{
	uint64_t expected = work();
	unsigned jumps = 0;
	struct fi_probe probe;
	long n;

	setvbuf(stdout, NULL, _IONBF, 0);
#ifdef BREAKABLE
	int broken = child_is_broken();
#endif
	if (fi_init() < 0)
		return 1;
#ifdef BREAKABLE
	if (!broken)
		wrong("a call inside of a constant was not seen", 0, 1);
#endif
	n = fi_find("sample_*", ids, IDS);
	ids_n = n < 0 || n > IDS ? 0 : (size_t)n;
	if (ids_n < 2 * SAMPLES)
		wrong("probes", ids_n, 2 * SAMPLES);
	for (size_t i = 0; i < ids_n; i++)
		if (!fi_get(ids[i], &probe))
			jumps += *(const uint8_t *)probe.address == RET;

	check_constant();
	check_off(expected);
	check_counts(expected);
	go_on = true;
	run_workers(toggle, expected);
	check_off(expected);
	check_counts(expected);
	check_constant();
	sample_lies = 1;
	if (!broken_is_seen(check_counts, expected))
		wrong("a call that was not counted was not seen", 0, 1);
	printf("%zu probes, %u of them jumps\n", ids_n, jumps);
	return failed;
}
