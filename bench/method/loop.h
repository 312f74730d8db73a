/* SPDX-License-Identifier: MIT */
/*
 * The loops that executors run: a site, or one of the things that people use instead, and
 * nothing else. All are emitted alike, so that what differs is what is compared:
 *
 *	.align 64		; the site may ask for more in front of the loop
 *	1:	<body>
 *		<work>		; if asked for: as much as a machine does in some 4 cycles
 *		dec	rdi
 *		jnz	1b
 *
 *	LOOP_EMPTY	nothing
 *	LOOP_SITE	5 bytes, split as asked: to be patched
 *	LOOP_DIRECT	call target 0, never changed: what the compiler would have emitted
 *	LOOP_FLAG	cmp byte [rip + flag], 0; jne over there; where over there is a call of
 *			target 0 and a jmp back, out of the hot line, as gcc -O2 lays out
 *			if (__builtin_expect(active, 0)) (*fn)()
 *	LOOP_POINTER	call [rip + pointer], as gcc -O2 does for (*fn)()
 *	LOOP_FLAG_POINTER  the two together: if (active) (*fn)(), with active and fn in data
 *
 * The flag, the pointer and the counters have cache lines of their own.
 */
#ifndef BENCH_METHOD_LOOP_H
#define BENCH_METHOD_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LOOP_SITE_BYTES 5

enum loop_kind {
	LOOP_EMPTY,
	LOOP_SITE,
	LOOP_DIRECT,
	LOOP_FLAG,
	LOOP_POINTER,
	LOOP_FLAG_POINTER,
};

/* What a target does. Both have the same length and distance from the site. */
enum loop_target {
	LOOP_RETURN, /* ret: an empty function */
	LOOP_COUNT,  /* inc qword [rsi + 8 * target]; ret */
};

/* The codes of a LOOP_SITE. bytes[LOOP_CALL_0] stands there first. */
enum loop_code {
	LOOP_CALL_0,
	LOOP_CALL_1,
	LOOP_NOP, /* 0F 1F 44 00 00 */
	LOOP_CODES
};

struct loop_spec {
	enum loop_kind kind;
	enum loop_target target;
	/*
	 * Of the site at the boundary: 1 to 4; 0: inside one 8-byte word. The other kinds begin
	 * where a site with that split would, and LOOP_EMPTY behind it: what a loop costs depends
	 * on how it lies, and on how its branch does.
	 */
	unsigned split;
	unsigned boundary; /* 8, 64 (default, 0) or 4096 bytes, not a multiple of twice that */
	bool work;	   /* besides the site */
};

/* Runs the body so often, at least once. counts: of the calls of either target. */
typedef void loop_fn(uint64_t iterations, uint64_t *counts);

struct loop {
	loop_fn *run;
	uint8_t *site; /* NULL unless LOOP_SITE; its page is writable and executable */
	uint8_t bytes[LOOP_CODES][8];
	void *target[2];
	_Atomic(uint8_t) *flag;	  /* NULL unless there is one; 1 at first */
	_Atomic(void *) *pointer; /* NULL unless there is one; target 0 at first */
	void *map;
};

/* loop_split_name - as rows have it: "0", "1|4". */
const char *loop_split_name(unsigned split);

/*
 * loop_build - map it. 0 or a negative errno. loop_free - for a loop that no executor runs: also
 * pc_forget().
 */
int loop_build(struct loop *loop, const struct loop_spec *spec);
void loop_free(struct loop *loop);

#endif
