/* SPDX-License-Identifier: MIT */
/*
 * What every peer that opens is asked, and what one that does not has to say.
 */
#ifndef BENCH_TESTS_PEER_CHECKS_H
#define BENCH_TESTS_PEER_CHECKS_H

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/peers/peer.h"
#include "stress/base/clock.h"

#define PAIRS 3
#define CALLS 20000
#define SLACK 1000 /* calls that may be counted to the wrong side, at a start or an end */
#define LOOKS 40

static volatile sig_atomic_t checks_stop;
static struct bench_run run = { .rounds = 1, .stop = &checks_stop };

static inline struct peer *peer_of(const char *name)
{
	for (struct peer *peer = peers; peer->name; peer++)
		if (!strcmp(peer->name, name))
			return peer;
	fail_msg("no peer %s", name);
	return NULL;
}

static inline void check_reason(const char *why)
{
	assert_true(why[0] != '\0');
	for (; *why; why++)
		assert_in_range(*why, ' ', '~');
}

static inline bool is_open(struct peer *peer)
{
	double begin = seconds_now();

	peer->why[0] = '\0';
	peer->ret = peer->open(peer, &run, peer->why);
	if (peer->ret == 0) {
		print_message("%s: open after %.1f s\n", peer->name, seconds_now() - begin);
		return true;
	}
	check_reason(peer->why);
	print_message("%s: %s\n", peer->name, peer->why);
	assert_null(peer->state);
	return false;
}

/* --- What each is asked --------------------------------------------------------------------- */

static inline void check_toggle(struct peer *peer, bool hot)
{
	struct samples s[2] = { { 0 } };
	char why[BENCH_WHY] = "";

	assert_int_equal(peer->toggle(peer, PAIRS, hot, s, why), 0);
	for (int which = 0; which < 2; which++) {
		assert_int_equal(s[which].count, PAIRS);
		for (size_t i = 0; i < PAIRS; i++)
			assert_true(s[which].value[i] > 0);
		samples_free(&s[which]);
	}
}

/* Untouched, all calls are of the first. Toggled, both are seen, and more than by mistake. */
static inline void check_flow(struct peer *peer, bool on_off)
{
	struct peer_flow flow = { 0 };
	char why[BENCH_WHY] = "";

	/* Its executor may not get its CPU within a look: then again. */
	for (unsigned i = 0; i < LOOKS && !flow.calls[0]; i++)
		assert_int_equal(peer->flow(peer, 0, 0.02, on_off, &flow, why), 0);
	assert_int_equal(flow.toggles, 0);
	assert_true(flow.calls[0] > 0);
	assert_in_range(flow.calls[1], 0, SLACK);
	flow.calls[0] = 0;
	for (unsigned i = 0; i < LOOKS && !(flow.calls[0] > SLACK && flow.calls[1] > SLACK); i++)
		assert_int_equal(peer->flow(peer, 20, 0.25, on_off, &flow, why), 0);
	assert_true(flow.toggles > 0);
	assert_true(flow.calls[0] > SLACK);
	assert_true(flow.calls[1] > SLACK);
	assert_true(flow.seconds > 0.15 && flow.seconds < 60);
}

/* No more than there is time for: a change is late, it is not made up for. */
static inline void check_rate(struct peer *peer)
{
	struct peer_flow flow = { 0 };
	char why[BENCH_WHY] = "";

	assert_int_equal(peer->flow(peer, 500, 0.1, true, &flow, why), 0);
	assert_in_range(flow.toggles, 1, (uint64_t)(500 * flow.seconds) + 1);
	assert_int_equal(peer->flow(peer, INFINITY, 0.02, true, &flow, why), 0);
	assert_true(flow.toggles > 0);
}

static inline void check_cost(struct peer *peer)
{
	struct peer_cost cost = { NAN, NAN, NAN };
	char why[BENCH_WHY] = "";

	assert_int_equal(peer->cost(peer, CALLS, &cost, why), 0);
	assert_true(cost.empty > 0 && isfinite(cost.empty));
	assert_true(cost.off > 0 && isfinite(cost.off));
	assert_true(cost.on > 0 && isfinite(cost.on));
}

static inline void close_it(struct peer *peer)
{
	peer->close(peer);
	assert_null(peer->state);
}

static inline void check_all(struct peer *peer)
{
	if (!is_open(peer))
		skip();
	check_toggle(peer, false);
	check_toggle(peer, true);
	check_flow(peer, false);
	check_flow(peer, true);
	check_rate(peer);
	check_cost(peer);
	close_it(peer);
}

/* As seated as here, with an executor if there is a second CPU. */
static inline int seat(void **arg)
{
	char reason[128];
	unsigned most;
	int foreign;

	(void)arg;
	if (topology_open(&run.topology, &foreign) || foreign)
		return -1;
	most = placement_max(run.topology, PLACEMENT_SPREAD, reason, sizeof(reason));
	if (most == 0)
		return placement_seat(run.topology, PLACEMENT_OVERSUBSCRIBED, 1, &run.seating,
				      reason, sizeof(reason));
	return placement_seat(run.topology, PLACEMENT_SPREAD, most, &run.seating, reason,
			      sizeof(reason));
}

static inline int unseat(void **arg)
{
	(void)arg;
	hwloc_topology_destroy(run.topology);
	return 0;
}

#endif
