/* SPDX-License-Identifier: MIT */
/*
 * Leaf functions that keep data in the red zone across a marker: anything that is pushed there at
 * the marker falsifies their results. Sixteen of them, so that the five bytes of the marker stand
 * at many places relative to 8-byte words. test_red_zone.sh compiles this by every compiler and
 * level.
 */
#include <stdint.h>

#include <fastinst/marker.h>

#ifdef MARKER_CODE /* of another header */
#undef FI_MARKER_CODE
#define FI_MARKER_CODE MARKER_CODE
#endif

#define KEPT 14 /* words; the red zone has 16 */

#define LEAF(n)                                                                                    \
	__attribute__((noinline)) static uint64_t leaf_##n(uint64_t a, uint64_t b)                 \
	{                                                                                          \
		volatile uint64_t kept[KEPT];                                                      \
		uint64_t sum = n;                                                                  \
                                                                                                   \
		for (unsigned i = 0; i < KEPT; i++)                                                \
			kept[i] = a * i + b;                                                       \
		__asm__ volatile(".skip 1 + " #n ", 0x90");                                        \
		FI_MARKER(red, zone, a, sum);                                                      \
		for (unsigned i = 0; i < KEPT; i++)                                                \
			sum = sum * 31 + kept[i];                                                  \
		return sum;                                                                        \
	}

LEAF(0)
LEAF(1)
LEAF(2)
LEAF(3)
LEAF(4)
LEAF(5)
LEAF(6)
LEAF(7)
LEAF(8)
LEAF(9)
LEAF(10)
LEAF(11)
LEAF(12)
LEAF(13)
LEAF(14)
LEAF(15)

uint64_t (*const leaves[16])(uint64_t, uint64_t) = {
	leaf_0, leaf_1, leaf_2,	 leaf_3,  leaf_4,  leaf_5,  leaf_6,  leaf_7,
	leaf_8, leaf_9, leaf_10, leaf_11, leaf_12, leaf_13, leaf_14, leaf_15,
};
