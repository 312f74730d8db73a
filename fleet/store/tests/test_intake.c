/* SPDX-License-Identifier: MIT */
/* Evidence comes in once, under any names of its files and beside any other lines in them. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "fleet/store/intake.h"
#include "fleet/tests/world.h"
#include "results/journal/journal.h"

static char folder[64], database[96], file[96];
static struct world world = { .hours = 3, .unevenness = 0.5 };

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_intake.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(database, sizeof(database), "%s/db", folder);
	snprintf(file, sizeof(file), "%s/node1.evidence", folder);
	world.rng = gsl_rng_alloc(gsl_rng_taus);
	return 0;
}

static int remove_folder(void **state)
{
	char command[96];

	(void)state;
	gsl_rng_free(world.rng);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static void append_hour(unsigned day)
{
	struct evidence_run run = world_hour(&world, 0, false, 1, day);

	assert_int_equal(evidence_append(file, &run), 0);
	sums_free(&run.sums);
}

static void append_text(const char *text)
{
	FILE *out = fopen(file, "a");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static struct intake merge(const char *path, const char *machine)
{
	struct intake intake = { 0 };
	struct fleet *fleet;

	assert_int_equal(fleet_open(&fleet, database, true), 0);
	assert_int_equal(fleet_take_file(fleet, path, machine, &intake), 0);
	assert_int_equal(fleet_close(fleet, true), 0);
	return intake;
}

/* Runs and machines of the only kind. */
static struct fleet_kind known(void)
{
	struct fleet_kind *kinds, kind;
	struct fleet *fleet;
	size_t count;

	assert_int_equal(fleet_open(&fleet, database, false), 0);
	assert_int_equal(fleet_kinds(fleet, &kinds, &count), 0);
	assert_int_equal(count, 1);
	kind = kinds[0];
	free(kinds);
	fleet_close(fleet, false);
	return kind;
}

static void second_merge_changes_nothing(void **state)
{
	(void)state;
	append_hour(1);
	append_hour(2);
	assert_int_equal(merge(file, NULL).runs, 2);
	append_hour(3);
	for (unsigned i = 0; i < 2; i++) {
		struct intake again = merge(file, NULL);

		assert_int_equal(again.runs, i == 0);
		assert_int_equal(again.known, 2 + i);
	}
	assert_int_equal(known().runs, 3);
	assert_int_equal(known().machines, 1);
}

static void all_that_was_counted_comes_back(void **state)
{
	struct evidence_run run = world_hour(&world, 0, false, 1, 1);
	struct fleet_run *runs;
	struct fleet *fleet;
	size_t count;

	(void)state;
	assert_int_equal(evidence_append(file, &run), 0);
	merge(file, NULL);
	assert_int_equal(fleet_open(&fleet, database, false), 0);
	assert_int_equal(fleet_runs(fleet, 1, &runs, &count), 0);
	assert_int_equal(count, 1);
	assert_string_equal(runs[0].name, "node1");
	assert_int_equal(runs[0].time, run.time);
	assert_int_equal(runs[0].sums.count, run.sums.count);
	for (size_t i = 0; i < run.sums.count; i++) {
		const struct sum *s = sums_find(&runs[0].sums, &run.sums.sum[i]);

		assert_non_null(s);
		assert_memory_equal(&s->count, &run.sums.sum[i].count, sizeof(s->count));
	}
	fleet_runs_free(runs, count);
	fleet_close(fleet, false);
	sums_free(&run.sums);
}

/* Whole lines, cut ones, other people's, and one whose numbers were improved. */
static void bad_lines_cost_no_others(void **state)
{
	char line[65536], *tears;
	FILE *in;

	(void)state;
	append_hour(1);
	in = fopen(file, "r");
	assert_non_null(fgets(line, sizeof(line), in));
	fclose(in);
	append_text("\n");
	tears = strstr(line, "\"tears\":");
	assert_non_null(tears);
	tears[8] = tears[8] == '9' ? '8' : '9';
	append_text(line);
	line[strlen(line) / 2] = '\0';
	append_text(line);
	append_text("\n");
	append_hour(2);
	for (unsigned i = 0; i < 2; i++) {
		struct intake intake = merge(file, NULL);

		assert_int_equal(intake.runs, i ? 0 : 2);
		assert_int_equal(intake.aside, 2);
	}
	assert_int_equal(known().runs, 2);
	/* What they said may have been that an epoch begins. */
	append_text("no JSON\n[1, 2]\n{\"type\": 7}\n{}\n\n");
	append_hour(3);
	assert_int_equal(merge(file, NULL).aside, 6);
	assert_int_equal(known().runs, 1);
}

