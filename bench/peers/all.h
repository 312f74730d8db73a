/* SPDX-License-Identifier: MIT */
/*
 * The functions of each peer, for the table of them. See peer.h and docs/peers.md. An open
 * that fails has closed what it opened.
 */
#ifndef BENCH_PEERS_ALL_H
#define BENCH_PEERS_ALL_H

#include "bench/peers/outside.h"

int jvm_volatile_open(struct peer *peer, const struct bench_run *run, char *why);
int jvm_mutable_open(struct peer *peer, const struct bench_run *run, char *why);
void jvm_close(struct peer *peer);
int jvm_toggle(struct peer *peer, unsigned pairs, bool hot, struct samples *s, char *why);
int jvm_toggle_compiled(struct peer *peer, unsigned pairs, bool hot, struct samples *s, char *why);
int jvm_flow(struct peer *peer, double rate, double seconds, bool on_off, struct peer_flow *flow,
	     char *why);
int jvm_cost(struct peer *peer, uint64_t calls, struct peer_cost *cost, char *why);

int xray_open(struct peer *peer, const struct bench_run *run, char *why);
void xray_close(struct peer *peer);

int uprobe_open(struct peer *peer, const struct bench_run *run, char *why);
void uprobe_close(struct peer *peer);
int uprobe_toggle(struct peer *peer, unsigned pairs, bool hot, struct samples *s, char *why);
int uprobe_flow(struct peer *peer, double rate, double seconds, bool on_off, struct peer_flow *flow,
		char *why);
int uprobe_cost(struct peer *peer, uint64_t calls, struct peer_cost *cost, char *why);

int uftrace_open(struct peer *peer, const struct bench_run *run, char *why);
void uftrace_close(struct peer *peer);
int uftrace_cost(struct peer *peer, uint64_t calls, struct peer_cost *cost, char *why);

#endif
