/* SPDX-License-Identifier: MIT */
#include "probes/profile/epochs/epochs.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define LENGTH	 1500e-6 /* seconds */
#define SHORTEST 20e-6	 /* seconds between looks at who has told, */
#define LONGEST	 1e-3	 /* and at last */
#define PATIENCE 20	 /* looks */
#define ENOUGH	 20000	 /* calls of probe functions behind the end */
#define TRIES	 64

static struct glanced places[GLANCED]; /* by hash; the first is the unknown one */
static unsigned glances;
static uint32_t turned_on[FI_PROBES_MAX];
static size_t turned_on_n;

/* --- Places ----------------------------------------------------------------------------------- */

static struct glanced *place_of(uint64_t at)
{
	uint32_t hash = (uint32_t)((at * 0x9e3779b97f4a7c15) >> 40);

	for (unsigned i = 0; i < TRIES; i++) {
		struct glanced *place = &places[1 + (hash + i) % (GLANCED - 1)];

		if (!place->at)
			place->at = at;
		if (place->at == at)
			return place;
	}
	return &places[0];
}

/* Each glance counts by the time that it took, with that of the probes: it is one look at the
 * program like any other, however much they slow what it sees.
 */
static void add_glimpses(double scale, double unknown)
{
	unsigned group = glances % SHARE_GROUPS;

	places[0].ticks[group] += unknown;
	for (struct ring *ring = ring_list(); ring; ring = ring->next) {
		struct glimpse *glimpse = &ring->glimpse;

		places[0].ticks[group] += scale * (double)swap_relaxed(&glimpse->beyond, 0);
		for (unsigned i = 0; i < PLACES; i++) {
			uint64_t at = load_relaxed(&glimpse->place[i].at);
			uint64_t ticks = swap_relaxed(&glimpse->place[i].ticks, 0);

			store_relaxed(&glimpse->place[i].at, 0);
			if (ticks)
				place_of(at)->ticks[group] += scale * (double)ticks;
		}
	}
}

static void read_glance(void)
{
	uint64_t with_probes = 0, without = 0, unknown = glance_unknown();

	for (struct ring *ring = ring_list(); ring; ring = ring->next) {
		struct glimpse *glimpse = &ring->glimpse;

		with_probes += swap_relaxed(&glimpse->used, 0);
		without += load_relaxed(&glimpse->beyond);
		for (unsigned i = 0; i < PLACES; i++)
			without += load_relaxed(&glimpse->place[i].ticks);
	}
	add_glimpses(without ? (double)with_probes / (double)without : 0, (double)unknown);
	glances++;
}

/* --- On and off ------------------------------------------------------------------------------- */

static bool is_off(uint32_t id)
{
	uint64_t state = atomic_load(&watches[id].state);

	return books[id].watched && books[id].opened && (state & WATCH_BITS) != WATCH_OPEN &&
	       !(state & (WATCH_WAITS | WATCH_LEAVES));
}

static void turn_on(void)
{
	double before = clock_seconds(CLOCK_THREAD_CPUTIME_ID);

	turned_on_n = 0;
	for (uint32_t id = 0; id < books_known; id++)
		if (is_off(id))
			turned_on[turned_on_n++] = id;
	if (exits_on_too() < 0 ||
	    fi_activate_how(turned_on, turned_on_n, watch_call, FI_KEEPS_VECTORS) < 0)
		account.refused++;
	account.toggles += turned_on_n;
	cost_turned_on(before);
}

void glances_settle(void)
{
	double before = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
	size_t kept = 0;

	if (!account.with_exits)
		return;
	for (size_t i = 0; i < turned_on_n; i++)
		if (is_off(turned_on[i]))
			turned_on[kept++] = turned_on[i];
	if (fi_deactivate_batch(turned_on, kept) < 0 || exits_off_again() < 0)
		account.refused++;
	cost_turned_on(before);
}

/* While others run on, and pay for it. */
static void wait_for_all(void)
{
	uint64_t run = ring_run();
	double pause = SHORTEST;

	glance_waits();
	for (int i = 0; i < PATIENCE && ring_run() - run < ENOUGH; i++) {
		clocks_sleep((uint64_t)(pause * watch_common.per_second));
		if (!glance_waits())
			return;
		pause = pause < LONGEST / 2 ? 2 * pause : LONGEST;
	}
}

void glances_look(void)
{
	if (!account.with_exits)
		return;
	turn_on();
	glance_begin();
	clocks_sleep((uint64_t)(LENGTH * watch_common.per_second));
	glance_end();
	wait_for_all();
	glance_over();
	read_glance();
}

/* --- All of them ------------------------------------------------------------------------------ */

const struct glanced *glances_list(void)
{
	return places;
}

void glances_forget(void)
{
	if (glances)
		memset(places, 0, sizeof(places));
	glances = 0;
}
