/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/command_line.h"
#include "base/exit_status.h"
#include "commands/tmax/calibrate_cmd.h"
#include "commands/tmax/commands.h"
#include "stress/cell/cell.h"

volatile sig_atomic_t interrupted;

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* --- what is said on stderr --- */

static int said = -1; /* stands in for stderr */
static int real_stderr = -1;

static int hear(void **state)
{
	(void)state;
	said = memfd_create("stderr", MFD_CLOEXEC);
	real_stderr = dup(STDERR_FILENO);
	return said < 0 || real_stderr < 0;
}

static int unhear(void **state)
{
	(void)state;
	close(said);
	close(real_stderr);
	return 0;
}

static void start_listening(void)
{
	assert_int_equal(ftruncate(said, 0), 0);
	assert_int_equal(lseek(said, 0, SEEK_SET), 0);
	fflush(stderr);
	dup2(said, STDERR_FILENO);
}

static void stop_listening(char *text, size_t size)
{
	ssize_t length;

	fflush(stderr);
	dup2(real_stderr, STDERR_FILENO);
	length = pread(said, text, size - 1, 0);
	assert_true(length >= 0);
	text[length] = '\0';
}

/* One line that names both, and one that tells where help is. */
static void assert_complaint(const char *text, const char *option, const char *value)
{
	char help[128], *end = strchr(text, '\n');

	snprintf(help, sizeof(help), "\nTry '%s --help'.\n", program_invocation_name);
	if (!end || strcmp(end, help) != 0 || !strstr(text, option) || !strstr(text, value) ||
	    strncmp(text, program_invocation_name, strlen(program_invocation_name)) != 0)
		fail_msg("--%s '%s' was refused with \"%s\"", option, value, text);
}

/* --- numbers --- */

/* Through a command line of that option alone. */
static bool take(const struct option_row *options, const char *name, const char *text,
		 void *request)
{
	const struct command_line line = { .options = { options } };
	char complaint[512], option[64], value[64];
	char *argv[] = { program_invocation_name, option, value, NULL };
	int status;

	snprintf(option, sizeof(option), "--%s", name);
	snprintf(value, sizeof(value), "%s", text ? text : "");
	start_listening();
	status = command_line_parse(&line, text ? 3 : 2, argv, request, NULL);
	stop_listening(complaint, sizeof(complaint));
	if (status == EXIT_PASS)
		assert_string_equal(complaint, "");
	else
		assert_complaint(complaint, option, value);
	return status == EXIT_PASS;
}

static bool take_u64(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	const struct option_row options[] = { { "number", "N", "", .take = option_number,
						.size = sizeof(*value), .min = min, .max = max },
					      { 0 } };

	return take(options, "number", text, value);
}

static void numbers_in_range(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = { { "5", 5 },
		     { "0", 0 },
		     { "007", 7 },
		     { "18446744073709551615", UINT64_MAX },
		     { "9223372036854775808", UINT64_C(9223372036854775808) } };
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < LENGTH(good); i++) {
		assert_true(take_u64(good[i].text, 0, UINT64_MAX, &value));
		assert_true(value == good[i].value);
	}
	assert_true(take_u64("3", 3, 3, &value));
	assert_false(take_u64("2", 3, 3, &value));
	assert_false(take_u64("4", 3, 3, &value));
}

static void numbers_that_are_none(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"-1",
		"-0",
		"+1",
		" 1",
		"1 ",
		"1\v",
		"\t1",
		"0x10",
		"1e3",
		"1.0",
		"1,0",
		"1k",
		"one",
		"nan",
		"inf",
		"1-",
		"--1",
		"1 1",
		"\xc2\xb2",
		"-18446744073709551615",
		"18446744073709551616",
		"99999999999999999999999999999",
	};
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < LENGTH(bad); i++)
		assert_false(take_u64(bad[i], 0, UINT64_MAX, &value));
}

static bool take_seconds(const char *text, double *seconds)
{
	static const struct option_row options[] = { { "time", "T", "", .take = option_time },
						     { 0 } };

	return take(options, "time", text, seconds);
}

static void times_that_are_too_short(void **state)
{
	static const struct option_row options[] = {
		{ "time", "T", "", .take = option_time, .min = 5 }, { 0 }
	};
	double seconds;

	(void)state;
	assert_false(take(options, "time", "4.9s", &seconds));
	assert_true(take(options, "time", "5s", &seconds));
}

