/* SPDX-License-Identifier: MIT */
#include "bench/cases/stall/stall.h"

#include <stdlib.h>
#include <string.h>

#include "patchcore/machine/wait.h"

#define LONG 2 /* times the usual: a pass that lost something */

void stall_record_begin(struct stall_record *record, loop_fn *run, unsigned executors)
{
	record->run = run;
	memset(record->log, 0, executors * sizeof(*record->log));
	atomic_store_explicit(&record->announced, 0, memory_order_relaxed);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void stall_note(struct stall_log *log, unsigned number, uint64_t ticks)
{
	struct stall_window *window = &log->window[number];
	uint64_t usual = atomic_load_explicit(&log->usual, memory_order_relaxed);

	log->at = number;
	window->passes++;
	if (ticks > window->worst)
		window->worst = ticks;
	if (number && ticks >= LONG * usual)
		window->lost += ticks - usual;
	if (number || log->early == STALL_EARLY)
		return;
	log->early_pass[log->early++] = ticks;
	if (log->early < STALL_EARLY)
		return;
	qsort(log->early_pass, STALL_EARLY, sizeof(log->early_pass[0]), by_value);
	/* Release: a patcher that sees it may announce, and then the early passes are over. */
	atomic_store_explicit(&log->usual, log->early_pass[STALL_EARLY / 2], memory_order_release);
}

/*
 * The number is loaded behind ticks_now(), whose LFENCE waits for the pass: so one that is older
 * than the pass was never seen after it. The calls are counted apart, or a patcher that looks
 * at the executor's counts would hold up its passes.
 */
void stall_run(const struct hot_work *work, unsigned executor, struct hot_counts *counts)
{
	struct stall_record *record = work->arg;
	struct stall_log *log = &record->log[executor];
	uint64_t calls[2] = { 0, 0 }, last = ticks_now();

	for (unsigned i = 0; i < STALL_ROUND; i++) {
		unsigned before = log->at, number;
		uint64_t now;

		record->run(1, calls);
		now = ticks_now();
		number = atomic_load_explicit(&record->announced, memory_order_acquire);
		stall_note(log, number, now - last);
		last = number == before ? now : ticks_now();
	}
	for (unsigned i = 0; i < 2; i++)
		__atomic_store_n(&counts->calls[i], counts->calls[i] + calls[i], __ATOMIC_RELAXED);
	atomic_store_explicit(&counts->executed, counts->executed + STALL_ROUND,
			      memory_order_relaxed);
}

void stall_announce(struct stall_record *record)
{
	atomic_fetch_add_explicit(&record->announced, 1, memory_order_seq_cst);
}
