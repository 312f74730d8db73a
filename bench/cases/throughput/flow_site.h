/* SPDX-License-Identifier: MIT */
/*
 * The sites that tmax bench throughput toggles: a loop, and one of the ways to send it now
 * here and now there.
 *
 * A flag or a pointer is changed by a sequentially consistent store, an exchange: it is
 * visible to all when the next one begins, as each of our changes is. Plain stores would wait
 * in the store buffer, and most of a million a second be overwritten there unseen.
 */
#ifndef BENCH_CASES_THROUGHPUT_FLOW_SITE_H
#define BENCH_CASES_THROUGHPUT_FLOW_SITE_H

#include <stdbool.h>

#include "bench/method/loop.h"
#include "patchcore/call.h"
#include "patchcore/patchcore.h"

enum flow_means {
	FLOW_CALL,    /* pc_activate_call() and pc_deactivate_call() */
	FLOW_PATCH,   /* pc_patch() of the whole instruction */
	FLOW_STORE,   /* the floor: its word exchanged by hand; no change can be less */
	FLOW_POINTER, /* two targets only */
	FLOW_FLAG,    /* on and off only */
};

/* One way to toggle. */
struct flow_way {
	const char *name; /* of the row */
	enum flow_means means;
	unsigned split;	       /* of the site, at a line */
	bool on_off;	       /* state 0 calls target 0, state 1 nothing; else target 1 */
	enum pc_policy policy; /* AUTO: the library's choice, if it ever needs one */
};

struct flow_site {
	const struct flow_way *way;
	/* Executors read the one, the patcher writes the other. */
	struct loop loop __attribute__((aligned(128)));
	struct pc_call call __attribute__((aligned(128)));
	uint64_t word[2]; /* of FLOW_STORE, by state */
};

/* flow_site_build - a new one. 0 or a negative errno. flow_site_free - it, or NULL. */
int flow_site_build(struct flow_site **site, const struct flow_way *way);
void flow_site_free(struct flow_site *site);

/*
 * flow_site_begin - choose the policy, and put the site into state 0. 0, or a negative errno
 * with a line in why, of BENCH_WHY bytes. flow_site_end - the policy is auto again.
 */
int flow_site_begin(struct flow_site *site, char *why);
void flow_site_end(void);

/* flow_site_set - of a struct flow_site: a flow_set. */
int flow_site_set(void *site, unsigned state);

#endif
