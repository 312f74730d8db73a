/* SPDX-License-Identifier: MIT */
/*
 * What the peers in programs of their own share: how they are built, started and asked.
 *
 * Such a program answers these requests, see process.h; numbers in this order, however they are
 * broken into lines:
 *
 *	(none)			ready to be asked; numbers of its own choice
 *	toggle PAIRS HOT	PAIRS lines: time of one change on, of one change off; HOT is 1
 *				while its executor runs, else 0
 *	flow RATE MS ONOFF	a line: nanoseconds, toggles, calls of the first, of the
 *				second; RATE per second, or "max"; ONOFF is 1 for on and off
 *	cost CALLS		a line: time of a pass without, off, on
 *	quit			ends
 *
 * All other times are of its own clock, and become ticks here. A program that serves more than
 * one peer has the words of head before each request but quit.
 */
#ifndef BENCH_PEERS_OUTSIDE_H
#define BENCH_PEERS_OUTSIDE_H

#include "bench/peers/peer.h"
#include "stress/base/process.h"

#define OUTSIDE_PATH 512

struct outside {
	const struct bench_run *run;
	struct process *process;
	const char *head;	   /* "volatile "; NULL: none */
	double ticks;		   /* per unit of its clock */
	char folder[OUTSIDE_PATH]; /* a temporary one; empty: none */
};

/*
 * outside_source - where a source file of a peer is: in peers/ of the package's data, see
 * data_file(). 0, or a negative errno and why.
 */
int outside_source(const char *name, char path[OUTSIDE_PATH], char *why);

/*
 * outside_open - @o zeroed: a temporary folder. outside_run - start the program, and wait so many
 * seconds until it is ready; with OUTSIDE_BUILD run a compiler to its end. On every CPU that the
 * run may use, although the caller is pinned. argv ends with NULL; @package: the Debian package to
 * name if it is missing. outside_close - end it, remove the folder; also after any of these failed.
 */
#define OUTSIDE_BUILD 0
int outside_open(struct outside *o, const struct bench_run *run, char *why);
int outside_run(struct outside *o, const char *const argv[], const char *package, double seconds,
		char *why);
void outside_close(struct outside *o);

/*
 * outside_path - a file in the folder, cut to fit. outside_remove - everything in the folder
 * and itself, as soon as nothing is read from it any more.
 */
void outside_path(const struct outside *o, const char *name, char path[OUTSIDE_PATH]);
void outside_remove(struct outside *o);

/*
 * outside_toggle, _flow, _cost - ask. An answer of another shape than asked for is -EPROTO.
 * For struct peer; state is a struct outside, or begins with one. outside_changes - as
 * outside_toggle(), by a request of its own.
 */
int outside_changes(struct peer *peer, const char *request, unsigned pairs, struct samples *s,
		    char *why);
int outside_toggle(struct peer *peer, unsigned pairs, bool hot, struct samples *s, char *why);
int outside_flow(struct peer *peer, double rate, double seconds, bool on_off,
		 struct peer_flow *flow, char *why);
int outside_cost(struct peer *peer, uint64_t calls, struct peer_cost *cost, char *why);

/* outside_executor - its CPU; the patcher's if there is none. */
unsigned outside_executor(const struct bench_run *run);

/*
 * The functions of each peer, for the table of them. See peer.h and docs/peers.md. An open
 * that fails has closed what it opened.
 */
int jvm_open(struct peer *peer, const struct bench_run *run, char *why);
void jvm_close(struct peer *peer);
int jvm_toggle(struct peer *peer, unsigned pairs, bool hot, struct samples *s, char *why);

int uprobe_open(struct peer *peer, const struct bench_run *run, char *why);
void uprobe_close(struct peer *peer);
int uprobe_toggle(struct peer *peer, unsigned pairs, bool hot, struct samples *s, char *why);
int uprobe_cost(struct peer *peer, uint64_t calls, struct peer_cost *cost, char *why);

#endif
