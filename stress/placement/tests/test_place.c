/* SPDX-License-Identifier: MIT */
/*
 * A place is a choice: the same one again for the same number, others for others, and
 * the site is where it says.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "stress/cell/code.h"
#include "stress/placement/placement.h"
#include "stress/run/run.h"

#define PAGE   4096u
#define PLACES 2000

static struct run_options how;
static bool alone;

static unsigned count_set(uint64_t set)
{
	return (unsigned)__builtin_popcountll(set);
}

static void places_use_the_whole_pool(void **state)
{
	uint64_t first = 0, second = 0, line = 0, word = 0;

	(void)state;
	for (uint64_t place = 1; place < PLACES; place++) {
		struct site_place is = site_place_of(place);
		unsigned index = is.page[0];

		assert_true(index < PLACE_POOL);
		assert_true(is.page[1] < PLACE_POOL);
		assert_int_not_equal(is.page[1], index);
		assert_int_equal(site_place_of(place).page[0], index);
		assert_in_range(is.line, 1, 63);
		first |= UINT64_C(1) << index;
		second |= UINT64_C(1) << is.page[1];
		line |= UINT64_C(1) << is.line;
		word |= UINT64_C(1) << is.word;
	}
	assert_int_equal(count_set(first), 64);
	assert_int_equal(count_set(second), 64);
	assert_int_equal(count_set(line), 63);
	assert_int_equal(count_set(word), 64);
}

/* The pages are moved, not copied: they are others than stood there, and can be written and run. */
static void pages_are_put_under_the_address(void **state)
{
	uint8_t *under = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static uint8_t other[2 * PAGE] __attribute__((aligned(4096)));
	int (*one)(void);
	uint64_t frame;

	(void)state;
	assert_ptr_not_equal(under, MAP_FAILED);
	/* The pool has its frames before these have theirs: a frame that they free is not taken. */
	assert_int_equal(place_pages(other, 2, 5), 0);
	memset(under, 1, 2 * PAGE);
	frame = place_frame(under);
	assert_int_equal(place_pages(under, 2, 5), 0);
	for (unsigned i = 0; i < 2 * PAGE; i++)
		assert_int_equal(under[i], 0);
	assert_true(frame == 0 || place_frame(under) != frame);
	assert_true(frame == 0 || place_frame(under) != place_frame(under + PAGE));
	memcpy(under + PAGE - 3, "\xb8\x07\x00\x00\x00\xc3", 6); /* mov eax, 7; ret */
	one = (int (*)(void))(uintptr_t)(under + PAGE - 3);
	assert_int_equal(one(), 7);
}

static void unmapped_memory_has_no_frame(void **state)
{
	void *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_int_equal(place_frame(page), 0);
}

/* Without a place all is as ever: eight lines by the seed. */
static void the_site_is_where_its_place_says(void **state)
{
	static uint8_t arena[CODE_ARENA_PAGES * PAGE] __attribute__((aligned(4096)));
	uint64_t lines = 0, old = 0;
	struct cell cell;

	(void)state;
	cell_defaults(&cell);
	for (uint64_t i = 1; i < PLACES; i++) {
		uint8_t *at;

		cell.seed = i;
		cell.place = 0;
		at = code_place_site(arena, &cell) + cell.split;
		assert_ptr_equal(at, arena + PAGE + 512 + 64 * (i % 8));
		old |= UINT64_C(1) << (at - arena - PAGE) / 64;
		cell.place = i;
		cell.seed = 1;
		at = code_place_site(arena, &cell) + cell.split;
		assert_ptr_equal(at, arena + PAGE + 64 * site_place_of(i).line);
		lines |= UINT64_C(1) << site_place_of(i).line;
	}
	assert_int_equal(count_set(old), 8);
	assert_int_equal(count_set(lines), 63);
}

/* Of pages, of 32 KiB, of 2 MiB and of 1 GiB: each is that and no more. */
static void pages_end_at_boundaries_of_every_size(void **state)
{
	static struct code code;
	uint64_t seen = 0;
	struct cell cell;

	(void)state;
	cell_defaults(&cell);
	cell.crossing = CROSSING_PAGE;
	for (cell.place = 1; cell.place < PLACES && count_set(seen) < 4; cell.place++) {
		uint64_t boundary = site_place_of(cell.place).boundary, at;

		if (seen & boundary)
			continue;
		assert_int_equal(code_build(&code, &cell), 0);
		at = (uintptr_t)code.site[0].at + cell.split;
		assert_true((at & -at) == boundary);
		seen |= boundary;
	}
	assert_true(seen == (4096 | 32768 | 2097152 | 1073741824));
	assert_int_equal(site_place_of(0).boundary, 4096);
}

