/* SPDX-License-Identifier: MIT */
/*
 * The matrix notices: with the library broken on purpose, in one place at a time, cells fail
 * that else go well.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "patchcore/life/tests/life_cell.h"
#include "patchcore/pages/text.h"
#include "patchcore/site/thread.h"

/*
 * A cell takes steps at random. One try, of two visits, notices the rarest of these one time in
 * four (12 of 52; with 95 % confidence one in eight), so all tries miss it less than once in 1e8.
 */
#define TRIES 150

/* A child that hangs spins. One that is well takes milliseconds. */
#define HANG_CPU 2

enum broken {
	NOTHING,
	ALL_ARE_GONE,	     /* of owners: a waiting thread takes over from a living one */
	NONE_IS_GONE,	     /* what a thread has left is left for good */
	ALL_ARE_INTERRUPTED, /* an executor takes itself for the patcher, as a vfork child once did
			      */
	NONE_IS_INTERRUPTED, /* a patcher that its own handler waits for does not go on */
	NONE_IS_ADOPTED,     /* the child takes the threads of its parent for its own */
	NONE_IS_COPIED,	     /* the child has no code of its own where there is an alias */
};

static enum broken broken;

/* The linker hands these calls to us: see local.mk. */
bool __real_thread_is_gone(uint64_t id);
bool __wrap_thread_is_gone(uint64_t id);
bool __wrap_thread_ask_end(uint64_t id);
bool __real_thread_is_interrupted(uint64_t id);
bool __wrap_thread_is_interrupted(uint64_t id);
void __real_thread_adopt(void);
void __wrap_thread_adopt(void);
void __real_text_before_fork(void);
void __wrap_text_before_fork(void);

/*
 * A thread that registers asks for a free slot. Some linkers hand us that call as well (lld does,
 * bfd does not), and a slot taken from a living thread is another fault.
 */
bool __wrap_thread_is_gone(uint64_t id)
{
	if (broken == ALL_ARE_GONE && thread_here)
		return true;
	return broken != NONE_IS_GONE && __real_thread_is_gone(id);
}

/* It would mend what is broken. */
bool __wrap_thread_ask_end(uint64_t id)
{
	return __wrap_thread_is_gone(id);
}

bool __wrap_thread_is_interrupted(uint64_t id)
{
	if (broken == ALL_ARE_INTERRUPTED)
		return true;
	return broken != NONE_IS_INTERRUPTED && __real_thread_is_interrupted(id);
}

void __wrap_thread_adopt(void)
{
	if (broken != NONE_IS_ADOPTED)
		__real_thread_adopt();
}

void __wrap_text_before_fork(void)
{
	if (broken != NONE_IS_COPIED)
		__real_text_before_fork();
}

struct variant {
	enum broken broken;
	const char *protocol, *event;
};

static void find_cell(struct cell *cell, const struct variant *variant)
{
	for (unsigned i = 0; i < protocol_count; i++)
		for (unsigned j = 0; j < life_events(); j++)
			if (strcmp(protocols[i].name, variant->protocol) == 0 &&
			    strcmp(life_event(j)->name, variant->event) == 0) {
				cell_name(cell, &protocols[i], life_event(j));
				return;
			}
	fail_msg("there is no cell %s: %s", variant->protocol, variant->event);
}

static enum outcome try_often(const struct cell *cell, struct report *report)
{
	enum outcome outcome = CELL_WELL;

	int tries = 0;

	while (tries++ < TRIES && outcome == CELL_WELL)
		outcome = cell_try(cell, report);
	print_message("tries: %d\n", tries - 1);
	return outcome;
}

static void test_noticed(void **state)
{
	const struct variant *variant = *state;
	struct report report;
	enum outcome outcome;
	struct cell cell;

	find_cell(&cell, variant);
	broken = variant->broken;
	life_child_cpu = HANG_CPU;
	outcome = try_often(&cell, &report);
	broken = NOTHING;
	life_child_cpu = 0;
	if (outcome == CELL_SKIPPED)
		skip();
	assert_int_equal(outcome, CELL_FAILED);
	if (cell_try(&cell, &report) != CELL_WELL)
		fail_msg("%s, and nothing is broken: %s", cell.name, report.what);
}

#define NOTICED(how, where, what)                                                                  \
	{                                                                                          \
		"test_noticed " #how, test_noticed, NULL, NULL, &(struct variant)                  \
		{                                                                                  \
			how, where, what                                                           \
		}                                                                                  \
	}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		NOTICED(ALL_ARE_GONE, "word", "patcher"),
		NOTICED(ALL_ARE_GONE, "async", "executor"),
		NOTICED(NONE_IS_GONE, "word", "clone beside"),
		NOTICED(ALL_ARE_INTERRUPTED, "word", "executor"),
		NOTICED(NONE_IS_INTERRUPTED, "word", "_Fork"),
		NOTICED(NONE_IS_ADOPTED, "word", "clone beside"),
		NOTICED(NONE_IS_COPIED, "alias", "fork beside"),
	};

	if (argc > 1 && strcmp(argv[1], "--passed") == 0)
		return 0;
	cells_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
