/* SPDX-License-Identifier: MIT */
/* What the values of a machine.conf say together: verdict, levels, and bounds by their counts. */
#define _GNU_SOURCE /* memfd_create() */
#include "patchcore/tests/conf_check.h"

/* --- What the values say together ------------------------------------------------- */

/* A config that is not usable may come from a run that toggled nothing; a usable one may not. */
static void test_toggles_behind(void **state)
{
	struct conf_lines lines = sample_lines;

	(void)state;
	conf_set(&lines, "level 2", "line_toggles", "0");
	conf_set(&lines, "level 2", "line_p", "1");
	expect_taken(&lines);
	conf_set(&lines, "level 2", "page_toggles", "0");
	conf_set(&lines, "level 2", "page_p", "1");
	expect_lines_refused(&lines, "[level 2] may be waited by, but no toggles are behind it");
	conf_set(&lines, "wait", "usable", "no");
	expect_taken(&lines);
}

static void test_verdict(void **state)
{
	static const char *const verdicts[] = { "fail", "inconclusive" };
	struct conf_lines lines = sample_lines;

	(void)state;
	/* A config that is taken out of use does not contradict itself. */
	conf_set(&lines, "wait", "usable", "no");
	expect_taken(&lines);
	for (size_t i = 0; i < LENGTH(verdicts); i++) {
		conf_set(&lines, "tmax", "verdict", verdicts[i]);
		conf_set(&lines, "wait", "usable", "yes");
		expect_lines_refused(&lines, "[wait] is usable, but the verdict is not pass");
		conf_set(&lines, "wait", "usable", "no");
		expect_taken(&lines);
	}
}

static void test_no_wait(void **state)
{
	static const char *const waits[][2] = { { "0", "0" }, { "0", "700" }, { "600", "0" } };

	(void)state;
	for (size_t i = 0; i < LENGTH(waits); i++) {
		struct conf_lines lines = sample_lines;

		conf_set(&lines, "level 1", "first", waits[i][0]);
		conf_set(&lines, "level 1", "second", waits[i][1]);
		expect_taken(&lines);
		conf_set(&lines, "level 1", "stretch", "0");
		expect_lines_refused(&lines, "[level 1] may be waited by, but does not wait");
		conf_set(&lines, "wait", "usable", "no");
		expect_taken(&lines);
	}
}

static void add_level(struct conf_lines *lines, const char *section,
		      const struct machine_conf_level *level, const char *first)
{
	conf_add_waits(lines, section, level);
	conf_add_number(lines, section, "ticks", level->ticks);
	conf_add_bound(lines, section, "line_", &level->line);
	conf_add_bound(lines, section, "page_", &level->page);
	conf_set(lines, section, "first", first);
}

/* In order of rising waits, where these are of one kind; of costs and bounds no order is asked. */
static void test_order(void **state)
{
	struct conf_lines lines = sample_lines;

	(void)state;
	conf_set(&lines, "level 2", "first", "600");
	conf_set(&lines, "level 2", "second", "700");
	expect_taken(&lines);
	conf_set(&lines, "level 2", "first", "599");
	expect_lines_refused(&lines, "[level 2] waits for less than one before it");
	conf_set(&lines, "level 2", "stretch", "8");
	expect_taken(&lines);
	/* Also with levels of another kind in between. */
	conf_set(&lines, "wait", "levels", "3");
	add_level(&lines, "level 3", &sample.level[1], "600");
	expect_taken(&lines);
	conf_set(&lines, "level 3", "first", "599");
	expect_lines_refused(&lines, "[level 3] waits for less than one before it");
	lines = sample_lines;
	conf_set(&lines, "level 2", "stretch", "4");
	conf_set(&lines, "level 2", "first", "10000");
	conf_set(&lines, "level 2", "second", "699");
	expect_lines_refused(&lines, "[level 2] waits for less than one before it");
	/* Also where nothing is to be waited by. */
	conf_set(&lines, "wait", "usable", "no");
	expect_lines_refused(&lines, "[level 2] waits for less than one before it");
	lines = sample_lines;
	conf_set(&lines, "level 2", "ticks", "1");
	conf_set(&lines, "level 2", "line_p", "0.5");
	conf_set(&lines, "level 2", "page_p", "0.5");
	expect_taken(&lines);
}

