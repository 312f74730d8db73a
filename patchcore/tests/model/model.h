/* SPDX-License-Identifier: MIT */
/*
 * A model of code that is changed while it runs, small enough to be checked in
 * all its states (model_check.h).
 *
 * What is modelled
 *   Memory is a few lines. A line holds one or two parts of instructions, a part
 *   is a number, 0 is one that starts with INT3. A line keeps what stood in it.
 *   Time goes in ticks, and may go on between any two steps of any thread.
 *   A fetch of an instruction takes its two parts from two lines. Each is one
 *   that its line holds now or held at most `stale` ticks ago; they need not be
 *   of the same time, and either may be the older. With `monotone` a thread
 *   never sees a line go back in time; without it more can happen than with it.
 *   With STALE_FOR_EVER only SYNC brings a thread up to date (membarrier: each at
 *   a moment of its own between begin and end).
 *   Threads are programs of steps; each step is atomic, all interleavings are
 *   tried. A store changes one part of one line. A thread may be a signal handler
 *   that comes in at any step of another thread, which stands still meanwhile,
 *   and it may be mortal: then it can end for ever at any step. Its clock
 *   may be ahead.
 *   Executors trap on INT3 and do what the trap handler does: look at the turn,
 *   help, look at the byte, go back.
 *
 * What must hold
 *   An executor that fetches parts that are not one of the listed instructions tears. One that
 *   fetches an instruction that was not put there, or after it has seen a later one (`monotone`),
 *   is out of order. A trap at a site that is free, where INT3 stands, is a foreign one. At the
 *   end every site is free and holds the last instruction that was put there; and from every
 *   state the end can be reached.
 *
 * What is not
 *   Bytes: a store to a part is whole, so nothing is said about windows. Store
 *   buffers: a store is visible at once, as a locked one is, and the plain
 *   stores of the library's own data are taken to be in order (TSO). An executor that has fetched
 *   and is held up before it runs the code: that is part of `stale`. That every machine has a
 *   `stale`, and what it is: that is measured. Errata. Clocks that stop or step back. More
 *   threads, sites and changes than are listed in the tests; fairness, so "can reach the end" is
 *   not "will". How pages become writable. The code of the library: the programs are written
 *   after it by hand.
 */
#ifndef PATCHCORE_TESTS_MODEL_MODEL_H
#define PATCHCORE_TESTS_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "patchcore/tests/model/model_check.h"

#define MODEL_LINES   4
#define MODEL_SITES   2
#define MODEL_THREADS 6
#define MODEL_VARS    6 /* private data of the library */

#define INT3	       0
#define ANY	       15   /* a back part that does not matter */
#define SELF	       0xfe /* the number of the thread, as a value */
#define STALE_FOR_EVER 0xff
#define NOW	       0x7f	    /* the instruction that stands there now */
#define VAR(n)	       (0x80 | (n)) /* what a variable holds, as a part or instruction */

enum model_half {
	FRONT,
	BACK
};

enum model_what {
	OP_END,
	OP_LABEL,
	OP_JUMP,
	OP_MAYBE,      /* jump or not */
	OP_HOLD,       /* site: make the turn odd */
	OP_RELEASE,    /* site: make the turn even, another one than before */
	OP_PUT_INT3,   /* site, label: INT3 over the front, or jump if it stands there */
	OP_STORE,      /* site, half, value, instruction that stands there then, or 0 */
	OP_EXCHANGE,   /* site, old, new, instruction, label: of the front, or jump */
	OP_LOAD,       /* site, half: remember the whole line */
	OP_STORE_LINE, /* site, half, value: the line as remembered, but this part */
	OP_WAIT,       /* ticks since the last step of this thread */
	OP_SYNC_BEGIN,
	OP_SYNC_END,
	OP_SET,	    /* variable, value */
	OP_SWAP,    /* variable, old, new, label: set it if it is old, or jump */
	OP_IF,	    /* variable, value, label */
	OP_IF_DEAD, /* variable, label: the thread of that number has ended for ever */
	OP_STAMP,   /* site: now */
	OP_ELAPSED, /* site, ticks, label: have they passed since, or jump */
	OP_FETCH,   /* site, label: run it and go on there; the next step if it traps */
	OP_IF_ODD,  /* site, label: remember the turn, jump if odd */
	OP_IF_INT3, /* site, label: what a load reads now */
	OP_IF_TURN, /* site, label: the turn is what it was */
	OP_FOREIGN, /* the trap is of no site: wrong */
	OP_MUST,    /* site, instruction: that is what stands there, or wrong */
	OP_SIGNAL,  /* a signal comes to the thread below */
};

