/* SPDX-License-Identifier: MIT */
#include "probes/profile/edges/edges.h"

#include <errno.h>
#include <pthread.h>

#include "probes/agent/pin.h"
#include "probes/profile/sample/pages.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool visits;

/* Blocks that were ever run come first. Between phases those are off. */
static uint32_t ids[FI_PROBES_MAX];
static size_t n, ran;
static bool some_on; /* of the others */
static bool all_on;

static unsigned holds;
static uint32_t looked_at; /* probes of ids below that */
static uint32_t refused;

void set_lock(void)
{
	pthread_mutex_lock(&lock);
}

void set_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void set_start(bool visit)
{
	visits = visit;
	n = ran = 0;
	some_on = all_on = false;
	looked_at = 0;
	refused = 0;
}

/*
 * Probes behind those that were looked at. Without the lock, but for the end of the list: a pin
 * waits for the loader, that for a fork(), and that for the lock.
 */
static void collect_new(uint32_t end)
{
	struct fi_probe probe;
	size_t found = n;

	for (; looked_at < end; looked_at++) {
		if (fi_get(looked_at, &probe) || probe.kind != FI_BLOCK || probe.state == FI_GONE)
			continue;
		if (probe.state == FI_REFUSED) {
			refused++;
		} else if (!visits || pin_object(probe.address) == 0) {
			pages_note(probe.object, probe.address);
			ids[found++] = looked_at;
		}
	}
	pages_open();
	set_lock();
	n = found;
	all_on = false;
	set_unlock();
}

void set_collect(bool came, struct quality *sum)
{
	uint32_t end = fi_probes();

	/* Some may have been dropped, with ids that they have again. */
	if (came) {
		set_lock();
		set_start(visits);
		set_unlock();
	}
	if (end != looked_at)
		collect_new(end);
	sum->blocks = (double)n;
	sum->refused = refused;
}

/* An object may have gone since its blocks were collected. */
static void drop_gone(void)
{
	struct fi_probe probe;
	size_t kept = 0, kept_ran = 0;

	for (size_t i = 0; i < n; i++) {
		if (fi_get(ids[i], &probe) || probe.state == FI_GONE)
			continue;
		kept_ran += i < ran;
		ids[kept++] = ids[i];
	}
	n = kept;
	ran = kept_ran;
}

static int turn_on(void)
{
	return fi_activate_how(ids, all_on ? ran : n, edges_block, FI_KEEPS_VECTORS);
}

static void turn_off_rest(void)
{
	if (some_on)
		fi_deactivate_batch(ids + ran, n - ran);
	some_on = all_on = false;
}

int set_on(void)
{
	int ret;

	some_on = true;
	ret = turn_on();
	if (ret == -ENODEV) {
		drop_gone();
		ret = turn_on();
	}
	all_on = !ret;
	if (ret) {
		fi_deactivate_batch(ids, ran);
		turn_off_rest();
	}
	return ret;
}

/* Move the blocks that ran since the last look to the front. */
static void move_run_blocks(void)
{
	for (size_t i = ran; i < n; i++) {
		uint32_t id = ids[i];

		if (!edges_ran(id))
			continue;
		ids[i] = ids[ran];
		ids[ran++] = id;
	}
}

void set_rest(void)
{
	move_run_blocks();
	fi_deactivate_batch(ids, ran);
}

void set_sweep(void)
{
	size_t before = ran;

	move_run_blocks();
	fi_deactivate_batch(ids + before, ran - before);
}

void set_lock_off(void)
{
	set_lock();
	turn_off_rest();
}

/*
 * No block of an object that goes may be on meanwhile. No lock is held: dlclose() waits for the
 * loader, and a constructor, which has that, may call it.
 */
bool set_hold(void)
{
	set_lock_off();
	holds++;
	set_unlock();
	return true;
}

/* A child may have begun without. */
void set_let_go(void)
{
	set_lock();
	holds -= holds > 0;
	set_unlock();
}

bool set_held(void)
{
	return holds;
}

/* The owner that the lock knows is a thread of the parent. */
void set_forked(void)
{
	n = ran = 0;
	holds = 0;
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
