/* SPDX-License-Identifier: MIT */
/*
 * What people use instead, where it is not just a few lines in a benchmark: virtual machines,
 * tracers, the kernel. Each is used as its authors would have it used; how, its file says and
 * docs/peers.md tells.
 */
#ifndef BENCH_PEERS_PEER_H
#define BENCH_PEERS_PEER_H

#include <errno.h>
#include <stdio.h>

#include "bench/method/method.h"

/* What went through a site while it was toggled at some rate. */
struct peer_flow {
	double seconds;
	uint64_t toggles;
	uint64_t calls[2]; /* of the first and the second target, or on and off */
};

/* One use of the site in ticks, of a loop that does nothing else. */
struct peer_cost {
	double empty; /* the loop without it */
	double off;   /* switched off */
	double on;    /* switched on, calling an empty function */
};

/*
 * All functions return 0 or a negative errno with a line in why, of BENCH_WHY bytes; all times
 * are in TSC ticks. A function that is NULL is something that this peer does not have. While a
 * peer runs, our own executors sleep; it runs its own on the same CPUs.
 */
struct peer {
	const char *name;
	bool hot_only; /* to toggle it while no executor runs says nothing */
	/*
	 * Start it, with its executor on the CPU of the first one; warmed up when this
	 * returns. Once per run, before the functions below.
	 */
	int (*open)(struct peer *peer, const struct bench_run *run, char *why);
	void (*close)(struct peer *peer);
	/* So many changes on and off, each timed: s[0] on, s[1] off. hot: while its executor runs.
	 */
	int (*toggle)(struct peer *peer, unsigned pairs, bool hot, struct samples *s, char *why);
	/*
	 * Toggle so often a second, as fast as possible with INFINITY, not at all with 0.
	 * @on_off: between a call and none; else between two targets.
	 */
	int (*flow)(struct peer *peer, double rate, double seconds, bool on_off,
		    struct peer_flow *flow, char *why);
	int (*cost)(struct peer *peer, uint64_t calls, struct peer_cost *cost, char *why);
	void *state;

	/* peers_open()'s: 0 open, else why not. */
	int ret;
	char why[BENCH_WHY];
};

/* peers - all there are, ends with an entry of no name. */
extern struct peer peers[];

/*
 * peers_open - open all that are to be had here; one that is not says why, and costs at most
 * seconds. With @want false none is opened, and why says that none was asked for. peers_close.
 */
void peers_open(const struct bench_run *run, bool want);
void peers_close(void);

/* peer_opened - 0, or -ENODEV and in why what peers_open() said: the peer's error ends no run. */
static inline int peer_opened(const struct peer *peer, char *why)
{
	if (peer->ret == 0)
		return 0;
	snprintf(why, BENCH_WHY, "%s", peer->why);
	return -ENODEV;
}

#endif