static void run(struct cell *cell, struct cell_result *r)
{
	assert_int_equal(cell_run(cell, &how, r), 0);
	assert_int_equal(r->outcome, OUTCOME_DONE);
	assert_int_equal(r->toggles, cell->toggles);
	assert_int_equal(r->old_new[0] + r->old_new[1] + cell_result_tears(r), r->executions);
}

static void seat(struct cell *cell)
{
	cell_defaults(cell);
	cell->placement = alone ? PLACEMENT_OVERSUBSCRIBED : PLACEMENT_SPREAD;
	cell->toggles = 2000;
}

/* Children that follow each other get the same pages from the kernel: not if their places differ.
 */
static void other_places_are_other_frames(void **state)
{
	static const enum crossing crossings[] = { CROSSING_LINE, CROSSING_PAGE };
	struct cell_result r;
	struct cell cell;

	(void)state;
	seat(&cell);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t first = 0;
		unsigned others = 0;

		cell.crossing = crossings[i];
		/* Fillers, additions and all: the longest loop has room at the last line, too. */
		cell.loop = CELL_LOOP_MAX;
		cell.provokers = 1u << PROVOKER_CHAIN | 1u << PROVOKER_SITES;
		for (cell.place = 1; cell.place <= 8; cell.place++) {
			run(&cell, &r);
			assert_true((r.frame[0] != r.frame[1]) ==
				    (r.frame[0] && crossings[i] == CROSSING_PAGE));
			if (cell.place == 1)
				first = r.frame[0];
			others += r.frame[0] != first;
		}
		assert_true(first == 0 || others >= 4);
	}
}

/* As long as this program lives: a place can be visited again. */
static void the_same_place_is_the_same_frame(void **state)
{
	struct cell_result first, again;
	struct cell cell;

	(void)state;
	seat(&cell);
	for (cell.place = 1; cell.place <= 4; cell.place++) {
		run(&cell, &first);
		cell.seed++;
		run(&cell, &again);
		assert_int_equal(first.frame[0], again.frame[0]);
	}
}

/* A fork that shared the pages would leave the patcher copies of them at its next store. */
static void forks_do_not_get_the_site(void **state)
{
	struct code code;
	struct cell cell;
	int status;
	pid_t pid;

	(void)state;
	seat(&cell);
	cell.crossing = CROSSING_PAGE;
	cell.place = 3;
	assert_int_equal(code_build(&code, &cell), 0);
	pid = fork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		_exit(*(volatile uint8_t *)code.site[0].at & 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static void roles_are_swapped(void **state)
{
	struct cell_result r, swapped;
	struct cell cell;

	(void)state;
	seat(&cell);
	run(&cell, &r);
	cell.swap = true;
	run(&cell, &swapped);
	assert_int_equal(swapped.seating.patcher, r.seating.executor[0]);
	assert_int_equal(swapped.seating.executor[0], r.seating.patcher);
	assert_int_equal(swapped.seating.executors, r.seating.executors);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_use_the_whole_pool),
		cmocka_unit_test(pages_are_put_under_the_address),
		cmocka_unit_test(unmapped_memory_has_no_frame),
		cmocka_unit_test(the_site_is_where_its_place_says),
		cmocka_unit_test(pages_end_at_boundaries_of_every_size),
		cmocka_unit_test(other_places_are_other_frames),
		cmocka_unit_test(the_same_place_is_the_same_frame),
		cmocka_unit_test(forks_do_not_get_the_site),
		cmocka_unit_test(roles_are_swapped),
	};
	char reason[160];
	int foreign;

	if (topology_open(&how.topology, &foreign) < 0 || foreign) {
		fprintf(stderr, "the topology cannot be read\n");
		return 77;
	}
	alone = placement_max(how.topology, PLACEMENT_SPREAD, reason, sizeof(reason)) == 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
