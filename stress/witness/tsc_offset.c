/* SPDX-License-Identifier: MIT */
#include "stress/witness/witness.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "patchcore/machine/wait.h"
#include "stress/placement/placement.h"

#define ROUNDS	      500
#define GIVE_UP_AFTER 1.0 /* seconds */
#define LOOK_EVERY    4096

/* The two words that travel, each on cache lines of its own. */
struct clock_exchange {
	_Atomic(uint64_t) asked __attribute__((aligned(128)));	  /* number of the round */
	_Atomic(uint64_t) answered __attribute__((aligned(128))); /* TSC, 0: not yet */
	_Atomic(int) quit __attribute__((aligned(128)));
	hwloc_topology_t topology;
	unsigned there;
	int error;
};

void tsc_offset_take(struct tsc_offset *known, uint64_t asked, uint64_t answered, uint64_t heard)
{
	uint64_t half = (heard - asked + 1) / 2;

	if (half >= known->error)
		return;
	known->error = half;
	known->offset = (int64_t)(answered - asked - (heard - asked) / 2);
}

struct tsc_offset tsc_offset_join(const struct tsc_offset *before, const struct tsc_offset *after)
{
	int64_t apart = after->offset - before->offset;
	uint64_t drift = (uint64_t)(apart < 0 ? -apart : apart);
	uint64_t error = before->error > after->error ? before->error : after->error;

	return (struct tsc_offset){
		.offset = before->offset + apart / 2,
		.error = error + (drift + 1) / 2,
	};
}

static void *answer_main(void *arg)
{
	struct clock_exchange *t = arg;
	uint64_t round = 0, asked;

	t->error = pin_this_thread(t->topology, t->there);
	while (t->error == 0 && !atomic_load_explicit(&t->quit, memory_order_relaxed)) {
		asked = atomic_load_explicit(&t->asked, memory_order_acquire);
		if (asked == round)
			continue;
		round = asked;
		atomic_store_explicit(&t->answered, ticks_now(), memory_order_release);
	}
	return NULL;
}

static int ask_round(struct clock_exchange *t, uint64_t round, struct tsc_offset *offset)
{
	uint64_t asked, answered;
	double deadline = 0;

	atomic_store_explicit(&t->answered, 0, memory_order_relaxed);
	asked = ticks_now();
	atomic_store_explicit(&t->asked, round, memory_order_seq_cst);
	for (uint64_t i = 1; !(answered = atomic_load_explicit(&t->answered, memory_order_acquire));
	     i++) {
		if (i % LOOK_EVERY)
			continue;
		/* A thread that has not left our CPU yet; under SCHED_FIFO it could not. */
		sched_yield();
		if (deadline > 0 && seconds_now() > deadline)
			return -ETIMEDOUT;
		if (deadline <= 0)
			deadline = seconds_now() + GIVE_UP_AFTER;
	}
	tsc_offset_take(offset, asked, answered, ticks_now());
	return 0;
}

int tsc_offset_measure(hwloc_topology_t topology, unsigned here, unsigned there,
		       struct tsc_offset *offset)
{
	struct clock_exchange t = { .topology = topology, .there = there };
	pthread_t thread;
	int ret = 0;

	*offset = TSC_OFFSET_UNKNOWN;
	if (here == there) {
		*offset = (struct tsc_offset){ 0, 0 };
		return 0;
	}
	if (pthread_create(&thread, NULL, answer_main, &t) != 0)
		return -EAGAIN;
	for (uint64_t round = 1; round <= ROUNDS && ret == 0; round++)
		ret = ask_round(&t, round, offset);
	atomic_store(&t.quit, 1);
	pthread_join(thread, NULL);
	if (t.error)
		ret = t.error;
	if (ret < 0)
		*offset = TSC_OFFSET_UNKNOWN;
	return ret;
}
