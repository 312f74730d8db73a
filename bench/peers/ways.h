/* SPDX-License-Identifier: MIT */
/*
 * A site that executors run, and the ways to change it: this library's, and what people use
 * instead as far as it is code in this process.
 *
 * In state 0 a site calls target 0. In state 1 it calls nothing, or target 1.
 *
 * Flag and pointer are stored with a lock: a plain store would be over before its value is in any
 * other CPU's sight. Ours return when the change is visible, so that is what is timed of theirs.
 */
#ifndef BENCH_PEERS_WAYS_H
#define BENCH_PEERS_WAYS_H

#include <stdint.h>

#include "bench/method/method.h"
#include "patchcore/batch.h"
#include "patchcore/call.h"
#include "patchcore/patchcore.h"

struct bench_site;

struct way {
	const char *name;	    /* of the rows */
	const char *first, *second; /* measures of toggle; no second: both are of the first */
	bool peer;
	bool two_targets;    /* state 1 calls target 1, also if the site is not asked to */
	enum loop_kind loop; /* that the site is in */
	unsigned pairs;	     /* of changes, per block of toggle */
	const char *needs;   /* what open fails for; NULL: its name says it */
	/* Around the changes, while no executor runs the site. Either may be NULL. */
	int (*open)(void);
	void (*close)(void);
	/* One change, untimed and timed in ticks; per site for a batch. */
	int (*set)(struct bench_site *site, unsigned state);
	int (*time)(struct bench_site *site, unsigned state, double *ticks);
	int (*settle)(void); /* what a change leaves to be done; NULL: nothing */
};

enum way_name {
	WAY_ALIGNED, /* pc_patch() inside a word */
	WAY_STRADDLER,
	WAY_START,    /* pc_start_patch(), settled by pc_drain() */
	WAY_CALL,     /* pc_activate_call() and pc_deactivate_call() */
	WAY_RETARGET, /* pc_activate_call() with two targets */
	WAY_BATCH,    /* pc_patch_batch(): the site, and others that nothing runs */
	WAY_STORE,    /* the floor: the site's word exchanged by hand; no change can be less */
	WAY_FLAG,
	WAY_POINTER,
	WAY_HAND,
	WAY_PAPER,	 /* the bare protocols of "Living on the Edge": a word, */
	WAY_PAPER_CALL,	 /* a call at split 0 or from 2 on, */
	WAY_PAPER_START, /* and a straddler that is finished later */
	WAY_STOP,
	WAY_PTRACE,
	WAYS
};
extern const struct way ways[WAYS];

/* How the page of a site is made writable. */
enum site_mapping {
	SITE_OPEN,
	SITE_PROTECT,
	SITE_ALIAS,
	SITE_RAW, /* not at all: it is not for the library */
};

/* What a site is, and what its row tells. Zero is what most are. */
struct site_spec {
	enum way_name way;
	unsigned split; /* see struct loop_spec */
	bool has_split; /* tell it */
	bool page;	/* across a page, else across a line */
	bool has_policy;
	enum pc_policy policy;
	enum site_mapping mapping;
	unsigned batch;	     /* sites; 0: no batch */
	struct spare *spare; /* of a batch: borrowed, the first is the site's */
	enum loop_target target;
	bool two_targets;
};

#define SITE_WAIT	.has_policy = true, .policy = PC_POLICY_WAIT
#define SITE_MEMBARRIER .has_policy = true, .policy = PC_POLICY_MEMBARRIER

/* bench_site_params - what the spec has, of a row that has its name. */
void bench_site_params(struct bench_row *row, const struct site_spec *spec);

/*
 * Executors read the first lines, the patcher the others: one that met an executor anywhere but
 * on the site would be charged for it. Allocate it on 128 bytes.
 */
struct bench_site {
	struct loop loop __attribute__((aligned(128)));
	struct hot_work work; /* hot_loop() of it */
	/* All that a change reads, on one line and the next. */
	uint8_t *at __attribute__((aligned(128)));
	void *data; /* flag or pointer */
	void *target[2];
	uint8_t code[2][8]; /* by state */
	uint64_t *place;    /* the word that a change touches */
	struct pc_call call;
	uint64_t word[2]; /* what WAY_STORE puts there, by state */
	struct site_spec spec;
	bool opened;
};

/*
 * bench_site_build - its loop, in state 0, and its page ready for the way. 0 or a negative errno
 * with a line in why, of BENCH_WHY bytes; then bench_site_free() is fine, too, as of a zeroed one.
 */
int bench_site_build(struct bench_site *site, const struct site_spec *spec, char *why);
void bench_site_free(struct bench_site *site);

/*
 * bench_site_begin - before a block, while no executor runs it: open the way, and go through both
 * states, so that both are known to the library, however long that takes. It is in state 0 then. 0,
 * or a negative errno with a line in why. bench_site_end - close the way.
 */
int bench_site_begin(struct bench_site *site, char *why);
void bench_site_end(struct bench_site *site);

/* bench_site_set - way->set() for callers that know no sites. */
int bench_site_set(void *site, unsigned state);

/* --- Spare sites, that no executor runs ----------------------------------------------------- */

struct spare {
	uint8_t *map;
	struct pc_op *op; /* of each site; may be changed, the first to be another's */
	unsigned count;
};

/*
 * spare_open - map and open so many sites of that split. 0 or a negative errno. spare_close -
 * of one that is open, or was not opened, or is zeroed.
 */
int spare_open(struct spare *spare, unsigned count, unsigned split);
void spare_close(struct spare *spare);

/* --- Stopping the world ----------------------------------------------------------------------- */

/*
 * Other ways to change running code, to measure pc_patch() against.
 *
 * BASELINES, NOT FOR PRODUCTION, and not in the installed library. They stop
 * every other thread of the process for each change. A thread that a signal has
 * interrupted in the middle of the site, and that is still in the handler, is
 * not seen by either.
 *
 * They need no machine.conf, policy or SIGTRAP, and take any place and length up to
 * PC_PATCH_MAX, whole instructions or not. On return no thread runs the old code any more. By one
 * thread at a time; not to be mixed with pc_patch() at one site at one time. 0, or, with the code
 * as it was, a negative errno: -EBUSY: a thread stands inside the site, behind its start: try
 * again; -ETIMEDOUT: some thread could not be stopped within a second.
 */

/* baseline_stop_patch - stop the world by a signal to every thread, write, resume. */
int baseline_stop_patch(void *addr, const void *bytes, size_t len);

/*
 * baseline_ptrace_open - start the patcher process, which ends with the calling thread. -EPERM: it
 * may not trace this one (Yama, seccomp, a container, or a debugger is attached).
 * baseline_ptrace_patch - let the patcher process stop every thread, the caller's too, and write to
 * pages of any protection. -ESHUTDOWN: the patcher process is gone, as after -ETIMEDOUT.
 * baseline_ptrace_close - end it, if it runs.
 */
int baseline_ptrace_open(void);
int baseline_ptrace_patch(void *addr, const void *bytes, size_t len);
void baseline_ptrace_close(void);

#endif
