/* SPDX-License-Identifier: MIT */
/*
 * A fuzz target and what drives it. The fuzzer says FUZZ_RUNS, includes this and defines
 * LLVMFuzzerTestOneInput(). Its main(), unless libFuzzer brings one (TMAX_LIBFUZZER), calls
 * fuzz_main(), so that every make check fuzzes a little with any compiler.
 *
 * With arguments the files are replayed. Without, a built-in corpus is mutated
 * for $TMAX_FUZZ_SECONDS (5), from $TMAX_FUZZ_SEED (1). An input that kills the
 * fuzzer is left in PROGRAM.crash. By libFuzzer it is FUZZ_RUNS inputs then, of seed 1.
 */
#ifndef RESULTS_TESTS_FUZZ_H
#define RESULTS_TESTS_FUZZ_H

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void must(bool holds)
{
	if (!holds)
		abort();
}

/* fuzz_open - the input as a file to read. */
static inline FILE *fuzz_open(const uint8_t *data, size_t size)
{
	FILE *stream =
		size ? fmemopen((void *)(uintptr_t)data, size, "r") : fopen("/dev/null", "r");

	must(stream != NULL);
	return stream;
}

/* A text as an input of the driver's. */
#define FUZZ_INPUT(text)                                                                           \
	{                                                                                          \
		text, sizeof(text) - 1                                                             \
	}

#ifdef TMAX_LIBFUZZER

#define FUZZ_STRING(number)	   #number
#define FUZZ_ARGUMENT(name, value) "-" name "=" FUZZ_STRING(value)

int LLVMFuzzerInitialize(int *argc, char ***argv);

/* Called before the arguments are read. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char *arguments[] = { NULL, "-seed=1", FUZZ_ARGUMENT("runs", FUZZ_RUNS), NULL };

	if (*argc > 1)
		return 0;
	arguments[0] = **argv;
	*argv = arguments;
	*argc = 3;
	return 0;
}

#else

#define FUZZ_INPUT_MAX	65536
#define FUZZ_REPLAY_MAX (16u << 20)
#define FUZZ_PATIENCE	60 /* seconds of CPU until a broken target must be found: it takes far less \
			    */

struct fuzz_input {
	const void *data;
	size_t size;
};

struct fuzz_corpus {
	const struct fuzz_input *inputs;
	size_t count;
	const char *const *tokens; /* words worth inserting, NULL ends them */
	bool *breaks;		   /* a target with this set must be found out, if there is one */
};