/* --- How many levels --------------------------------------------------------------- */

static void drop_level(struct conf_lines *lines, const char *section)
{
	for (size_t i = lines->count; i > 0; i--)
		if (strcmp(lines->line[i - 1].section, section) == 0)
			conf_drop(lines, i - 1);
}

static void test_level_count(void **state)
{
	struct conf_lines lines = sample_lines;
	struct machine_conf conf;

	(void)state;
	conf_set(&lines, "wait", "levels", "1");
	expect_lines_refused(&lines, "[level 2] is beyond [wait] levels");
	drop_level(&lines, "level 2");
	expect_taken(&lines);
	conf_set(&lines, "wait", "levels", "2");
	expect_lines_refused(&lines, "[level 2] first is missing");
	drop_level(&lines, "level 1");
	conf_set(&lines, "wait", "levels", "0");
	expect_lines_refused(&lines, "[wait] is usable, but there is no level");
	conf_set(&lines, "wait", "usable", "no");
	assert_int_equal(parse_lines(&lines, &conf), 0);
	assert_int_equal(conf.levels, 0);
	assert_true(machine_conf_p(machine_conf_surest(&conf, SITES_ALL), SITES_ALL) == 0);
}

/* They stand behind the others, and are none that a patcher waits by. */
static void test_long_levels(void **state)
{
	struct conf_lines lines = sample_lines;
	struct machine_conf conf;

	(void)state;
	conf_set(&lines, "wait", "levels", "1");
	conf_add_number(&lines, "wait", "long_levels", 1);
	assert_int_equal(parse_lines(&lines, &conf), 0);
	assert_int_equal(conf.levels, 1);
	assert_int_equal(conf.long_levels, 1);
	assert_int_equal(conf.level[1].waits.first, 900);
	assert_ptr_equal(machine_conf_surest(&conf, SITES_ALL), &conf.level[0]);
	conf_set(&lines, "level 2", "page_p", "1e-30");
	expect_lines_refused(&lines, "[level 2] page_p is lower than");
	conf_set(&lines, "wait", "long_levels", "2");
	expect_lines_refused(&lines, "[level 3] first is missing");
	conf_set(&lines, "wait", "long_levels", "32");
	expect_lines_refused(&lines, "[wait] has more than 32 levels in all");
}

/* Without it the window rests on no run. */
static void test_window_runs(void **state)
{
	struct conf_lines lines = sample_lines;
	struct machine_conf conf;

	(void)state;
	assert_int_equal(parse_lines(&lines, &conf), 0);
	assert_int_equal(conf.window_runs, 0);
	conf_add(&lines, "window", "runs", "31");
	assert_int_equal(parse_lines(&lines, &conf), 0);
	assert_int_equal(conf.window_runs, 31);
	conf_set(&lines, "window", "runs", "-1");
	expect_lines_refused(&lines, "[window] runs has no valid value");
}

/* Behind all others, in sections of another name: a library that knows no rest skips them. */
static void test_rested_levels(void **state)
{
	struct machine_conf conf = sample, back;
	struct conf_lines lines;

	(void)state;
	conf.rested = 1;
	conf.levels--;
	conf.level[conf.levels].rest = 20000;
	lines = conf_lines(&conf);
	assert_int_equal(parse_lines(&lines, &back), 0);
	assert_true(conf_same(&back, &conf));
	conf_set(&lines, "rested 2", "page_p", "1e-30");
	expect_lines_refused(&lines, "[level 2] page_p is lower than");
	conf_set(&lines, "rested 2", "page_p", "1");
	conf_add_number(&lines, "level 1", "rest", 20000);
	expect_lines_refused(&lines, "[level 1] has a rest where it is no rested level");
	lines = conf_lines(&conf);
	conf_set(&lines, "wait", "rested_levels", "2");
	expect_lines_refused(&lines, "[level 3] first is missing");
	conf_set(&lines, "wait", "rested_levels", "0");
	expect_lines_refused(&lines, "[level 2] is beyond [wait] levels");
	/* A rest that is not there. */
	conf.level[conf.levels].rest = 0;
	lines = conf_lines(&conf);
	expect_lines_refused(&lines, "[level 2] has a rest where it is no rested level");
}

