/* SPDX-License-Identifier: MIT */
/*
 * What people use instead, where it is not just a few lines in a benchmark: tracers, the kernel.
 * Each is a program in bench/peers/, compiled where it is used, as its authors would have
 * it used; docs/lab/peers.md tells how.
 *
 * Such a program answers these requests, see process.h; all times are ticks, but nanoseconds of
 * a call site, which answers toggle alone, and of one HOT:
 *
 *	(none)			ready to be asked
 *	toggle PAIRS HOT	a line a pair: time of one change on, of one change off; HOT is 1
 *				while its executor runs, else 0
 *	cost CALLS		time of a call without, off, on
 */
#ifndef BENCH_PEERS_PEER_H
#define BENCH_PEERS_PEER_H

#include "base/process.h"
#include "bench/method/method.h"

#define PEER_PATH 512

struct peer {
	const char *name;
	const char *source;  /* in peers/ of the package's data, see data_file() */
	const char *package; /* of Debian, to be named if it does not work */
	/*
	 * For the shell. $1: a temporary folder, $2: the source, $3 and $4: the CPUs of patcher and
	 * executor. No start: peer_open() builds it, and that is all.
	 */
	const char *build, *start;
	bool site, hot;		/* a call site, and the HOT that it answers */
	double unit;		/* ticks; peer_open() compares the clocks while it starts */
	char folder[PEER_PATH]; /* empty: none */
	struct process *process;

	/* peer_open()'s: 0 open, else why not. */
	int ret;
	char why[BENCH_WHY];
};

/* peers - all there are, ends with an entry of no name. */
extern struct peer peers[];

/*
 * peer_open - make the folder, build and start it, with its executor on the CPU of the first one:
 * on every CPU that the run may use, although the caller is pinned. The result is peer->ret, too.
 * peer_close - also of one that was not opened. While a peer runs, our own executors sleep.
 *
 * peers_open - the call sites, or all others, that are to be had here, if the run wants peers; one
 * that is not says why, and costs at most seconds. Of the rest why says that it was not asked for.
 */
int peer_open(struct peer *peer, const struct bench_run *run);
void peer_close(struct peer *peer);
void peers_open(const struct bench_run *run, bool sites);
void peers_close(void);

/*
 * All return 0 or a negative errno with a line in why, of BENCH_WHY bytes; -ENODEV of one that is
 * not open, with what peer_open() said: its error ends no run. An answer of another shape than
 * asked for is -EPROTO.
 *
 * peer_opened. peer_toggle - so many changes on and off, each timed: s[0] on, s[1] off; hot: while
 * its executor runs. peer_cost - one call in ticks, of a loop that does nothing else: s[0] switched
 * on or off, s[1] of a function without anything.
 */
int peer_opened(const struct peer *peer, char *why);
int peer_toggle(struct peer *peer, unsigned pairs, bool hot, struct samples *s, char *why);
int peer_cost(struct peer *peer, unsigned calls, bool on, struct samples *s, char *why);

#endif