static void times_with_and_without_unit(void **state)
{
	static const struct {
		const char *text;
		double seconds;
	} good[] = {
		{ "90", 90 },
		{ "90s", 90 },
		{ "10m", 600 },
		{ "2h", 7200 },
		{ "0.25", 0.25 },
		{ "1.5h", 5400 },
		{ ".5", 0.5 },
		{ "5.", 5 },
		{ "744h", 2678400 },
		/* As the command of a record spells very short and very long times. */
		{ "1e-05", 1e-5 },
		{ "2.6784e+06", 2678400 },
	};
	double seconds;

	(void)state;
	for (size_t i = 0; i < LENGTH(good); i++) {
		assert_true(take_seconds(good[i].text, &seconds));
		assert_true(fabs(seconds - good[i].seconds) <= 1e-12 * good[i].seconds);
	}
}

static void times_that_are_none(void **state)
{
	static const char *const bad[] = {
		"",    "0",    "0s",   "0.0h",	  "-1",	   "-1s",	"+1",	  " 1",
		"1 s", "1s ",  "s",    "m",	  ".",	   "..5",	"1.2.3",  "1d",
		"1ms", "1S",   "1hh",  "1h30m",	  "0x10",  "0X1p3s",	"nan",	  "inf",
		"1e",  "1e5h", "745h", "2678401", "1e999", "99999999h", "1e-999", "soon",
	};
	double seconds;

	(void)state;
	for (size_t i = 0; i < LENGTH(bad); i++)
		assert_false(take_seconds(bad[i], &seconds));
}

/* --- cells --- */

static unsigned count_options(void)
{
	unsigned count = 0;

	while (cell_options[count].name)
		count++;
	return count;
}

static void every_option_is_in_the_table_once(void **state)
{
	(void)state;
	for (unsigned i = 0; i < count_options(); i++) {
		const struct option_row *row = &cell_options[i];

		assert_ptr_equal(option_named(cell_options, row->name), row);
		assert_non_null(row->help);
		assert_non_null(row->take);
		assert_int_equal(!row->argument, strcmp(row->name, "swap") == 0);
	}
}

/* Through the command line of a cell in which nothing is at its default. */
static void a_command_gives_its_cell_back(void **state)
{
	const struct cell cell = {
		.placement = PLACEMENT_CROSS_SOCKET,
		.crossing = CROSSING_PAGE,
		.pair = PAIR_WORD,
		.protocol = PROTOCOL_NO_INT3,
		.oracle = ORACLE_CRASH,
		.split = 4,
		.executors = 1024,
		.waits.first = 1000000000,
		.waits.second = 7,
		.waits.stretch = 64,
		.rest = 11,
		.provokers = 1u << PROVOKER_SITES | 1u << PROVOKER_SHOOTDOWN,
		.loop = 4096,
		.toggles = 1000000000000,
		.seconds = 0.5,
		.stop_tears = INT64_MAX,
		.seed = INT64_MAX,
		.place = INT64_MAX,
		.swap = true,
	};
	struct cell back;
	char command[512], *word;

	(void)state;
	cell_defaults(&back);
	cell_command(&cell, command, sizeof(command));
	assert_string_equal(strtok(command, " "), "tmax");
	assert_string_equal(strtok(NULL, " "), "stress");
	while ((word = strtok(NULL, " "))) {
		assert_memory_equal(word, "--", 2);
		const char *value = strcmp(word, "--swap") ? strtok(NULL, " ") : NULL;

		assert_true(take(cell_options, word + 2, value, &back));
	}
	assert_int_equal(back.placement, cell.placement);
	assert_int_equal(back.crossing, cell.crossing);
	assert_int_equal(back.pair, cell.pair);
	assert_int_equal(back.protocol, cell.protocol);
	assert_int_equal(back.oracle, cell.oracle);
	assert_int_equal(back.split, cell.split);
	assert_int_equal(back.executors, cell.executors);
	assert_int_equal(back.waits.first, cell.waits.first);
	assert_int_equal(back.waits.second, cell.waits.second);
	assert_int_equal(back.waits.stretch, cell.waits.stretch);
	assert_int_equal(back.rest, cell.rest);
	assert_int_equal(back.provokers, cell.provokers);
	assert_int_equal(back.loop, cell.loop);
	assert_int_equal(back.toggles, cell.toggles);
	assert_true(back.seconds == cell.seconds);
	assert_int_equal(back.stop_tears, cell.stop_tears);
	assert_int_equal(back.seed, cell.seed);
	assert_int_equal(back.place, cell.place);
	assert_true(back.swap);
}

static void no_limit_of_seconds(void **state)
{
	struct cell cell = { .seconds = 5 };

	(void)state;
	assert_true(take(cell_options, "seconds", "0", &cell));
	assert_true(cell.seconds == 0);
}

