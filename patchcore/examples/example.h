/* SPDX-License-Identifier: MIT */
/*
 * What the examples share: functions of a few bytes, made by hand, so that there is something to
 * patch. In a program of your own a compiler makes them.
 */
#ifndef PATCHCORE_EXAMPLES_EXAMPLE_H
#define PATCHCORE_EXAMPLES_EXAMPLE_H

#include <errno.h>
#include <patchcore/patchcore.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	PAGE = 4096,
	ACROSS = 62, /* offset on a page: two bytes are on one cache line, the next on another */
	SKIPPED = 77 /* exit status: there is nothing to show on this machine */
};

static inline _Noreturn void skip(const char *why)
{
	puts(why);
	exit(SKIPPED);
}

/* map_code - memory for code. */
static inline uint8_t *map_code(size_t size, int prot, int sharing)
{
	uint8_t *code = mmap(NULL, size, prot, sharing | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		skip("no memory for code, of that kind, is to be had here");
	return code;
}

/* map_open_code - one page that stays writable and executable. */
static inline uint8_t *map_open_code(void)
{
	return map_code(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE);
}

/* close_code - from now on it may be run, and not be written to. */
static inline uint8_t *close_code(uint8_t *code, size_t size)
{
	if (mprotect(code, size, PROT_READ | PROT_EXEC) < 0)
		skip("memory that was writable cannot be run here");
	return code;
}

/* put_load - mov eax, number. put_function - the same, and a ret. */
static inline void put_load(uint8_t code[5], uint32_t number)
{
	code[0] = 0xb8;
	memcpy(code + 1, &number, sizeof(number));
}

static inline void put_function(uint8_t code[6], uint32_t number)
{
	put_load(code, number);
	code[5] = 0xc3;
}

/* put_branch - of that opcode, E8: call, E9: jmp; as it leads from offset at to offset to. */
static inline void put_branch(uint8_t code[5], uint8_t opcode, int at, int to)
{
	int32_t distance = to - (at + 5);

	code[0] = opcode;
	memcpy(code + 1, &distance, sizeof(distance));
}

/* run - what the function there returns. */
static inline int run(const uint8_t *code)
{
	return ((int (*)(void))(uintptr_t)code)();
}

/* runner_start, runner_stop - a thread that runs a function, and counts its results, 0 to 2. */
struct runner {
	pthread_t thread;
	const uint8_t *code;
	_Atomic unsigned long results[3];
	_Atomic int stop;
};

static inline void *runner_main(void *arg)
{
	struct runner *runner = arg;

	while (!runner->stop)
		runner->results[run(runner->code)]++;
	return NULL;
}

static inline void runner_start(struct runner *runner, const uint8_t *code)
{
	runner->code = code;
	if (pthread_create(&runner->thread, NULL, runner_main, runner) != 0)
		skip("no thread to be had");
}

static inline void runner_stop(struct runner *runner)
{
	runner->stop = 1;
	pthread_join(runner->thread, NULL);
}

#endif
