/* SPDX-License-Identifier: MIT */
/*
 * The operations that tmax bench toggle times: each one way to make one change,
 * or many, of a site that an executor is hot on.
 */
#ifndef STRESS_BENCH_OP_H
#define STRESS_BENCH_OP_H

#include <stddef.h>
#include <stdint.h>

#include "patchcore/batch.h"
#include "patchcore/call.h"
#include "patchcore/patchcore.h"
#include "stress/code.h"

#define BENCH_BATCH 1024 /* sites in a batch */

enum bench_op {
	BENCH_ALIGNED, /* pc_patch() inside an 8-byte word */
	BENCH_CALL_0,  /* pc_activate_call(), pc_deactivate_call() in turn, by split */
	BENCH_CALL_1,
	BENCH_CALL_2,
	BENCH_CALL_3,
	BENCH_CALL_4,
	BENCH_STRADDLER_WAIT,	    /* pc_patch() across a line, policy wait */
	BENCH_START_WAIT,	    /* pc_start_patch() of the same, finished untimed */
	BENCH_BATCH_WAIT,	    /* pc_patch_batch() of BENCH_BATCH straddlers, per site */
	BENCH_STRADDLER_MEMBARRIER, /* the same three, policy membarrier */
	BENCH_START_MEMBARRIER,
	BENCH_BATCH_MEMBARRIER,
	BENCH_BATCH_AUTO, /* whichever of the two the library takes */
	BENCH_STOP,	  /* every thread stopped by a signal */
	BENCH_PTRACE,	  /* every thread stopped by another process */
	BENCH_OPS
};

/* Where there is something to change. The executor reads code, the patcher counts in next. */
struct bench_site {
	struct code code;
	struct pc_call call;
	unsigned next __attribute__((aligned(128))); /* code to patch in next */
} __attribute__((aligned(128)));

/* What the operations work on. */
struct bench_work {
	struct bench_site site[CODE_LENGTH]; /* by split, 0: aligned */
	struct pc_op batch[BENCH_BATCH];     /* the first is of site[BENCH_SPLIT] */
	uint8_t bytes[BENCH_BATCH][2][8];
	unsigned next; /* of the batch */
};

#define BENCH_SPLIT 3 /* of the straddler that is patched as a word */

/* bench_op_name - as it is printed. */
const char *bench_op_name(enum bench_op op);

/* bench_op_site - the one that the executor shall be hot on. */
struct bench_site *bench_op_site(struct bench_work *work, enum bench_op op);

/* bench_work_build - map all code and make it writable. 0 or a negative errno. */
int bench_work_build(struct bench_work *work);

/*
 * bench_op_begin - get ready for this operation. 0, or a negative errno with a
 * line in why if it cannot be had here. bench_op_end - afterwards.
 */
int bench_op_begin(struct bench_work *work, enum bench_op op, char *why, size_t size);
void bench_op_end(enum bench_op op);

/* bench_op_time - do it once; *ticks is what it took, per site. 0 or a negative errno. */
int bench_op_time(struct bench_work *work, enum bench_op op, uint64_t *ticks);

#endif
