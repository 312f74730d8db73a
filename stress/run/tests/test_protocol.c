/* SPDX-License-Identifier: MIT */
/*
 * Protocols in files, run in cells: each file of the library runs and accounts for every execution;
 * what is broken in one is caught; and the files of the compiled protocols do as those do.
 */
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "patchcore/tests/scale.h"
#include "stress/cell/code.h"
#include "stress/run/run.h"

#define PROTOCOLS_MAX 64
#define TEXT_MAX      4096

static struct run_options how;
static bool alone; /* one CPU: nothing ever runs at the same time */

/* --- Cells ------------------------------------------------------------------------------------ */

static bool claims_nothing(const struct protocol_file *p)
{
	for (unsigned i = 0; i < CROSSING_COUNT; i++)
		if (p->supports[i])
			return false;
	return true;
}

/* Some crossing and split that it claims, and a pair that it has. */
static const struct protocol_file *seat(struct cell *cell, const char *name)
{
	static const enum crossing order[] = { CROSSING_LINE, CROSSING_PAGE, CROSSING_8,
					       CROSSING_NONE };
	const struct protocol_file *p;
	char why[WORDS_WHY] = "";
	int ret;

	cell_defaults(cell);
	cell->placement = alone ? PLACEMENT_OVERSUBSCRIBED : PLACEMENT_SPREAD;
	cell->rest = CELL_RESTED;
	cell->protocol = (enum protocol)protocol_parse(name);
	ret = protocol_file(cell->protocol, &p, why);
	if (ret < 0)
		fail_msg("%s", why);
	if (!(p->pairs & 1u << cell->pair))
		cell->pair = (enum code_pair)__builtin_ctz(p->pairs);
	for (unsigned i = 0; i < 4; i++)
		for (cell->split = p->length - 1; cell->split > 0; cell->split--) {
			cell->crossing = order[i];
			if ((p->broken || claims_nothing(p) ||
			     protocol_supports(p, order[i], cell->split)) &&
			    cell_check(cell, why, sizeof(why)) == 0)
				return p;
		}
	fail_msg("%s supports nothing that can be run", name);
	return NULL;
}

static void run(const struct cell *cell, struct cell_result *r)
{
	int ret = cell_run(cell, &how, r);

	if (ret < 0 || r->error < 0)
		print_error("%s: %d, %d\n", protocol_name(cell->protocol), ret, r->error);
	assert_int_equal(ret, 0);
	assert_int_equal(r->error, 0);
}

/* The names of the library. */
static unsigned list_library(char names[PROTOCOLS_MAX][PROTOCOL_NAME])
{
	char path[4096];
	const struct dirent *entry;
	unsigned count = 0;
	DIR *folder;

	assert_int_equal(protocol_path("naive", path, sizeof(path)), 0);
	*strrchr(path, '/') = '\0';
	folder = opendir(path);
	assert_non_null(folder);
	while ((entry = readdir(folder)) && count < PROTOCOLS_MAX)
		if (entry->d_name[0] != '.')
			snprintf(names[count++], PROTOCOL_NAME, "%.63s", entry->d_name);
	closedir(folder);
	assert_true(count >= 15);
	return count;
}

static void every_file_runs_and_accounts(void **state)
{
	static char names[PROTOCOLS_MAX][PROTOCOL_NAME];
	unsigned count = list_library(names);

	(void)state;
	for (unsigned i = 0; i < count; i++) {
		struct cell_result r;
		struct cell cell;

		seat(&cell, names[i]);
		cell.toggles = 64;
		run(&cell, &r);
		if (r.outcome == OUTCOME_CRASH) {
			assert_true(cell_result_tears(&r) > 0);
			continue;
		}
		assert_int_equal(r.outcome, OUTCOME_DONE);
		assert_true(r.toggles > 0 && r.executions > 0);
		assert_int_equal(r.old_new[0] + r.old_new[1] + cell_result_tears(&r), r.executions);
		assert_true(r.exposed <= r.toggles && r.torn <= r.toggles);
	}
}

/* --- Files and compiled protocols ------------------------------------------------------------- */

/* Tears per toggle are this at least, or at most, but for 1e-7: by Wilson's interval. */
static double wilson(const struct cell_result *r, double sign)
{
	const double z = 5.33 * sign, n = (double)r->toggles;
	double p = (double)r->torn / n;

	return (p + z * z / (2 * n) + z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))) /
	       (1 + z * z / n);
}