static void absurd_cells_are_refused(void **state)
{
	static const struct {
		const char *option;
		const char *text[10];
	} bad[] = {
		{ "split", { "0", "16", "-1", "4294967297", "1.5", "", "x" } },
		{ "executors",
		  { "0", "1025", "5000", "-1", "4294967297", "18446744073709551617", "" } },
		{ "first-wait", { "-1", "1000000001", "18446744073709551616", "1e3", "" } },
		{ "second-wait", { "-1", "1000000001", "18446744073709551616", "1e3", "" } },
		{ "rest", { "-1", "1000000001", "18446744073709551616", "" } },
		{ "stretch", { "-1", "65", "4294967296", "1.5", "" } },
		{ "provoker", { "", "hammer", "load,wide", "load+load", "none+load", "Load" } },
		{ "loop", { "-1", "4097", "4294967297", "x", "" } },
		{ "toggles", { "0", "-1", "1000000000001", "18446744073709551617", "" } },
		{ "seconds", { "-1", "0s", "00", "2678401", "nan", "inf", "" } },
		/* A record could not hold these. */
		{ "stop-tears", { "-1", "9223372036854775808", "18446744073709551615", "" } },
		{ "seed", { "-1", "9223372036854775808", "18446744073709551616", "" } },
		{ "place", { "-1", "9223372036854775808", "18446744073709551616", "" } },
		{ "placement", { "", "moon", "Spread", "spread ", "0" } },
		{ "crossing", { "", "64", "lin", "8 " } },
		{ "pair", { "", "nop-nop", "call" } },
		{ "protocol", { "", "hope", "Wait" } },
		{ "oracle", { "", "delphi", "counts" } },
	};
	struct cell cell;

	(void)state;
	/* All but --swap, which has no value. */
	assert_int_equal(LENGTH(bad), count_options() - 1);
	for (size_t i = 0; i < LENGTH(bad); i++)
		for (size_t j = 0; j < LENGTH(bad[i].text) && bad[i].text[j]; j++)
			if (take(cell_options, bad[i].option, bad[i].text[j], &cell))
				fail_msg("--%s '%s' was taken", bad[i].option, bad[i].text[j]);
}