/* A file that does not say is of a calibration. */
static void test_source(void **state)
{
	struct conf_lines lines = sample_lines;
	struct machine_conf conf;

	(void)state;
	assert_int_equal(parse_lines(&lines, &conf), 0);
	assert_false(conf.fleet);
	conf_add(&lines, "tmax", "source", "fleet");
	assert_int_equal(parse_lines(&lines, &conf), 0);
	assert_true(conf.fleet);
	conf_set(&lines, "tmax", "source", "calibration");
	assert_int_equal(parse_lines(&lines, &conf), 0);
	assert_false(conf.fleet);
	conf_set(&lines, "tmax", "source", "hearsay");
	expect_lines_refused(&lines, "[tmax] source has no valid value");
}

static void test_level_names(void **state)
{
	static const char *const bad[] = { "level 0", "level 33", "level 01", "level -1", "level x",
					   "level ",  "level 1x", "level  1", "level 1 2" };

	(void)state;
	for (size_t i = 0; i < LENGTH(bad); i++) {
		struct conf_lines lines = sample_lines;

		conf_add(&lines, bad[i], "first", "600");
		expect_lines_refused(&lines, "is none of 1 to 32");
	}
}

static void test_many_levels(void **state)
{
	struct machine_conf many = sample, conf;
	struct conf_lines lines;

	(void)state;
	while (many.levels < MACHINE_CONF_LEVELS)
		conf_add_level(&many, 1000 * many.levels, 1e-9 / many.levels, 1e-8)->ticks =
			5000 - many.levels;
	many.level[20].page.upper_p = many.level[20].line.upper_p = 1e-13;
	lines = conf_lines(&many);
	assert_int_equal(parse_lines(&lines, &conf), 0);
	assert_true(conf_same(&conf, &many));
	assert_ptr_equal(machine_conf_surest(&conf, SITES_ALL), &conf.level[20]);
	conf_set(&lines, "level 32", "page_p", "1e-300");
	expect_lines_refused(&lines, "[level 32] page_p is lower than");
}

/* --- Bounds ------------------------------------------------------------------------- */

/* The bound, and the next number below it that is too low. */
struct bound {
	const char *toggles, *tears, *confidence, *good, *bad;
};

/* By Clopper and Pearson (R: binom.test, or 1 - (1 - c) ^ (1 / n)), and by tears / toggles. */
static const struct bound bounds[] = {
	{ "1", "0", "0.95", "0.95", "0.9499" },
	{ "1", "0", "0.9", "0.9", "0.8999" },
	{ "2", "0", "0.95", "0.776393202251", "0.7763" },
	{ "10", "0", "0.95", "0.258865551", "0.2588" },
	{ "10", "0", "0.9", "0.205671766", "0.2056" },
	{ "1000000", "0", "0.95", "2.99572779e-06", "2.9957e-06" },
	{ "1000000", "0", "0.99", "4.60515959e-06", "4.605e-06" },
	{ "1000000", "0", "0.999999999", "2.0723052e-05", "2.072e-05" },
	{ "18446744073709551615", "0", "0.95", "1.6239898e-19", "1.6239e-19" },
	{ "0", "0", "0.95", "1", "0.999999" },
	{ "1000", "500", "0.95", "0.5", "0.4999999" },
	{ "1000", "999", "0.95", "0.999", "0.9989999" },
	{ "1000", "1000", "0.95", "1", "0.9999999" },
	{ "1000", "1001", "0.95", "1", "0.9999999" },
	{ "0", "1", "0.95", "1", "0.9999999" },
	{ "100000000", "1", "0.95", "2.9957323e-08", "2.9957e-08" },
	{ "18446744073709551615", "18446744073709551615", "0.95", "1", "0.5" },
};

