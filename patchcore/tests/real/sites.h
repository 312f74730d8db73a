/* SPDX-License-Identifier: MIT */
/*
 * The calls of a program, and for each another form of the same meaning: a call
 * of a stub that counts and goes on to where the call went.
 */
#ifndef PATCHCORE_TESTS_REAL_SITES_H
#define PATCHCORE_TESTS_REAL_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CALL_LEN  5
#define SITES_MAX 32768

struct site_call {
	uint8_t *addr;
	uint8_t form[2][CALL_LEN]; /* as it was; to the stub. No byte of the operand is the same. */
	_Atomic(uint64_t) *count;  /* how often the stub ran */
	uint8_t *stub;
	uint64_t heat; /* count when the hot ones were chosen */
	bool straddles_window;
	bool straddles_line;
	bool is_stub; /* what stands there now */
};

struct sites {
	struct site_call *list;
	size_t count;
	uint8_t *low; /* the code that holds them all */
	uint8_t *high;
};

/* sites_find - decode the functions of an object. 0, or a negative errno. */
int sites_find(struct sites *sites, const char *object, unsigned window);

/* sites_add_stubs - 0, or a negative errno. */
int sites_add_stubs(struct sites *sites);

/* site_break_stub - from now on it returns 0 and does not go on. */
void site_break_stub(const struct site_call *site);

#endif