/* One machine is called by two names: its runs and its boots come in once. */
static void a_machine_has_one_name(void **state)
{
	struct evidence_run run = world_hour(&world, 0, false, 1, 5);
	char path[96];

	(void)state;
	append_hour(1);
	snprintf(path, sizeof(path), "%s/also.evidence", folder);
	assert_int_equal(merge(file, NULL).runs, 1);
	assert_int_equal(link(file, path), 0);
	assert_int_equal(merge(path, NULL).known, 1);
	append_hour(2);
	assert_int_equal(merge(path, NULL).runs, 1);
	assert_int_equal(known().runs, 2);
	assert_int_equal(known().machines, 1);
	/* Two stores of one boot, as a user's and root's. */
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(unlink(file), 0);
		run.start[0] = (char)('a' + i);
		assert_int_equal(evidence_append(file, &run), 0);
		assert_int_equal(merge(file, i ? "root" : "user").runs, 1);
	}
	assert_int_equal(known().runs, 4);
	assert_int_equal(known().machines, 2);
	sums_free(&run.sums);
}

/* Also where another file has them, older or newer than that. */
static void dropped_runs_do_not_vote(void **state)
{
	char path[96], command[256];

	(void)state;
	append_hour(1);
	append_hour(2);
	snprintf(path, sizeof(path), "%s/node1.old", folder);
	snprintf(command, sizeof(command), "cp %s %s", file, path);
	assert_int_equal(system(command), 0);
	merge(path, NULL);
	assert_int_equal(known().runs, 2);
	assert_int_equal(evidence_begin_epoch(file, "dropped by the user"), 0);
	append_hour(3);
	for (unsigned i = 0; i < 2; i++) {
		merge(i ? path : file, NULL);
		assert_int_equal(known().runs, 1);
	}
}

/* The epoch that drops its runs may stand where it was cut. */
static void of_a_cut_file_nothing_counts(void **state)
{
	struct intake intake = { 0 };
	struct fleet *fleet;
	char command[256];

	(void)state;
	for (unsigned day = 0; day < 3; day++)
		append_hour(day);
	snprintf(command, sizeof(command), "xz %s && truncate -s -40 %s.xz", file, file);
	if (system(command) != 0)
		skip(); /* no xz */
	strcat(file, ".xz");
	assert_int_equal(fleet_open(&fleet, database, true), 0);
	assert_int_equal(fleet_take_file(fleet, file, NULL, &intake), -EIO);
	assert_int_equal(intake.runs, 0);
	assert_int_equal(fleet_close(fleet, true), 0);
	file[strlen(file) - 3] = '\0';
	append_hour(3);
	assert_int_equal(merge(file, NULL).runs, 1);
	assert_int_equal(known().runs, 1);
}

static void what_is_no_evidence_is_an_error(void **state)
{
	struct intake intake = { 0 };
	struct fleet *fleet;

	(void)state;
	append_text("a letter\n{\"type\": \"song\"}\n");
	assert_int_equal(fleet_open(&fleet, database, true), 0);
	assert_int_equal(fleet_take_file(fleet, file, NULL, &intake), -ENOMSG);
	assert_int_equal(intake.aside, 0);
	append_hour(1);
	assert_int_equal(fleet_take_file(fleet, file, NULL, &intake), 0);
	assert_int_equal(intake.runs, 1);
	assert_int_equal(fleet_close(fleet, true), 0);
}

/*
 * The journal of a run whose evidence is there is the same run, whichever comes first, whole or not
 * yet, from one start of the program or from two; of another it is a run more.
 */
