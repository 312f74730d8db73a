/* SPDX-License-Identifier: MIT */
/*
 * A peer in a program of its own that is compiled where it is used.
 */
#ifndef BENCH_PEERS_COMPILED_H
#define BENCH_PEERS_COMPILED_H

#include "bench/peers/outside.h"

struct compiled {
	const char *name; /* of the program, in the temporary folder */
	/* 0, or a negative errno and why: compile it, and start it. */
	int (*build)(struct outside *o, const char *program, char *why);
	int (*start)(struct outside *o, const char *program, char *why);
};

/*
 * compiled_open - @o: what the peer is then in; of as long a life as it. The folder stays.
 * compiled_close - of struct peer.
 */
int compiled_open(struct peer *peer, struct outside *o, const struct compiled *how,
		  const struct bench_run *run, char *why);
void compiled_close(struct peer *peer);

#endif
