/* SPDX-License-Identifier: MIT */
/*
 * Promises about code that is handed over: the turn goes to and fro. On an even turn the writer
 * writes code and passes the turn (release); on an odd one the executor takes it (acquire), does
 * what the promise asks of it, runs the code once and passes the turn back. So each trial has one
 * right number.
 */
#include "conform/child.h"

void write_in_turn(struct conform_child *c)
{
	for (uint64_t trial = 0; child_goes_on(c); trial++) {
		uint8_t *at;

		child_keep_copy(c);
		at = c->cell->guarantee->place(c, trial);
		if (!at)
			return;
		atomic_store_explicit(&c->at, at, memory_order_relaxed);
		child_flush_code(at, CODE_MOST, trial);
		/* Pairs with the acquire of the executor's child_await(). */
		atomic_store_explicit(&c->turn, 2 * trial + 1, memory_order_release);
		if (!child_await(c, 2 * trial + 2))
			return;
		child_judge(c, number_of(trial),
			    atomic_load_explicit(&c->got, memory_order_relaxed));
	}
}

/* Serialised where the promise asks for it, and no fault leaves it out. */
void execute_in_turn(struct conform_child *c)
{
	bool serialize = c->cell->guarantee->faults & (1u << FAULT_UNSERIALIZED) &&
			 c->cell->fault != FAULT_UNSERIALIZED;

	for (uint64_t trial = 0;; trial++) {
		uint32_t got = NUMBER_NONE;
		bool early = trial > 0 && child_draw_fault(c, FAULT_UNSYNCED, EXECUTOR);

		/* What was there before, since the writer may not be through. */
		if (early)
			got = child_call(c, atomic_load_explicit(&c->at, memory_order_relaxed),
					 EXECUTOR);
		if (!child_await(c, 2 * trial + 1))
			return;
		if (serialize)
			serialize_core();
		if (!early)
			got = child_call(c, atomic_load_explicit(&c->at, memory_order_relaxed),
					 EXECUTOR);
		atomic_store_explicit(&c->got, got, memory_order_relaxed);
		/* Pairs with the acquire of the writer's child_await(). */
		atomic_store_explicit(&c->turn, 2 * trial + 2, memory_order_release);
	}
}

/* One function, at each place for a while, so that its lines stay in the executor's caches. */
uint8_t *place_flag(struct conform_child *c, uint64_t trial)
{
	uint8_t *at = c->arena + trial / 256 * (LINE + 1) % (ARENA - PAGE);

	child_write(c, at, number_of(trial), 0, WRITER);
	return at;
}

/* Functions of many lengths at random addresses, each over what others have left. */
uint8_t *place_moved(struct conform_child *c, uint64_t trial)
{
	uint64_t random = random_next(&c->random[WRITER]);
	uint8_t *at = c->arena + random % (ARENA - PAGE);

	child_write(c, at, number_of(trial), (unsigned)(random >> 32) % PARTS_MOST, WRITER);
	return at;
}

/* The thread that writes jumps to what it wrote. */
void write_self(struct conform_child *c)
{
	for (uint64_t trial = 0; child_goes_on(c); trial++) {
		uint8_t *at;

		child_keep_copy(c);
		at = place_flag(c, trial);
		child_flush_code(at, CODE_MOST, trial);
		child_judge(c, number_of(trial), child_call(c, at, WRITER));
	}
}