static void expect_bound(const struct conf_lines *good, const struct bound *b, const char *section,
			 const char *const names[3])
{
	struct conf_lines lines = *good;
	char about[64];

	snprintf(about, sizeof(about), "[%s] %s is lower than", section, names[2]);
	conf_set(&lines, "wait", "usable", strcmp(b->toggles, "0") ? "yes" : "no");
	conf_set(&lines, "wait", "confidence", b->confidence);
	conf_set(&lines, section, names[0], b->toggles);
	conf_set(&lines, section, names[1], b->tears);
	conf_set(&lines, section, names[2], b->good);
	expect_taken(&lines);
	conf_set(&lines, section, names[2], b->bad);
	expect_lines_refused(&lines, about);
	conf_set(&lines, section, names[2], "1e-300");
	expect_lines_refused(&lines, about);
	/* Also where nothing is to be waited by. */
	conf_set(&lines, "wait", "usable", "no");
	expect_lines_refused(&lines, about);
}

static void test_bounds(void **state)
{
	static const char *const line[] = { "line_toggles", "line_tears", "line_p" };
	static const char *const page[] = { "page_toggles", "page_tears", "page_p" };

	(void)state;
	for (size_t i = 0; i < LENGTH(bounds); i++) {
		expect_bound(&sample_lines, &bounds[i], "level 1", line);
		expect_bound(&sample_lines, &bounds[i], "level 1", page);
		expect_bound(&sample_lines, &bounds[i], "level 2", line);
		expect_bound(&sample_lines, &bounds[i], "level 2", page);
	}
}

static void test_window_bounds(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(bounds); i++) {
		const struct bound *b = &bounds[i];
		struct conf_lines lines = sample_lines;

		if (strcmp(b->tears, "0") != 0)
			continue;
		conf_set(&lines, "window", "toggles", b->toggles);
		conf_set(&lines, "window", "confidence", b->confidence);
		conf_set(&lines, "window", "upper_p", b->good);
		expect_taken(&lines);
		conf_set(&lines, "window", "upper_p", b->bad);
		expect_lines_refused(&lines, "[window] upper_p is lower than");
		conf_set(&lines, "window", "bytes", "8");
		expect_lines_refused(&lines, "[window] upper_p is lower than");
	}
}

/* --- Configs of before --------------------------------------------------------------- */

static size_t read_result(const char *name, char *text, size_t size)
{
	const char *srcdir = getenv("srcdir");
	char path[256];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/results/runs/%s", srcdir ? srcdir : ".", name);
	f = fopen(path, "r");
	if (f) {
		n = fread(text, 1, size - 1, f);
		fclose(f);
	}
	text[n] = '\0';
	return n;
}

/* A config that calibrate has written does not contradict itself. */
static void test_results(void **state)
{
	static const struct {
		const char *name;
		bool usable;
	} results[] = {
		{ "amd-25-17-1-kvm-gaps/machine.conf", false },
		{ "amd-25-17-1-kvm-ladder/machine.conf", true },
		{ "amd-26-2-1-kvm-calibrate/machine.conf", true },
		{ "intel-6-167-1-kvm-ladder/machine.conf", true },
	};
	static char text[MACHINE_CONF_BYTES];
	unsigned found = 0;

	(void)state;
	for (size_t i = 0; i < LENGTH(results); i++) {
		size_t size = read_result(results[i].name, text, sizeof(text));
		char why[160];
		struct machine_conf conf;

		if (!size)
			continue;
		found++;
		if (parse(text, size, &conf, why) != 0)
			fail_msg("%s: %s", results[i].name, why);
		assert_int_equal(conf.usable, results[i].usable);
	}
	if (!found)
		skip();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_toggles_behind), cmocka_unit_test(test_verdict),
		cmocka_unit_test(test_no_wait),	       cmocka_unit_test(test_order),
		cmocka_unit_test(test_level_count),    cmocka_unit_test(test_window_runs),
		cmocka_unit_test(test_source),	       cmocka_unit_test(test_long_levels),
		cmocka_unit_test(test_level_names),    cmocka_unit_test(test_rested_levels),
		cmocka_unit_test(test_many_levels),    cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_window_bounds),  cmocka_unit_test(test_results),
	};

	return cmocka_run_group_tests(tests, make_sample, NULL);
}