/*
 * The same cell both ways. What tears a protocol is how far its stores are apart: at waits that are
 * long neither tears, with none both may, at rates that differ by less than both intervals.
 */
static void both_forms_count_alike(enum protocol compiled, enum crossing crossing, uint64_t wait)
{
	struct cell_result r[2];
	char name[64];

	snprintf(name, sizeof(name), "%s.protocol", protocol_name(compiled));
	for (unsigned file = 0; file < 2; file++) {
		struct cell cell;

		seat(&cell, name);
		cell.crossing = crossing;
		cell.split = 2;
		if (!file)
			cell.protocol = compiled;
		cell.waits.first = cell.waits.second = wait;
		cell.toggles = (uint64_t)(2000 * test_scale()) + 200;
		cell.seconds = 5;
		run(&cell, &r[file]);
		assert_int_equal(r[file].outcome, OUTCOME_DONE);
		assert_int_equal(r[file].old_new[0] + r[file].old_new[1] +
					 cell_result_tears(&r[file]),
				 r[file].executions);
	}
	assert_true(wilson(&r[0], -1) <= wilson(&r[1], 1));
	assert_true(wilson(&r[1], -1) <= wilson(&r[0], 1));
	if (compiled != PROTOCOL_WAIT) {
		assert_int_equal(cell_result_tears(&r[0]), 0);
		assert_int_equal(cell_result_tears(&r[1]), 0);
	}
}

static void files_do_as_the_compiled_protocols(void **state)
{
	(void)state;
	both_forms_count_alike(PROTOCOL_ATOMIC, CROSSING_8, 0);
	both_forms_count_alike(PROTOCOL_WAIT, CROSSING_LINE, 0);
	both_forms_count_alike(PROTOCOL_WAIT, CROSSING_PAGE, 20000);
	if (membarrier_register() < 0)
		skip();
	both_forms_count_alike(PROTOCOL_MEMBARRIER, CROSSING_LINE, 0);
}

/*
 * A race, and so up to the machine: where a store across a line tears at all it did so at 1e-5 and
 * more of 100,000 toggles a second.
 */
static void naive_tears_and_text_poke_never(void **state)
{
	struct cell_result r;
	struct cell cell;

	(void)state;
	seat(&cell, "text-poke");
	cell.toggles = 1000;
	cell.seconds = 2;
	run(&cell, &r);
	assert_int_equal(r.outcome, OUTCOME_DONE);
	assert_int_equal(cell_result_tears(&r), 0);
	if (alone)
		skip();
	seat(&cell, "naive");
	cell.rest = CELL_HOT;
	cell.toggles = CELL_TOGGLES_MAX;
	cell.stop_tears = 1;
	cell.seconds = 5 * test_scale();
	run(&cell, &r);
	if (cell_result_tears(&r) == 0) {
		print_message("# naive: no tear in %.3g toggles, skipped\n", (double)r.toggles);
		skip();
	}
	print_message("# naive tore after %.3g s\n", r.seconds);
}

/* --- Broken on purpose ------------------------------------------------------------------------ */

static char folder[] = "/tmp/test_protocol.XXXXXX";

/* Lines of a file, without comments; a step has its place. */
struct file_lines {
	char line[128][256];
	unsigned count, first_step; /* the number of lines above the steps */
};

static bool is_store(const char *line)
{
	return strncmp(line, "store ", 6) == 0;
}

static bool is_step(const char *line)
{
	return is_store(line) || strncmp(line, "guard ", 6) == 0 ||
	       strncmp(line, "membarrier", 10) == 0 || strncmp(line, "wait", 4) == 0 ||
	       strchr("mc", line[0]);
}

static void read_lines(const char *name, struct file_lines *lines)
{
	char path[4096];
	FILE *file;

	*lines = (struct file_lines){ 0 };
	assert_int_equal(protocol_path(name, path, sizeof(path)), 0);
	file = fopen(path, "r");
	assert_non_null(file);
	while (lines->count < 128 &&
	       fgets(lines->line[lines->count], sizeof(lines->line[0]), file)) {
		const char *line = lines->line[lines->count];

		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (!lines->first_step && strncmp(line, "claims", 6) != 0 && is_step(line))
			lines->first_step = lines->count;
		lines->count++;
	}
	fclose(file);
}

#define TRIES 30