static void the_limits_themselves_are_taken(void **state)
{
	static const char *const good[][2] = {
		{ "split", "1" },	  { "split", "4" },
		{ "executors", "1" },	  { "executors", "1024" },
		{ "first-wait", "0" },	  { "first-wait", "1000000000" },
		{ "second-wait", "0" },	  { "second-wait", "1000000000" },
		{ "rest", "0" },	  { "rest", "1000000000" },
		{ "stretch", "0" },	  { "stretch", "64" },
		{ "provoker", "none" },	  { "provoker", "sites+load" },
		{ "loop", "0" },	  { "loop", "4096" },
		{ "toggles", "1" },	  { "toggles", "1000000000000" },
		{ "seconds", "2678400" }, { "stop-tears", "9223372036854775807" },
		{ "seed", "0" },	  { "seed", "9223372036854775807" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(good); i++) {
		struct cell cell;
		char reason[160] = "";

		cell_defaults(&cell);
		cell.pair = PAIR_CALL_NOP; /* any split */
		assert_true(take(cell_options, good[i][0], good[i][1], &cell));
		assert_int_equal(cell_check(&cell, reason, sizeof(reason)), 0);
	}
}

static void a_usage_error_tells_where_help_is(void **state)
{
	char complaint[512];
	int status;

	(void)state;
	start_listening();
	status = refuse_usage("not %d, but '%s'", 5, "five");
	stop_listening(complaint, sizeof(complaint));
	assert_int_equal(status, EXIT_USAGE);
	assert_string_equal(complaint, "tmax test: not 5, but 'five'\nTry 'tmax test --help'.\n");
}

static void a_silent_reader_says_why(void **state)
{
	static const struct command_line line = { .options = { cell_options } };
	static const char *const bad[][2] = { { "--split=16", "from 1 to 15" },
					      { "--hope", "" },
					      { "--split", "" },
					      { "--help", "" },
					      { "extra", "'extra'" } };
	char why[OPTION_WHY], complaint[512];
	struct cell cell;

	(void)state;
	for (size_t i = 0; i < LENGTH(bad); i++) {
		char word[32], *argv[] = { program_invocation_name, word, NULL };

		snprintf(word, sizeof(word), "%s", bad[i][0]);
		start_listening();
		assert_int_equal(command_line_read(&line, 2, argv, &cell, why), -EINVAL);
		stop_listening(complaint, sizeof(complaint));
		assert_string_equal(complaint, "");
		assert_true(bad[i][1][0] ? !!strstr(why, bad[i][1]) : !why[0]);
	}
}

/* --- calibrate --- */

static int parse_words(const char *const *words, struct request *r, char *complaint, size_t size)
{
	char *argv[16] = { program_invocation_name };
	int argc = 1, status;

	while (words[argc - 1]) {
		argv[argc] = (char *)(uintptr_t)words[argc - 1];
		argc++;
	}
	start_listening();
	status = request_parse(argc, argv, r);
	stop_listening(complaint, size);
	assert_int_equal(status == EXIT_PASS, complaint[0] == '\0');
	return status;
}

static void take_request(const char *const *words, struct request *r)
{
	char complaint[512];

	assert_int_equal(parse_words(words, r, complaint, sizeof(complaint)), EXIT_PASS);
}

static void files_lie_beside_the_config(void **state)
{
	static const char *const plain[] = { "--output", "/tmp/a.conf", NULL };
	static const char *const named[] = { "--output",   "a", "--journal", "b",
					     "--evidence", "c", NULL };
	static struct request r;

	(void)state;
	take_request(plain, &r);
	assert_string_equal(r.output, "/tmp/a.conf");
	assert_string_equal(r.journal, "/tmp/a.conf.jsonl");
	assert_string_equal(r.evidence, "/tmp/a.conf.evidence");
	assert_false(r.verbose);
	assert_string_equal(r.plan.name, "default");
	take_request(named, &r);
	assert_string_equal(r.output, "a");
	assert_string_equal(r.journal, "b");
	assert_string_equal(r.evidence, "c");
}

static void the_plan_takes_what_the_user_requires(void **state)
{
	static const char *const none[] = { "--quick", "--output", "a", NULL };
	static const char *const some[] = { "--quick",	 "--require-p", "2.5e-7", "--budget", "9s",
					    "--verbose", "--output",	"a",	  NULL };
	static struct request r;

	(void)state;
	take_request(none, &r);
	assert_true(r.plan.require_p == REQUIRE_P);
	assert_true(r.plan.budget == plan_find("quick")->budget);
	take_request(some, &r);
	assert_true(r.plan.require_p == 2.5e-7);
	assert_true(r.plan.budget == 9);
	assert_true(r.verbose);
	assert_true(plan_find("quick")->require_p == REQUIRE_P);
}

static void assert_refused(const char *const *words, const char *option, const char *value)
{
	static struct request r;
	char complaint[512];

	assert_int_equal(parse_words(words, &r, complaint, sizeof(complaint)), EXIT_USAGE);
	assert_complaint(complaint, option, value);
}

static void probabilities_that_are_none(void **state)
{
	static const char *const bad[] = { "",	     "0",     "1",   "2",    "-1e-4",  "+1e-4",
					   " 1e-4",  "1e-4 ", "nan", "inf",  "0x1p-9", "1e-4x",
					   "1e-999", "1e",    ".",   "often" };

	(void)state;
	for (size_t i = 0; i < LENGTH(bad); i++) {
		const char *const words[] = { "--output", "a", "--require-p", bad[i], NULL };

		assert_refused(words, "--require-p", bad[i]);
	}
}

static void names_of_files_are_not_empty(void **state)
{
	static const char *const options[] = { "--output", "--journal", "--evidence" };

	(void)state;
	for (size_t i = 0; i < LENGTH(options); i++) {
		const char *const words[] = { "--quick", options[i], "", NULL };

		assert_refused(words, options[i], "name of a file");
	}
}

int main(void)
{
	static char name[] = "tmax test";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_in_range),
		cmocka_unit_test(numbers_that_are_none),
		cmocka_unit_test(times_with_and_without_unit),
		cmocka_unit_test(times_that_are_none),
		cmocka_unit_test(times_that_are_too_short),
		cmocka_unit_test(every_option_is_in_the_table_once),
		cmocka_unit_test(a_command_gives_its_cell_back),
		cmocka_unit_test(no_limit_of_seconds),
		cmocka_unit_test(absurd_cells_are_refused),
		cmocka_unit_test(the_limits_themselves_are_taken),
		cmocka_unit_test(a_usage_error_tells_where_help_is),
		cmocka_unit_test(a_silent_reader_says_why),
		cmocka_unit_test(files_lie_beside_the_config),
		cmocka_unit_test(the_plan_takes_what_the_user_requires),
		cmocka_unit_test(probabilities_that_are_none),
		cmocka_unit_test(names_of_files_are_not_empty),
	};

	program_invocation_name = name;
	return cmocka_run_group_tests(tests, hear, unhear);
}
