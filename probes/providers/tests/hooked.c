/* SPDX-License-Identifier: MIT */
#include "hooked.h"

#define NOINLINE __attribute__((noinline))

_Atomic uint64_t sample_calls[SAMPLES];
_Atomic uint64_t sample_sum;
int sample_lies;

__attribute__((no_instrument_function)) static inline void called(int which)
{
	atomic_fetch_add_explicit(&sample_calls[which], 1, memory_order_relaxed);
}

inline __attribute__((always_inline)) uint64_t sample_inlined(uint64_t a)
{
	called(SAMPLE_INLINED);
	return a ^ a >> 7;
}

static inline __attribute__((always_inline)) uint64_t sample_hidden(uint64_t a)
{
	called(SAMPLE_HIDDEN);
	return a & 4 ? sample_inlined(a) : a + 3;
}

uint64_t (*const sample_hidden_one)(uint64_t a) = sample_hidden;

NOINLINE uint64_t sample_leaf(uint64_t a, double b)
{
	if (!sample_lies)
		called(SAMPLE_LEAF);
	return a * 2654435761u + (uint64_t)b;
}

NOINLINE uint64_t sample_either(uint64_t a)
{
	called(SAMPLE_EITHER);
	if (a & 1)
		return sample_leaf(a, 1.5) ^ sample_inlined(a);
	for (uint64_t i = 0; i < (a & 3); i++)
		a += sample_hidden(a + i);
	return sample_leaf(a + 1, 2.5) + sample_leaf(a, 3.5);
}

NOINLINE void sample_last(uint64_t a)
{
	called(SAMPLE_LAST);
	atomic_fetch_add_explicit(&sample_sum, sample_hidden(a), memory_order_relaxed);
}

NOINLINE uint64_t sample_again(uint64_t n)
{
	called(SAMPLE_AGAIN);
	return n ? sample_again(n - 1) + sample_leaf(sample_inlined(n), 0.5) : 1;
}

__asm__(".pushsection .text\n"
	".globl sample_constant\n"
	".type sample_constant, @function\n"
	"sample_constant:\n"
	"	.byte 0x48, 0xb8\n" /* movabs, to rax */
	"	call __cyg_profile_func_enter@PLT\n"
	"	.byte 0, 0, 0\n"
	"	ret\n"
	".size sample_constant, . - sample_constant\n"
	".popsection\n");