/* Run what is left of it: does the oracle see that it is broken? */
static bool is_caught(const struct file_lines *lines, const struct cell *like)
{
	static unsigned number;
	struct cell cell = *like;
	struct cell_result r;
	char path[64], why[WORDS_WHY];
	const struct protocol_file *p;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%u.protocol", folder, number++);
	file = fopen(path, "w");
	assert_non_null(file);
	for (unsigned i = 0; i < lines->count; i++)
		fputs(lines->line[i], file);
	fclose(file);
	cell.protocol = (enum protocol)protocol_parse(path);
	if (protocol_file(cell.protocol, &p, why) < 0)
		fail_msg("%s", why);
	unlink(path);
	cell.waits.first = cell.waits.second = 20000;
	/* Each code is run between two toggles, also where others want the CPUs. */
	cell.rest = 1000000;
	cell.stop_tears = 10;
	cell.toggles = 256;
	/*
	 * It tears, dies, or leaves executors with one code, or in a trap. A mix stands for some
	 * microseconds of each change: on a busy machine no executor may run then.
	 */
	for (unsigned i = 0; i < TRIES; i++) {
		run(&cell, &r);
		if (cell_result_tears(&r) > 0 || r.outcome != OUTCOME_DONE || r.exposed < 4)
			return true;
	}
	return false;
}

static void remove_line(struct file_lines *lines, unsigned at)
{
	lines->count--;
	memmove(lines->line[at], lines->line[at + 1], (lines->count - at) * sizeof(lines->line[0]));
}

static void insert_line(struct file_lines *lines, unsigned at, const char *text)
{
	memmove(lines->line[at + 1], lines->line[at], (lines->count - at) * sizeof(lines->line[0]));
	strcpy(lines->line[at], text);
	lines->count++;
}

/* Of the way there: the first store, the last but one, and the last. */
static void find_stores(const struct file_lines *lines, unsigned at[3])
{
	unsigned stores = 0;

	for (unsigned i = lines->first_step; i < lines->count && is_step(lines->line[i]); i++) {
		if (!is_store(lines->line[i]))
			continue;
		if (!stores++)
			at[0] = i;
		at[1] = at[2];
		at[2] = i;
	}
	assert_true(stores > 1);
}

/* Each of the last two stores is dropped; or first and last change places, with a wait between. */
static void what_is_dropped_or_moved_is_caught(void **state)
{
	static const char *const sound[] = { "text-poke",	"uprobes-nop5", "uprobes-nop10",
					     "gvisor",		"word-patch",	"openj9",
					     "hotspot-replace", "xray" };
	static const char *const breaks[] = { "the last store but one", "its last store",
					      "its order" };
	unsigned missed = 0;

	(void)state;
	if (alone || membarrier_register() < 0)
		skip();
	for (unsigned i = 0; i < 3 * sizeof(sound) / sizeof(sound[0]); i++) {
		static struct file_lines lines, broken;
		const char *name = sound[i / 3];
		const struct protocol_file *p;
		struct cell cell;
		unsigned at[3] = { 0 };

		p = seat(&cell, name);
		/* Calls share their first byte. */
		if (p->pairs & 1u << PAIR_CALL_NOP)
			cell.pair = PAIR_CALL_NOP;
		read_lines(name, &lines);
		find_stores(&lines, at);
		broken = lines;
		/* 48 before the prefix 2E of the old NOP is ignored: that mix does as the NOP. */
		if (i % 3 == 2 && strcmp(name, "uprobes-nop10") == 0)
			continue;
		if (i % 3 < 2) {
			remove_line(&broken, at[1 + i % 3]);
		} else {
			strcpy(broken.line[at[0]], lines.line[at[2]]);
			strcpy(broken.line[at[2]], lines.line[at[0]]);
			insert_line(&broken, at[2], "wait 20000\n");
		}
		if (!is_caught(&broken, &cell)) {
			print_error("%s without %s\n", name, breaks[i % 3]);
			missed++;
		}
	}
	assert_int_equal(missed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_file_runs_and_accounts),
		cmocka_unit_test(files_do_as_the_compiled_protocols),
		cmocka_unit_test(naive_tears_and_text_poke_never),
		cmocka_unit_test(what_is_dropped_or_moved_is_caught),
	};
	char reason[160];
	int foreign, ret;

	if (topology_open(&how.topology, &foreign) < 0 || foreign) {
		fprintf(stderr, "the topology cannot be read\n");
		return 77;
	}
	alone = placement_max(how.topology, PLACEMENT_SPREAD, reason, sizeof(reason)) == 0;
	if (!mkdtemp(folder))
		return 1;
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return ret;
}
