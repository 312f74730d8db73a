/* SPDX-License-Identifier: MIT */
/*
 * The loads and the locked stores of a call. Private. In assembly, because C has
 * no atomic access to unaligned memory; all of them stay inside one 8-byte word,
 * where the processor makes them one access (AMD APM vol. 2, 7.3.2).
 */
#ifndef PATCHCORE_CALL_CALL_STORE_H
#define PATCHCORE_CALL_CALL_STORE_H

#include <stdbool.h>
#include <stdint.h>

static inline uint8_t call_load_byte(const uint8_t *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static inline uint16_t call_load_two(const uint8_t *at)
{
	uint16_t two;

	__asm__ volatile("movw %1, %0" : "=r"(two) : "m"(*(const uint8_t(*)[2])at) : "memory");
	return two;
}

static inline int32_t call_load_four(const uint8_t *at)
{
	int32_t four;

	__asm__ volatile("movl %1, %0" : "=r"(four) : "m"(*(const uint8_t(*)[4])at) : "memory");
	return four;
}

/* True: it was *seen and is now `to`. False: *seen is what it was instead. */
static inline bool call_exchange_byte(uint8_t *at, uint16_t *seen, uint8_t to)
{
	uint8_t expected = (uint8_t)*seen;
	bool done = __atomic_compare_exchange_n(at, &expected, to, false, __ATOMIC_SEQ_CST,
						__ATOMIC_SEQ_CST);

	*seen = expected;
	return done;
}

static inline bool call_exchange_two(uint8_t *at, uint16_t *seen, uint16_t to)
{
	bool done;

	__asm__ volatile("lock cmpxchgw %3, %1"
			 : "=@ccz"(done), "+m"(*(uint8_t(*)[2])at), "+a"(*seen)
			 : "r"(to)
			 : "memory");
	return done;
}

static inline void call_swap_four(uint8_t *at, int32_t four)
{
	/* xchg locks without being told. */
	__asm__ volatile("xchgl %1, %0" : "+m"(*(uint8_t(*)[4])at), "+r"(four) : : "memory");
}

#endif
