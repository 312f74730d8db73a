/* SPDX-License-Identifier: MIT */
/*
 * A program for "uftrace record -P": one function that is traced, one that could be but is not,
 * and one that cannot. It is patched before main() and never after: nothing can be switched.
 *
 * Compiled without any instrumentation but that of the two attributes.
 */
#define LINES_OFF left_alone
static void left_alone(void);
#include "lines.h"

#define NOP	  0x90
#define ENDBR64	  4 /* bytes, the first of them no NOP */
#define FIVE_NOPS __attribute__((patchable_function_entry(5), noinline, aligned(64)))

FIVE_NOPS void traced(void)
{
	__asm__ volatile("");
}

FIVE_NOPS static void left_alone(void)
{
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline, aligned(64))) void plain(void)
{
	__asm__ volatile("nop");
}

static void turn_traced(bool on)
{
	(void)on;
}

static const char *get_ready(void)
{
	const uint8_t *code = (const uint8_t *)(uintptr_t)traced;

	code += *code == 0xf3 ? ENDBR64 : 0;
	return *code == NOP ? "uftrace did not patch the function" : NULL;
}
