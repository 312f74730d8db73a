/* SPDX-License-Identifier: MIT */
/*
 * One case of bench_toggle(): an operation, on a site of its own, and the floor beside it. Private
 * to the benchmark.
 *
 * The floor is one locked 8-byte exchange on the line that the operation changes, with the same
 * executors hot on it: no protocol can be cheaper than the one store that it must make visible.
 * Before each change, and each exchange, the executors are let run their site again (hot_cool()).
 */
#ifndef BENCH_CASES_TOGGLE_TOGGLE_CASE_H
#define BENCH_CASES_TOGGLE_TOGGLE_CASE_H

#include "bench/method/hot.h"
#include "bench/method/loop.h"
#include "bench/method/method.h"
#include "bench/method/spare.h"
#include "bench/peers/peer.h"
#include "patchcore/call.h"
#include "patchcore/patchcore.h"

#define TOGGLE_SPLIT	 3 /* of straddlers, where only one split is measured */
#define TOGGLE_BATCH_MAX 10000

/* What patcher and executors share is kept on lines of its own: see hot.c. */
#define TOGGLE_OWN_LINES __attribute__((aligned(128)))

struct toggle;
struct toggle_case;

/*
 * What is done. Of which: 0 on, 1 off; or the number of the target. Functions may be NULL.
 */
struct toggle_op {
	const char *name;
	const char *first, *second; /* measures; no second: both are samples of the first */
	bool peer;
	enum loop_kind loop;
	unsigned pairs;	 /* of changes, per block */
	unsigned rounds; /* at most; 0: no limit */
	/* Once: after the site was built and opened. */
	int (*build)(struct toggle_case *c);
	/* Around a block, while nobody runs the site. */
	int (*begin)(struct toggle_case *c, char *why);
	void (*end)(struct toggle_case *c);
	/* One change, timed in ticks; and what it leaves to be done, untimed. */
	int (*change)(struct toggle_case *c, unsigned which, double *ticks);
	int (*settle)(struct toggle_case *c);
};

enum toggle_mapping {
	TOGGLE_OPEN,
	TOGGLE_PROTECT,
	TOGGLE_ALIAS,
};

/* On what, and how. Zero is what most cases have, but for op and executors. */
struct toggle_spec {
	const struct toggle_op *op;
	unsigned executors;
	unsigned split;
	bool has_split;	 /* tell it in the row */
	bool page;	 /* across a page, else across a line */
	bool any_risk;	 /* accept what machine.conf bounds, whatever that is */
	bool has_policy; /* set it, and tell it */
	enum pc_policy policy;
	enum toggle_mapping mapping;
	bool cold;
	unsigned batch;	   /* sites; 0: no batch */
	struct peer *peer; /* a process's; then there is no site but the floor's */
};

/* The executors read the first two, the patcher writes the rest. */
struct toggle_site {
	struct loop loop;
	struct hot_work work;
	uint64_t *word TOGGLE_OWN_LINES; /* where the floor's exchange goes */
} TOGGLE_OWN_LINES;

struct toggle_case {
	struct toggle_site site;
	struct toggle_site twin; /* for the floor, where nobody but the library may write */
	struct toggle_spec spec TOGGLE_OWN_LINES;
	struct toggle *toggle;
	struct pc_call call;
	uint64_t executed; /* of the site, while it was changed */
	uint64_t executed_before;
	double accept_p; /* as it was */
	bool may_wait;	 /* policy auto took the wait into account */
	bool opened;
	int ret; /* negative: this case is not to be had, and why */
	char why[BENCH_WHY];
};

/* What the cases share. */
struct toggle {
	struct hot *hot;
	struct spare pool; /* the sites of batches but the first, which is the executors' */
	uint8_t *sweep;	   /* more than the caches of a core hold */
	size_t sweep_bytes;
};

/* --- toggle_ops.c, toggle_batch.c, toggle_others.c ------------------------------------ */

extern const struct toggle_op toggle_aligned, toggle_call, toggle_retarget, toggle_straddler,
	toggle_start, toggle_batch;
extern const struct toggle_op toggle_flag, toggle_pointer, toggle_hand, toggle_stop, toggle_ptrace,
	toggle_process;

/* toggle_say - what failed, and how. Returns ret. */
int toggle_say(char *why, const char *what, int ret);

/* toggle_time_patch - one change on or off by something like pc_patch(), timed. */
typedef int toggle_patch_fn(void *addr, const void *bytes, size_t len);
int toggle_time_patch(toggle_patch_fn *patch, const struct loop *loop, unsigned which,
		      double *ticks);

/* --- toggle_cold.c -------------------------------------------------------------------- */

/*
 * toggle_chill - take the lines of the site out of all caches, and all else that the patcher
 * needs out of the caches that are its core's own: they are swept. What stays warm are branch
 * predictors, and caches that cores share. toggle_sweep_open - map what is swept; 0 or -ENOMEM.
 */
int toggle_sweep_open(struct toggle *toggle, hwloc_topology_t topology);
void toggle_sweep_close(struct toggle *toggle);
void toggle_chill(const struct toggle *toggle, const void *site);

/* --- toggle_list.c -------------------------------------------------------------------- */

#define TOGGLE_CASES_MAX 160

struct toggle_list {
	struct toggle_spec spec[TOGGLE_CASES_MAX];
	size_t count;
};

/*
 * toggle_list_singles - add what is measured with one executor or none, of peers[] all that have
 * something to toggle. toggle_list_crowds - with 2, 4, 8 ... executors, and with the most there
 * can be. toggle_list_batches - batches of all sizes.
 */
void toggle_list_singles(struct toggle_list *list);
void toggle_list_crowds(struct toggle_list *list, unsigned most);
void toggle_list_batches(struct toggle_list *list);

/* --- toggle_case.c -------------------------------------------------------------------- */

/*
 * toggle_case_build - site, mapping, row, and the functions of the case and its floor. What this
 * machine does not offer makes the case one that is skipped. 0 or -ENOMEM.
 */
int toggle_case_build(struct toggle_case *c, const struct toggle_spec *spec, struct toggle *toggle,
		      struct bench_case *bench, struct bench_case *floor);

/* toggle_case_free - nobody runs its site any more. */
void toggle_case_free(struct toggle_case *c);

/* toggle_case_pairs - changes to and fro in a block, as the spec has it. */
unsigned toggle_case_pairs(const struct toggle_spec *spec);

#endif
