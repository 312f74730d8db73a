/* SPDX-License-Identifier: MIT */
/* Inside a cell: what its writer and its executor share. Private to conform. */
#ifndef CONFORM_CHILD_H
#define CONFORM_CHILD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/random.h"
#include "conform/guarantee.h"
#include "stress/run/run.h"

#define ARENA	    (1u << 20) /* bytes of memory for code */
#define LINE	    64u
#define PAGE	    4096u
#define PARTS_MOST  48u /* instructions of a function that is moved: up to four lines */
#define CODE_MOST   (6u + 5u * PARTS_MOST)
#define FAULT_EVERY 17u	       /* trials, in the mean, between faults on purpose */
#define NUMBER_NONE UINT32_MAX /* returned where no code ran: a trap was met in its place */

struct conform_child {
	const struct conform_cell *cell;
	struct leash *leash;
	struct conform_result *result; /* shared with the parent */
	uint8_t *arena;		       /* of ARENA bytes that may be written and run */
	uint8_t *stale;		       /* an older copy, by another name: at first OLD_NUMBER's */
	uint8_t last[CODE_MOST];       /* what a thread that takes turns wrote last */
	double begin, deadline;
	pthread_barrier_t ready; /* all threads, each on its CPU */
	_Atomic(int) error;	 /* the first negative errno of a thread */
	_Atomic(bool) over;
	_Atomic(uint64_t) turn;	   /* odd: the executor's */
	_Atomic(uint64_t) number;  /* that code has which may run now */
	_Atomic(uint64_t) started; /* the change that is under way or done */
	uint8_t *_Atomic at;	   /* where it stands */
	struct child_litmus *litmus;
	_Atomic(uint64_t) got; /* what the executor's call returned */
	uint64_t random[2];    /* the writer's, the executor's */
	unsigned chances[2];   /* for a fault, so far */
	struct call_count {
		_Atomic(uint64_t) calls;
	} __attribute__((aligned(2 * LINE))) called[2]; /* by the writer, by the executor */
};

#define OLD_NUMBER 0x7ffffff0u

enum {
	WRITER,
	EXECUTOR
};

/*
 * child_draw_fault - is that fault made in this trial? @who: whose random numbers decide.
 *
 * child_write - write code that returns number after so many additions, PARTS_MOST at most. Both
 * threads may write, in turn. child_keep_copy - keep the code that was written last: FAULT_STALE
 * runs it in place of the next. child_flush_code - flush its lines from all caches, in every other
 * 64 trials. child_call - run the code, or what a fault puts in its place.
 */
bool child_draw_fault(struct conform_child *c, enum fault fault, int who);
void child_write(struct conform_child *c, uint8_t *at, uint32_t number, unsigned parts, int who);
void child_keep_copy(struct conform_child *c);
void child_flush_code(const uint8_t *at, size_t bytes, uint64_t trial);
uint32_t child_call(struct conform_child *c, uint8_t *at, int who);

/*
 * child_judge - count a trial, and a failure if the code returned another number than is wanted.
 * child_count - set the number of trials. child_fail - count a failure in a trial that is counted
 * elsewhere.
 */
void child_judge(struct conform_child *c, uint64_t wanted, uint64_t got);
void child_count(struct conform_child *c, uint64_t trials);
void child_fail(struct conform_child *c, uint64_t wanted, uint64_t got);

/*
 * child_goes_on - the writer asks before each trial. False: the cell ends; it waits some seconds
 * for an executor that has not run yet. child_await - wait for that turn. False: the cell is over.
 */
bool child_goes_on(struct conform_child *c);
bool child_await(struct conform_child *c, uint64_t turn);

static inline bool child_is_over(struct conform_child *c)
{
	return atomic_load_explicit(&c->over, memory_order_relaxed);
}

/* What guarantees[] calls, in handshakes.c, running.c, pages.c and forbidden.c. */
typedef void loop_fn(struct conform_child *c);
typedef int prepare_fn(struct conform_child *c);
typedef uint8_t *place_fn(struct conform_child *c, uint64_t trial);

place_fn place_flag, place_moved, place_fresh;
prepare_fn prepare_word, prepare_int3, prepare_membarrier, prepare_executable, prepare_litmus;
loop_fn write_in_turn, execute_in_turn, write_self;
loop_fn write_word, write_int3, write_membarrier, execute_word, execute_int3, execute_membarrier;
loop_fn write_reused, execute_reused, write_executable, execute_executable;
loop_fn write_litmus, execute_litmus;

/* number_of - the number that the code of a trial returns. */
static inline uint32_t number_of(uint64_t trial)
{
	return (uint32_t)(trial % (OLD_NUMBER - 1)) + 1;
}

static inline void pause_for(unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		__builtin_ia32_pause();
}

#endif
