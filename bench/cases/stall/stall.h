/* SPDX-License-Identifier: MIT */
/*
 * Cases of the benchmark of stalls: each a site, or what people use instead, and one way to
 * change it. Private to stall.c and stall_change.c.
 */
#ifndef BENCH_CASES_STALL_STALL_H
#define BENCH_CASES_STALL_STALL_H

#include "bench/cases/stall/stall_record.h"
#include "bench/method/hot.h"
#include "bench/method/method.h"
#include "bench/method/spare.h"
#include "patchcore/call.h"
#include "patchcore/patchcore.h"

#define STALL_BATCH 100 /* sites */
#define STALL_SPLIT 3	/* of straddlers: 3|2 */

struct stall_case;

struct stall_spec {
	const char *name;
	bool peer;
	struct loop_spec loop;
	bool protocol;	       /* INT3 and syncs: the policy counts, and is a param */
	enum pc_policy policy; /* wait or membarrier */
	unsigned batch;	       /* a param; 0: none */
	bool all;	       /* also with all executors there are */
	unsigned windows;      /* in a block; 0: STALL_WINDOWS */
	/* Around a block; either may be NULL. Then changes: 0 or a negative errno. */
	int (*open)(void);
	void (*close)(void);
	int (*change)(struct stall_case *c);
	int (*ready)(struct stall_case *c); /* once; NULL: nothing */
};

/* stall_specs - all of them, *count many. */
const struct stall_spec *stall_specs(size_t *count);

/*
 * What a block needs, shared by the cases. What executors read has lines of its own, or they
 * would be held up by what the patcher writes beside it.
 */
struct stall {
	struct hot_work work __attribute__((aligned(128)));
	struct stall_record record __attribute__((aligned(128)));
	struct hot *hot __attribute__((aligned(128)));
	uint64_t state; /* of the jitter */
};

struct stall_case {
	const struct stall_spec *spec;
	struct stall *stall;
	unsigned executors;
	struct loop loop;
	struct pc_call call;
	bool off;		      /* NOP, flag down, second target */
	struct spare batch;	      /* the first is of the loop's site */
	uint64_t changes;	      /* so far */
	uint64_t traps;		      /* that they made */
	uint64_t took[STALL_WINDOWS]; /* of the last block: ticks of each change */
	uint64_t usual;		      /* pass of the first executor, ticks */
	int ret;		      /* of its being built */
};

/* stall_build - the loop and what spec asks for. 0 or a negative errno. stall_free - after it. */
int stall_build(struct stall_case *c, const struct stall_spec *spec);
void stall_free(struct stall_case *c);

#endif
