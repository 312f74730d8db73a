/* SPDX-License-Identifier: MIT */
/* Functions that were compiled with -finstrument-functions, and count their calls themselves. */
#ifndef PROBES_PROVIDERS_TESTS_HOOKED_H
#define PROBES_PROVIDERS_TESTS_HOOKED_H

#include <stdatomic.h>
#include <stdint.h>

enum {
	SAMPLE_LEAF,
	SAMPLE_EITHER,
	SAMPLE_LAST,
	SAMPLE_AGAIN,
	SAMPLE_INLINED,
	SAMPLE_HIDDEN,
	SAMPLES
};

extern _Atomic uint64_t sample_calls[SAMPLES];
extern _Atomic uint64_t sample_sum;
extern int sample_lies; /* sample_leaf() does not count itself */

uint64_t sample_leaf(uint64_t a, double b);
uint64_t sample_either(uint64_t a); /* returns at two places */
void sample_last(uint64_t a);	    /* its last thing is a call */
uint64_t sample_again(uint64_t n);  /* n + 1 calls */

/* Inlined into all of them, some more than once, but called as well. */
uint64_t sample_inlined(uint64_t a);
extern uint64_t (*const sample_hidden_one)(uint64_t a); /* sample_hidden(), which is static */

/* A constant that holds the bytes of a call of the hook: its lowest byte is an E8. */
uint64_t sample_constant(void);

#endif
