/* SPDX-License-Identifier: MIT */
/*
 * The cases of bench_toggle(): a way to change a site, on a site of its own, and the floor beside
 * it. Private to the benchmark.
 *
 * The floor is one locked 8-byte exchange on the line that the change is on, with the same
 * executors hot on it: no protocol can be cheaper than the one store that it must make visible.
 * Before each change, and each exchange, the executors are let run their site again (hot_cool()).
 */
#ifndef BENCH_CASES_TOGGLE_TOGGLE_H
#define BENCH_CASES_TOGGLE_TOGGLE_H

#include "bench/method/method.h"
#include "bench/peers/peer.h"
#include "bench/ways/ways.h"

#define TOGGLE_SPLIT	 3 /* of straddlers, where only one split is measured */
#define TOGGLE_BATCH_MAX 10000

/* On what, and how. Zero is what most cases have, but for way and executors. */
struct toggle_spec {
	const struct way *way;
	unsigned executors;
	unsigned split;
	bool has_split;	 /* tell it in the row */
	bool page;	 /* across a page, else across a line */
	bool any_risk;	 /* accept what machine.conf bounds, however much it is */
	bool has_policy; /* set it, and tell it */
	enum pc_policy policy;
	enum site_mapping mapping;
	bool cold;
	unsigned batch;	   /* sites; 0: no batch */
	struct peer *peer; /* a process's; then there is no site but the floor's */
};

/* What the cases share. */
struct toggle {
	struct hot *hot;
	struct spare pool; /* the sites of batches but the first, which is the executors' */
	uint8_t *sweep;	   /* more than the caches of a core hold */
	size_t sweep_bytes;
};

struct toggle_case {
	struct bench_site site;
	struct bench_site twin;	  /* for the floor, where only the library may write */
	struct bench_site *floor; /* this, or the site itself */
	struct toggle_spec spec __attribute__((aligned(128)));
	struct toggle *toggle;
	unsigned pairs;	   /* of changes, per block */
	uint64_t executed; /* of the site, while it was changed */
	double accept_p;   /* as it was */
	bool may_wait;	   /* policy auto took the wait into account */
	int ret;	   /* negative: this case is not to be had, and why */
	char why[BENCH_WHY];
};

/*
 * toggle_chill - take the lines of the site out of all caches, and all else that the patcher
 * needs out of the caches that are its core's own: they are swept. What stays warm are branch
 * predictors, and caches that cores share. toggle_sweep_open - map what is swept; 0 or -ENOMEM.
 */
int toggle_sweep_open(struct toggle *toggle, hwloc_topology_t topology);
void toggle_sweep_close(struct toggle *toggle);
void toggle_chill(const struct toggle *toggle, const void *site);

/*
 * toggle_case_build - site, mapping, row, and the functions of the case and its floor. What this
 * machine does not offer makes the case one that is skipped. toggle_case_free - no executor runs
 * its site any more.
 */
void toggle_case_build(struct toggle_case *c, const struct toggle_spec *spec, struct toggle *toggle,
		       struct bench_case *bench, struct bench_case *floor);
void toggle_case_free(struct toggle_case *c);

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

#endif