struct model_op {
	enum model_what what;
	uint8_t a, b, c, d, e;
};

/*
 * A program has one END, its last step. Labels are small numbers; a jump goes to
 * the next such label below, or else to the nearest above.
 */
#define OP(...)                                                                                    \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define END()				   OP(OP_END, 0, 0, 0, 0, 0)
#define LABEL(n)			   OP(OP_LABEL, n, 0, 0, 0, 0)
#define JUMP(to)			   OP(OP_JUMP, to, 0, 0, 0, 0)
#define MAYBE(to)			   OP(OP_MAYBE, to, 0, 0, 0, 0)
#define HOLD(site)			   OP(OP_HOLD, site, 0, 0, 0, 0)
#define RELEASE(site)			   OP(OP_RELEASE, site, 0, 0, 0, 0)
#define PUT_INT3(site, to)		   OP(OP_PUT_INT3, site, to, 0, 0, 0)
#define PUT(site, half, part)		   OP(OP_STORE, site, half, part, 0, 0)
#define PUT_AS(site, half, p, is)	   OP(OP_STORE, site, half, p, is, 0)
#define EXCHANGE(site, from, part, is, to) OP(OP_EXCHANGE, site, from, part, is, to)
#define LOAD(site, half)		   OP(OP_LOAD, site, half, 0, 0, 0)
#define PUT_LINE(site, half, part)	   OP(OP_STORE_LINE, site, half, part, 0, 0)
#define WAIT(ticks)			   OP(OP_WAIT, ticks, 0, 0, 0, 0)
#define SET(var, value)			   OP(OP_SET, var, value, 0, 0, 0)
#define SWAP(var, from, value, to)	   OP(OP_SWAP, var, from, value, to, 0)
#define IF(var, value, to)		   OP(OP_IF, var, value, to, 0, 0)
#define IF_DEAD(var, to)		   OP(OP_IF_DEAD, var, to, 0, 0, 0)
#define STAMP(site)			   OP(OP_STAMP, site, 0, 0, 0, 0)
#define ELAPSED(site, ticks, to)	   OP(OP_ELAPSED, site, ticks, to, 0, 0)
#define FETCH(site, to)			   OP(OP_FETCH, site, to, 0, 0, 0)
#define IF_ODD(site, to)		   OP(OP_IF_ODD, site, to, 0, 0, 0)
#define IF_INT3(site, to)		   OP(OP_IF_INT3, site, to, 0, 0, 0)
#define IF_TURN(site, to)		   OP(OP_IF_TURN, site, to, 0, 0, 0)
#define FOREIGN()			   OP(OP_FOREIGN, 0, 0, 0, 0, 0)
#define MUST(site, is)			   OP(OP_MUST, site, is, 0, 0, 0)
#define SIGNAL()			   OP(OP_SIGNAL, 0, 0, 0, 0, 0)

struct model_thread {
	const char *name;
	const struct model_op *program;
	uint8_t id;    /* the thread's own id, not 0; a signal handler has that of its thread */
	uint8_t over;  /* 1 + the thread it interrupts, 0: none */
	bool endless;  /* an executor: may be at its first step at the end */
	bool mortal;   /* may die, if no other has */
	uint8_t ahead; /* ticks that its clock is ahead of the others' */
};

/* A pair of parts that is an instruction, 1 or higher. */
struct model_code {
	uint8_t front, back, is;
};

struct model_site {
	struct {
		uint8_t line, part;
	} half[2];
	uint8_t start; /* the instruction that stands there first, of `code` */
};

struct model {
	struct model_site sites[MODEL_SITES];
	unsigned site_count;
	const struct model_code *code; /* ends with one that is 0 */
	struct model_thread threads[MODEL_THREADS];
	unsigned thread_count;
	uint8_t stale;	  /* ticks */
	uint8_t longest;  /* of all waits: clocks need not count on from there */
	bool monotone;	  /* no thread sees a line go back */
	bool trap_syncs;  /* a thread that traps or gets a signal is up to date then */
	bool wrong_about; /* IF_DEAD may also jump when no thread is dead */
};

/* model_check - all states of it. PATCHCORE_MODEL_TRACE in the environment: print counterexamples.
 */
void model_check(const char *name, const struct model *model, bool expect_wrong,
		 struct check_verdict *verdict);

#endif