static void journals_count_once(void **state)
{
	char path[96];
	struct identity id = world_identity(0, false);
	struct cell_record record = { .stage = "ladder", .key = "1" };
	struct journal *journal;
	struct evidence_run run = { .identity = id, .source = "quick", .boot = "1" };
	json_t *untested = json_array(), *estimate = json_object();

	(void)state;
	record.cell.crossing = CROSSING_LINE;
	record.cell.placement = PLACEMENT_SAME_L3;
	record.cell.executors = 1;
	record.cell.split = 3;
	record.cell.waits.stretch = 4;
	record.result = (struct cell_result){
		.outcome = OUTCOME_DONE, .toggles = 5000, .exposed = 4000, .torn = 0
	};
	snprintf(path, sizeof(path), "%s/node2.jsonl", folder);
	assert_int_equal(journal_open(&journal, path), 0);
	for (unsigned i = 0; i < 2; i++) {
		record.result.ticks += 7;
		snprintf(record.date, sizeof(record.date), "2030-01-01T00:00:0%uZ", i);
		assert_int_equal(journal_write_run(journal, "quick", &id, untested, 5), 0);
		assert_int_equal(journal_write_cell(journal, &record), 0);
		assert_int_equal(sums_add_record(&run.sums, &record), 0);
		if (i == 0)
			evidence_start(run.start, &record);
		assert_int_equal(merge(path, NULL).runs, 1);
		assert_int_equal(known().runs, 1);
	}
	assert_int_equal(journal_write_line(journal, "estimate", estimate), 0);
	assert_int_equal(journal_close(journal), 0);
	run.time = time(NULL);
	run.cpus.word[0] = 3;
	strcpy(run.date, "2026-01-01T00:00:00Z");
	assert_int_equal(evidence_append(file, &run), 0);
	for (unsigned i = 0; i < 3; i++) {
		merge(i == 1 ? file : path, NULL);
		assert_int_equal(known().runs, 1);
		assert_int_equal(merge(file, NULL).runs, i == 0);
		assert_int_equal(known().runs, 1);
		if (i == 0)
			assert_int_equal(unlink(database), 0);
	}
	assert_int_equal(unlink(database), 0);
	assert_int_equal(merge(path, NULL).runs, 1);
	sums_free(&run.sums);
	json_decref(untested);
	json_decref(estimate);
}

static void names_are_no_commands(void **state)
{
	static const char name[] = "x'); DROP TABLE run; --<script>\n\x1b[2J\xff\"";
	static const char brand[] = "<b>\"o') DROP TABLE kind --";
	struct evidence_run run = world_hour(&world, 0, false, 1, 1);
	struct fleet_run *runs;
	struct fleet *fleet;
	size_t count;

	(void)state;
	strcpy(run.identity.brand, brand);
	strcpy(run.identity.kernel, brand);
	assert_int_equal(evidence_append(file, &run), 0);
	sums_free(&run.sums);
	assert_int_equal(merge(file, name).runs, 1);
	assert_int_equal(fleet_open(&fleet, database, false), 0);
	assert_int_equal(fleet_runs(fleet, 1, &runs, &count), 0);
	assert_string_equal(runs[0].name, name);
	assert_string_equal(runs[0].kernel, brand);
	fleet_runs_free(runs, count);
	fleet_close(fleet, false);
	assert_string_equal(known().identity.brand, brand);
}

static void machine_of_a_file(void **state)
{
	static const char *const names[][2] = {
		{ "node7.evidence", "node7" },
		{ "/srv/node7.jsonl", "node7" },
		{ "fleet/node7/machine.conf.evidence", "node7" },
		{ "fleet/node7/machine.conf.jsonl", "node7" },
		{ "machine.conf.evidence", "machine" },
	};
	char name[FLEET_NAME];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		fleet_machine_of(names[i][0], name, sizeof(name));
		assert_string_equal(name, names[i][1]);
	}
}

/* Another program's database, one of another version, and what is none stay as they are. */
static void other_databases_are_refused(void **state)
{
	char command[256];
	struct fleet *fleet;

	(void)state;
	append_hour(1);
	assert_int_equal(fleet_open(&fleet, database, false), -ENOENT);
	merge(file, NULL);
	snprintf(command, sizeof(command),
		 "printf '\\0\\0\\0\\11' | dd of=%s bs=1 seek=60 conv=notrunc "
		 "2>/dev/null",
		 database); /* user_version */
	assert_int_equal(system(command), 0);
	assert_int_equal(fleet_open(&fleet, database, true), -EPROTO);
	assert_int_equal(fleet_open(&fleet, database, false), -EPROTO);
	assert_int_equal(fleet_open(&fleet, file, true), -EPROTO);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(second_merge_changes_nothing),
		WITH_FOLDER(all_that_was_counted_comes_back),
		WITH_FOLDER(bad_lines_cost_no_others),
		WITH_FOLDER(a_machine_has_one_name),
		WITH_FOLDER(dropped_runs_do_not_vote),
		WITH_FOLDER(of_a_cut_file_nothing_counts),
		WITH_FOLDER(what_is_no_evidence_is_an_error),
		WITH_FOLDER(journals_count_once),
		WITH_FOLDER(names_are_no_commands),
		cmocka_unit_test(machine_of_a_file),
		WITH_FOLDER(other_databases_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
