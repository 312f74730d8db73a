/* SPDX-License-Identifier: MIT */
/*
 * A program of basic blocks, in one thread or in several. It has loops, a switch, calls, a tail
 * call, and a constant with the bytes of a call in it. What it computes shows whether each
 * instruction was run as the compiler wrote it.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS	 4
#define NOINLINE __attribute__((noinline))

/* movabs of 8 bytes, of which five are a call of the tracer as seen from there. */
uint64_t constant(void);
asm(".text\n"
    ".globl constant\n"
    ".type constant, @function\n"
    "constant:\n"
    "	.byte 0x48, 0xb8, 0xe8\n"
    "	.reloc ., R_X86_64_PLT32, __sanitizer_cov_trace_pc - 4\n"
    "	.long 0\n"
    "	.byte 0x11, 0x22, 0x33\n"
    "	ret\n"
    ".size constant, . - constant\n");

NOINLINE static uint64_t collatz(uint64_t n)
{
	uint64_t steps = 0;

	while (n != 1) {
		n = n % 2 ? 3 * n + 1 : n / 2;
		steps++;
	}
	return steps;
}

NOINLINE static uint64_t kind(uint64_t n)
{
	switch (n % 7) {
	case 0:
		return n * 3;
	case 1:
		return n ^ 0x55;
	case 2:
		return n << 3;
	case 3:
		return collatz(n);
	case 4:
		return n / 5;
	default:
		return 1;
	}
}

/* Its last block has nothing to do, so that the call of the tracer may become a jump. */
NOINLINE static void note(uint64_t *sum, uint64_t value)
{
	*sum ^= value << 7;
	while (value % 3) {
		*sum += value;
		value /= 2;
	}
}

static void *work(void *result)
{
	uint64_t rounds = *(uint64_t *)result, sum = 0;

	for (uint64_t i = 1; i <= rounds; i++)
		note(&sum, kind(i) + (constant() & 0xff));
	*(uint64_t *)result = sum;
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t sums[THREADS], rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
	int n = argc > 2 && !strcmp(argv[2], "threads") ? THREADS : 1;
	pthread_t threads[THREADS];

	for (int i = 0; i < n; i++) {
		sums[i] = rounds + (uint64_t)i;
		if (pthread_create(&threads[i], NULL, work, &sums[i]))
			return 1;
	}
	for (int i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
		printf("%llx\n", (unsigned long long)sums[i]);
	}
	return 0;
}
