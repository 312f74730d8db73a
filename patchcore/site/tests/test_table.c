/* SPDX-License-Identifier: MIT */
/* Tables: what is added is found, what is removed is not, and neither keeps memory. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "patchcore/site/table.h"
#include "patchcore/site/thread.h"
#include "patchcore/tests/scale.h"
#include "patchcore/tests/step.h"

#define SHIFT 6
#define FIRST UINT64_C(0x7f0000001000)

/* --- Against a list --------------------------------------------------------------------------- */

#define ADDRS 4096u
#define TURNS 200000u

static bool known[ADDRS];

struct range {
	uintptr_t start, end;
	unsigned count;
};

static int count_entry(struct entry *entry, void *arg)
{
	struct range *range = arg;

	assert_true(entry->addr >= range->start && entry->addr < range->end);
	assert_true(known[entry->addr - FIRST]);
	range->count++;
	return 0;
}

static unsigned count_known(const struct range *range)
{
	unsigned count = 0;

	for (uintptr_t addr = FIRST; addr < FIRST + ADDRS; addr++)
		count += known[addr - FIRST] && addr >= range->start && addr < range->end;
	return count;
}

static void must_list(struct table *table, uintptr_t start, uintptr_t end)
{
	struct range range = { start, end, 0 };

	table_each_in(table, start, end, count_entry, &range);
	assert_int_equal(range.count, count_known(&range));
}

static void test_model(void **state)
{
	static struct table table = TABLE_INIT(struct entry, SHIFT, NULL);
	struct entry *entry;

	(void)state;
	srand(1);
	for (unsigned turn = 0; turn < TURNS; turn++) {
		/* Now few, now many. */
		unsigned i = (unsigned)rand() % (turn / 1000 % 2 ? ADDRS : 64);

		entry = table_find(&table, FIRST + i);
		assert_int_equal(entry != NULL, known[i]);
		if (known[i])
			table_remove(&table, entry);
		else
			assert_int_equal(table_get(&table, FIRST + i)->addr, FIRST + i);
		known[i] = !known[i];
		if (turn % 1000 == 0) {
			must_list(&table, FIRST + i / 2, FIRST + i);
			must_list(&table, FIRST, FIRST + ADDRS);
			must_list(&table, 0, UINTPTR_MAX);
		}
	}
}

static int remove_entry(struct entry *entry, void *table)
{
	table_remove(table, entry);
	return 0;
}

/* All of a range are met, though each is removed when it is met. */
static void test_remove_all(void **state)
{
	static struct table table = TABLE_INIT(struct entry, SHIFT, NULL);

	(void)state;
	for (unsigned turn = 0; turn < 100; turn++) {
		for (unsigned i = 0; i < 1000; i++)
			assert_non_null(table_get(&table, FIRST + i * 7));
		table_each_in(&table, FIRST, FIRST + 3500, remove_entry, &table);
		assert_int_equal(table.count, 500);
		table_each(&table, remove_entry, &table);
		assert_int_equal(table.count, 0);
	}
}

/* --- Nothing is kept -------------------------------------------------------------------------- */

static void add_and_remove(struct table *table, uintptr_t from, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct entry *entry = table_get(table, from + i * 24);

		assert_non_null(entry);
		table_remove(table, entry);
	}
}

static void test_keeps_nothing(void **state)
{
	static struct table table = TABLE_INIT(struct entry, SHIFT, NULL);
	size_t before;

	(void)state;
	add_and_remove(&table, FIRST, 1000);
	before = mallinfo2().uordblks;
	add_and_remove(&table, FIRST + 24000, 1000000);
	assert_true(mallinfo2().uordblks <= before + 8192);
}

/* --- A search that is interrupted ------------------------------------------------------------- */

#define MATES 30u

static struct table searched = TABLE_INIT(struct entry, SHIFT, NULL);
static unsigned long come_at;
static bool came;
static uintptr_t fresh = FIRST + (1u << 20);

/* Instructions from one interruption to the next: in short runs every third one, from another on
 * each time. */
static unsigned long stride(void)
{
	if (test_scale() >= 1)
		return 1;
	return come_at ? 3 : 1 + (unsigned long)getpid() % 3;
}

/* The one that is searched stands behind all others of its line. */
static void put_behind_mates(void)
{
	struct entry *last = table_find(&searched, FIRST + MATES);

	if (last)
		table_remove(&searched, last);
	for (unsigned i = 0; i <= MATES; i++)
		MUST(table_get(&searched, FIRST + i));
}

/* Meanwhile it comes to stand first, and the slots that are searched are emptied and filled anew.
 */
static bool refill(void)
{
	uint64_t filled = searched.fillings;
	struct entry *held[40];

	if (step_now.count < come_at)
		return true;
	came = true;
	for (unsigned i = 0; i < MATES; i++)
		table_remove(&searched, table_find(&searched, FIRST + i));
	while (searched.fillings < filled + 2) {
		for (unsigned i = 0; i < 40; i++)
			held[i] = table_get(&searched, fresh += 64);
		for (unsigned i = 0; i < 40; i++)
			table_remove(&searched, held[i]);
	}
	return false;
}

static void search(void)
{
	struct entry *found = table_find(&searched, FIRST + MATES);

	MUST(found && found->addr == FIRST + MATES);
}

static void step_through(const void *unused)
{
	(void)unused;
	step_install();
	thread_self();
	do {
		put_behind_mates();
		came = false;
		come_at += stride();
		step_run(search, refill);
	} while (came);
	MUST(come_at > MATES);
}

/* --- A walk that is interrupted --------------------------------------------------------------- */

static bool met[MATES];

static int note_met(struct entry *entry, void *unused)
{
	(void)unused;
	if (entry->addr - FIRST < MATES)
		met[entry->addr - FIRST] = true;
	return 0;
}

/* The slots are emptied, and filled anew with the same. */
static bool refill_alike(void)
{
	uint64_t filled = searched.fillings;

	if (step_now.count < come_at)
		return true;
	came = true;
	while (searched.fillings < filled + 2) {
		struct entry *held[40];

		for (unsigned i = 0; i < 40; i++)
			held[i] = table_get(&searched, fresh += 64);
		for (unsigned i = 0; i < 40; i++)
			table_remove(&searched, held[i]);
	}
	return false;
}

static void walk(void)
{
	table_each_in(&searched, FIRST, FIRST + MATES, note_met, NULL);
	for (unsigned i = 0; i < MATES; i++)
		MUST(met[i]);
}

static void step_through_walk(const void *unused)
{
	(void)unused;
	step_install();
	thread_self();
	for (unsigned i = 0; i < MATES; i++)
		MUST(table_get(&searched, FIRST + i));
	do {
		memset(met, 0, sizeof(met));
		came = false;
		come_at += 41 * stride();
		step_run(walk, refill_alike);
	} while (came);
	MUST(come_at > MATES);
}

static void test_interrupted_walk(void **state)
{
	(void)state;
	if (CHILD_ASAN || CHILD_TSAN)
		skip();
	child_must_pass(step_through_walk, NULL);
}

static void test_interrupted_search(void **state)
{
	(void)state;
	if (CHILD_ASAN || CHILD_TSAN)
		skip();
	child_must_pass(step_through, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_remove_all),
		cmocka_unit_test(test_keeps_nothing),
		cmocka_unit_test(test_interrupted_search),
		cmocka_unit_test(test_interrupted_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
