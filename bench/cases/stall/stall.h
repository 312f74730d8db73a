/* SPDX-License-Identifier: MIT */
/*
 * What an executor notes of its own passes through a site, while the patcher changes that site.
 *
 * It reads the TSC behind every pass, so each pass is timed from the end of the one before, and
 * nothing that holds the executor up is missed. The patcher announces a number before each
 * change; the executor looks at it behind each pass, and keeps the longest pass per number. A
 * pass belongs to the number that stood when it had ended. When the number has changed the
 * executor lost the line that it stands in, through the measuring alone: the clock is read anew
 * then, so that this is in no pass. Let it see the number before the change is made.
 *
 * How fine that is: a reading is an LFENCE and an RDTSC, 20 to 40 ticks, and is part of each
 * pass, so an untouched pass is some 40 to 80 ticks, and the machine cannot run ahead from one
 * pass into the next. The TSC of some machines moves in steps of up to 40 ticks. What holds an
 * executor up for less than about 50 ticks is not seen. Two readings in STALL_ROUND passes
 * have the executor's other business between them; what falls there is not seen either.
 */
#ifndef BENCH_CASES_STALL_STALL_H
#define BENCH_CASES_STALL_STALL_H

#include <stdatomic.h>
#include <stdint.h>

#include "bench/method/hot.h"
#include "bench/ways/ways.h"

#define STALL_WINDOWS 50  /* numbers that can be announced, from 1 on */
#define STALL_ROUND   32  /* passes at once */
#define STALL_EARLY   257 /* passes that tell what is usual */

/* What happened under one number, ticks. */
struct stall_window {
	uint64_t worst;	 /* the longest pass */
	uint64_t lost;	 /* beyond the usual, by passes of twice that and more */
	uint64_t passes; /* that ended then */
};

/* Of one executor, written by it alone. */
struct stall_log {
	unsigned at;		 /* number seen last */
	_Atomic(uint64_t) usual; /* median pass under number 0; 0: not yet known */
	unsigned early;
	uint64_t early_pass[STALL_EARLY];
	struct stall_window window[STALL_WINDOWS + 1];
} __attribute__((aligned(128)));

struct stall_record {
	_Atomic(unsigned) announced __attribute__((aligned(128)));
	loop_fn *run __attribute__((aligned(128))); /* one pass: run(1, counts) */
	struct stall_log *log;			    /* one per executor */
};

/*
 * stall_record_begin - forget all, for that loop and so many executors, none of which is at
 * work. Number 0 is announced.
 */
void stall_record_begin(struct stall_record *record, loop_fn *run, unsigned executors);

/* stall_note - one pass of so many ticks has ended, and this number stood then. */
void stall_note(struct stall_log *log, unsigned number, uint64_t ticks);

/* stall_run - STALL_ROUND passes, noted. The arg of the hot_work is the record. */
void stall_run(const struct hot_work *work, unsigned executor, struct hot_counts *counts);

/* stall_announce - the next number; visible to all on return. STALL_WINDOWS is the last. */
void stall_announce(struct stall_record *record);

/* --- Which changes are made ----------------------------------------------------------------- */

#define STALL_BATCH 100 /* sites */
#define STALL_SPECS 14

struct stall_spec {
	enum way_name way;
	bool straddles;	       /* a line: 3|2 */
	bool all;	       /* also with all executors there are */
	bool protocol;	       /* INT3 and syncs: the policy counts, and is a param */
	enum pc_policy policy; /* wait or membarrier */
	unsigned windows;      /* in a block; 0: STALL_WINDOWS */
};
extern const struct stall_spec stall_specs[STALL_SPECS];

/*
 * stall_build - the site, and the spare sites if it is a batch, which are to be closed after it.
 * 0, or a negative errno with a line in why.
 */
int stall_build(struct bench_site *site, struct spare *spare, const struct stall_spec *spec,
		char *why);

#endif