/* The sanitizers exit without a signal, but call this back first. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static struct {
	char crash[256];
	const uint8_t *data;
	size_t size;
} fuzz_now;

static uint64_t fuzz_state;

static uint64_t fuzz_random(uint64_t below)
{
	uint64_t z = random_next(&fuzz_state);

	return below ? z % below : 0;
}

/* Async-signal-safe. */
static void fuzz_save(void)
{
	int fd = open(fuzz_now.crash, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	if (fd < 0)
		return;
	if (write(fd, fuzz_now.data, fuzz_now.size) == (ssize_t)fuzz_now.size)
		fuzz_now.size = 0;
	close(fd);
}

static void fuzz_died(int signal)
{
	fuzz_save();
	raise(signal); /* SA_RESETHAND: this time for real */
}

/* SIGABRT is a property that does not hold, SIGTERM the end of the patience with a hang. */
static void fuzz_watch(const char *program)
{
	static const int signals[] = { SIGABRT, SIGTERM, SIGSEGV, SIGBUS, SIGILL, SIGFPE };
	struct sigaction action = { .sa_handler = fuzz_died,
				    .sa_flags = (int)(SA_RESETHAND | SA_NODEFER) };
	size_t count = sizeof(signals) / sizeof(*signals);

	snprintf(fuzz_now.crash, sizeof(fuzz_now.crash), "%s.crash", program);
	if (__sanitizer_set_death_callback) {
		__sanitizer_set_death_callback(fuzz_save);
		count = 2; /* the sanitizer tells more about the others */
	}
	for (size_t i = 0; i < count; i++)
		sigaction(signals[i], &action, NULL);
}

/* From a copy of the exact size, so that the sanitizer sees reads past the end. */
static void fuzz_one(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	fuzz_now.data = copy;
	fuzz_now.size = size;
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static int fuzz_replay(const char *path)
{
	FILE *stream = fopen(path, "rb");
	uint8_t *data = malloc(FUZZ_REPLAY_MAX);
	size_t size;

	if (!stream || !data) {
		perror(path);
		return 1;
	}
	size = fread(data, 1, FUZZ_REPLAY_MAX, stream);
	fclose(stream);
	fuzz_one(data, size);
	free(data);
	return 0;
}

static void fuzz_insert(uint8_t *data, size_t *size, size_t at, const void *what, size_t length)
{
	if (length > FUZZ_INPUT_MAX - *size)
		return;
	memmove(data + at + length, data + at, *size - at);
	memcpy(data + at, what, length);
	*size += length;
}

static void fuzz_delete(uint8_t *data, size_t *size, size_t at, size_t length)
{
	memmove(data + at, data + at + length, *size - at - length);
	*size -= length;
}

static void fuzz_number(uint8_t *data, size_t *size, size_t at)
{
	static const char *const numbers[] = { "0",
					       "-1",
					       "9",
					       "1e999",
					       "-0.0",
					       "1.5",
					       "4294967296",
					       "9223372036854775807",
					       "9223372036854775808",
					       "0x10",
					       "nan" };
	const char *number = numbers[fuzz_random(sizeof(numbers) / sizeof(*numbers))];
	size_t end;

	while (at < *size && (data[at] < '0' || data[at] > '9'))
		at++;
	for (end = at; end < *size && data[end] >= '0' && data[end] <= '9';)
		end++;
	fuzz_delete(data, size, at, end - at);
	fuzz_insert(data, size, at, number, strlen(number));
}

static void fuzz_token(uint8_t *data, size_t *size, size_t at, const char *const *tokens)
{
	size_t count = 0;

	while (tokens[count])
		count++;
	if (count)
		tokens += fuzz_random(count);
	if (*tokens)
		fuzz_insert(data, size, at, *tokens, strlen(*tokens));
}

static void fuzz_mutate(uint8_t *data, size_t *size, const struct fuzz_corpus *corpus)
{
	const struct fuzz_input *other = &corpus->inputs[fuzz_random(corpus->count)];
	size_t at = fuzz_random(*size + 1), left = *size - at;
	size_t length = fuzz_random(left < 64 ? left + 1 : 64);
	uint8_t piece[64];

	memcpy(piece, data + at, length);
	switch (fuzz_random(8)) {
	case 0:
		if (left)
			data[at] ^= (uint8_t)(1 << fuzz_random(8));
		break;
	case 1:
		if (left)
			data[at] = (uint8_t)fuzz_random(256);
		break;
	case 2:
		fuzz_delete(data, size, at, length);
		break;
	case 3:
		fuzz_insert(data, size, fuzz_random(*size + 1), piece, length);
		break;
	case 4:
		fuzz_number(data, size, at);
		break;
	case 5:
		fuzz_token(data, size, at, corpus->tokens);
		break;
	case 6:
		*size = at;
		break;
	default:
		fuzz_insert(data, size, at, other->data, fuzz_random(other->size + 1));
	}
}

static void fuzz_mutant(const struct fuzz_corpus *corpus)
{
	const struct fuzz_input *from = &corpus->inputs[fuzz_random(corpus->count)];
	size_t size = from->size < FUZZ_INPUT_MAX ? from->size : FUZZ_INPUT_MAX;
	static uint8_t data[FUZZ_INPUT_MAX];

	memcpy(data, from->data, size);
	for (uint64_t n = 1 + fuzz_random(4); n; n--)
		fuzz_mutate(data, &size, corpus);
	fuzz_one(data, size);
}

static double fuzz_setting(const char *name, double value)
{
	const char *text = getenv(name);
	char *end;

	if (!text)
		return value;
	value = strtod(text, &end);
	if (end == text || *end || !(value >= 0 && value < 1e9)) {
		fprintf(stderr, "%s: not a number: %s\n", name, text);
		exit(2);
	}
	return value;
}

static double fuzz_clock(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Ends by a signal, or by the sanitizer, when something is found. */
static void fuzz_broken(const struct fuzz_corpus *corpus)
{
	static const struct rlimit no_core;
	double end = fuzz_clock(CLOCK_PROCESS_CPUTIME_ID) + FUZZ_PATIENCE;

	setrlimit(RLIMIT_CORE, &no_core);
	fclose(stderr);
	while (fuzz_clock(CLOCK_PROCESS_CPUTIME_ID) < end)
		fuzz_mutant(corpus);
	_exit(0);
}

/* The status of a child that fuzzes a broken target: not 0. */
static int fuzz_in_child(const struct fuzz_corpus *corpus)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		fuzz_broken(corpus);
	must(pid > 0 && waitpid(pid, &status, 0) == pid);
	return status;
}

/* The fuzzer must be able to find something. */
static bool fuzz_finds_broken(const struct fuzz_corpus *corpus)
{
	int status;

	if (!corpus->breaks)
		return true;
	*corpus->breaks = true;
	status = fuzz_in_child(corpus);
	*corpus->breaks = false;
	return status != 0;
}

static int fuzz_run(const struct fuzz_corpus *corpus)
{
	double seconds = fuzz_setting("TMAX_FUZZ_SECONDS", 5);
	double seed = fuzz_setting("TMAX_FUZZ_SEED", 1),
	       end = fuzz_clock(CLOCK_MONOTONIC) + seconds;
	uint64_t inputs = 0;

	fuzz_state = (uint64_t)seed;
	printf("seed %.0f, %g seconds\n", seed, seconds);
	for (size_t i = 0; i < corpus->count; i++)
		fuzz_one(corpus->inputs[i].data, corpus->inputs[i].size);
	for (; fuzz_clock(CLOCK_MONOTONIC) < end; inputs++)
		fuzz_mutant(corpus);
	printf("%llu mutants of %zu inputs\n", (unsigned long long)inputs, corpus->count);
	return 0;
}

static int fuzz_main(int argc, char **argv, const struct fuzz_corpus *corpus)
{
	int failed = 0;

	if (argc < 2 && !fuzz_finds_broken(corpus)) {
		fprintf(stderr, "nothing was found of a broken target\n");
		return 1;
	}
	fuzz_watch(argv[0]);
	if (argc < 2)
		return fuzz_run(corpus);
	for (int i = 1; i < argc; i++)
		failed |= fuzz_replay(argv[i]);
	return failed;
}

#endif
#endif
