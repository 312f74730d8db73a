/* SPDX-License-Identifier: MIT */
/* The figures of benchmarks: their data, and what gnuplot makes of them. */
#define _GNU_SOURCE /* asprintf() */
#include <errno.h>
#include <fcntl.h>
#include <math.h>

#include "bench/record/bench_record.h"
#include "bench/tests/bench_sample.h"
#include "results/tests/svg_check.h"

struct place {
	char path[64];
	char error[4200];
};

static int enter_place(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	strcpy(place->path, "/tmp/test_bench_figure.XXXXXX");
	*state = place;
	return enter_folder(place->path);
}

static int leave_place(void **state)
{
	struct place *place = *state;
	int rc = leave_folder(place->path);

	free(place);
	return rc;
}

static int write_it(struct place *place, const struct bench_result *r)
{
	struct bench_figure figure;
	int rc = bench_figure_draw(r, &figure, place->error, sizeof(place->error));

	if (!rc)
		rc = picture_make(&figure.picture, "out", place->error, sizeof(place->error));
	free(figure.data);
	return rc;
}

/* --- Words ---------------------------------------------------------------------------- */

static void params_are_told_in_words(void **state)
{
	static const char *const without[] = { "executors", NULL };
	struct bench_row row = { 0 };
	char buf[WORDS_ROOM], small[8];

	(void)state;
	bench_row_name(&row, "call", "on", "ticks");
	assert_string_equal(words_of_row(&row, NULL, buf, sizeof(buf)), "call");
	bench_row_param_text(&row, "split", "1|4");
	bench_row_param_text(&row, "policy", "wait");
	bench_row_param(&row, "executors", 1);
	bench_row_param(&row, "sites", 20000);
	bench_row_param(&row, "rate", 1e6);
	bench_row_param(&row, "batch", 10);
	bench_row_param_text(&row, "body", "work");
	assert_string_equal(words_of_row(&row, NULL, buf, sizeof(buf)),
			    "call: split 1|4, wait, 1 executor, 20000 sites, 1000000 toggles/s, "
			    "batch of 10, body work");
	assert_string_equal(words_of_params(&row, without, small, sizeof(small)), "split 1");
	row.params = 3;
	assert_string_equal(words_of_params(&row, without, buf, sizeof(buf)), "split 1|4, wait");
	strcpy(row.param[0].text, "0");
	row.param[2].number = 0;
	assert_string_equal(words_of_params(&row, NULL, buf, sizeof(buf)),
			    "inside 8 bytes, wait, no executor");
}

static void words_are_plain(void **state)
{
	char buf[64], two[3];

	(void)state;
	assert_string_equal(words_plain("a\"b'c`d\\e#f{g}<h>\n\t$i@j_\x80", buf, sizeof(buf)),
			    "a?b?c?d?e?f?g??h????i?j_?");
	assert_string_equal(words_plain("abc", two, sizeof(two)), "ab");
}

/* As long as a journal may make them: nothing is written past the end. */
static void long_params_are_cut(void **state)
{
	struct bench_row row = { 0 };
	char buf[WORDS_ROOM], text[BENCH_TEXT];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	bench_row_name(&row, text, "on", "ticks");
	for (unsigned i = 0; i < BENCH_PARAMS; i++)
		bench_row_param_text(&row, "abcdefghijklmnopqrstuvw", text);
	words_of_row(&row, NULL, buf, sizeof(buf));
	assert_int_equal(strlen(buf), sizeof(buf) - 1);
}

/* --- Data ------------------------------------------------------------------------------- */

static void rows_of_a_case_share_a_line(void **state)
{
	struct place *place = *state;
	struct bench_result r = sample_result("toggle");

	sample_pair(&r, "call", 2, false, "1|4", NULL, 1);
	sample_pair(&r, "call", 1, false, "2|3", NULL, 1);
	sample_skip(&r, "uprobe", "no");
	sample_row(&r, "flag", "on", "ticks", 100)->peer = true;
	sample_row(&r, "pc_init", "start", "us", 800);
	assert_int_equal(write_it(place, &r), 0);
	expect_in("out.dat", "\nL 0 0 1 \"call\"\nL 0 1 0 \"split 1|4, 1 executor\"\n"
			     "D 0 0.750 0 0 300 291 309 270 600 6600 150\n"
			     "D 0 1.250 1 0 285 276.45 293.55 256.5 570 6420 150\n"
			     "L 0 2 0 \"split 2|3, 1 executor\"\n");
	expect_in("out.dat", "\nL 0 3 0 \"flag\"\nD 0 3.000 0 1 100 97 103 90 200 4200 0\n"
			     "L 1 0 0 \"pc_init\"\nD 1 0.000 2 0 800");
	assert_false(file_has("out.dat", "uprobe"));
	expect_in("arguments", "\n./out.dat\n4 1\n\"ticks\" \"us\"\n\"on\" \"off\" \"start\"\n");
	expect_in("arguments", "bench-rows.gp\n");
	bench_result_free(&r);
}

static void what_is_not_known_has_a_stand_in(void **state)
{
	struct place *place = *state;
	struct bench_result r = sample_result("latent");
	struct bench_row *row = sample_row(&r, "nop", "pass", "ticks", 5);

	row->value.low = row->value.high = row->p5 = row->p99 = row->most = NAN;
	strcpy(row->against, "empty");
	assert_int_equal(write_it(place, &r), 0);
	expect_in("out.dat", "\nD 0 0.000 0 0 5 5 5 5 5 5 0\n");
	bench_result_free(&r);
}

static void throughput_is_drawn_where_it_got(void **state)
{
	struct place *place = *state;
	struct bench_result r = sample_result("throughput");

	sample_flow(&r, "straddler", NULL, "wait", 1, 1, 1e5);
	assert_int_equal(write_it(place, &r), 0);
	expect_in("out.dat", "\"calls, between a call and none\"\nC 0 0 \"straddler: wait\"\n\n"
			     "V 0 0 0 1 0.97 1.03\nV 0 0 1000 ");
	/* A thousandth of what was asked. */
	expect_in("out.dat", "\nV 0 0 10000 0.769230769 0.746153846 0.792307692\n");
	expect_in("out.dat", "\nV 1 0 10000 1.27 1.27 1.27\n");
	assert_false(file_has("out.dat", "by executors"));
	expect_in("arguments", "\n2\n1\n");
	bench_result_free(&r);
}

static void executors_have_panels_where_there_are_several(void **state)
{
	struct place *place = *state;
	struct bench_result r = sample_throughput();
	struct bench_row *row = NULL;

	for (unsigned i = 0; i < r.rows && !row; i++)
		if (bench_row_extra_of(&r.row[i], "balance") >= 1)
			row = &r.row[i];
	assert_non_null(row);
	for (unsigned i = 0; i < row->extras; i++)
		if (strcmp(row->extra[i].key, "balance") == 0)
			row->extra[i].number = INFINITY;
	assert_int_equal(write_it(place, &r), 0);
	expect_in("arguments", "\n6\n10\n");
	expect_in("out.dat", "\"call: inside 8 bytes, 4 executors\"\n\nV 4 9 0 2400 2328 2472\n");
	/* The sixth curve, and the first of a peer. */
	expect_in("out.dat", "\nC 5 1 \"pointer");
	/* One state was never executed. */
	expect_in("out.dat", " 1000000 1000000 1000000\n");
	assert_false(file_has("out.dat", "inf"));
	bench_result_free(&r);
}

static void growth_is_drawn_in_multiples(void **state)
{
	struct place *place = *state;
	struct bench_result r = sample_growth();

	assert_int_equal(write_it(place, &r), 0);
	/* Up to where it was cut. */
	expect_in("out.dat",
		  "\nC 0 0 \"forget: sites\"\n\nV 0 0 1 1 0.97 1.03\nV 0 0 30 18.0588235 ");
	expect_in("out.dat", "\nV 0 0 400 588.647059 ");
	expect_in("out.dat", "\nC 1 0 \"alias: aliases\"\n\nV 0 1 1 1 0.97 1.03\nV 0 1 30 1 ");
	assert_false(file_has("out.dat", "slope"));
	expect_in("arguments", "\n1\n2\n");
	bench_result_free(&r);
}

/* --- When it does not work ------------------------------------------------------------------ */

static void nothing_measured_is_nothing_drawn(void **state)
{
	struct place *place = *state;
	struct bench_result r = sample_result("stall"), unknown = sample_result("moon");

	sample_skip(&r, "call", "no");
	assert_int_equal(write_it(place, &r), -ENODATA);
	assert_string_equal(place->error, "nothing was measured that could be drawn");
	assert_false(exists("out.dat"));
	sample_row(&unknown, "call", "on", "ticks", 1);
	assert_int_equal(write_it(place, &unknown), -EINVAL);
	assert_string_equal(place->error, "no figure for the benchmark moon");
	bench_result_free(&r);
	bench_result_free(&unknown);
}

static void data_are_left_without_gnuplot(void **state)
{
	struct place *place = *state;
	struct bench_result r = sample_stall();

	setenv("TMAX_GNUPLOT", "/nonexistent/gnuplot", 1);
	assert_int_equal(write_it(place, &r), -ENOENT);
	expect_in("out.dat", "stop-the-world");
	assert_false(exists("out.svg"));
	bench_result_free(&r);
}

/* --- The real gnuplot ------------------------------------------------------------------------ */

/* What it says on the way, to "said". */
static int draw_aside(struct place *place, const struct bench_result *r)
{
	int said = open("said", O_WRONLY | O_CREAT | O_TRUNC, 0644), old = dup(2), rc;

	fflush(stderr);
	dup2(said, 2);
	rc = write_it(place, r);
	dup2(old, 2);
	close(old);
	close(said);
	return rc;
}

static void expect_drawn(struct place *place, const struct bench_result *r)
{
	char *text;
	int rc = draw_aside(place, r);

	text = read_file("said");
	if (rc || *text)
		fail_msg("%s: %d %s, and gnuplot said: %s", r->benchmark, rc, place->error, text);
	free(text);
	expect_pictures("out.svg", "out.png");
	if (system("command -v xmllint >/dev/null") == 0)
		assert_int_equal(system("xmllint --noout out.svg"), 0);
}

static void all_benchmarks_are_drawn(void **state)
{
	static const char *const words[SAMPLE_BENCHMARKS] = {
		"split 3|2, wait, 1 executor", "flag (peer)", "split 1|4",	"stop-the-world",
		"baseline, in turn",	       "site entry",  "alias: aliases",
	};
	struct place *place = *state;

	use_gnuplot();
	for (unsigned i = 0; i < SAMPLE_BENCHMARKS; i++) {
		struct bench_result r = sample_bench(i);

		expect_drawn(place, &r);
		expect_in("out.svg", words[i]);
		bench_result_free(&r);
	}
}

/* Every benchmark with its first measured row alone. */
static void one_row_is_enough(void **state)
{
	struct place *place = *state;

	use_gnuplot();
	for (unsigned i = 0; i < SAMPLE_BENCHMARKS; i++) {
		struct bench_result r = sample_bench(i);
		unsigned all = r.rows;

		r.rows = 1;
		expect_drawn(place, &r);
		r.rows = all;
		bench_result_free(&r);
	}
}

static void make_even(struct bench_row *row, double value)
{
	row->value = (struct bench_value){ value, value, value };
	row->least = row->p5 = row->p25 = row->p75 = row->p95 = row->p99 = row->most = value;
	if (!isnan(row->ratio.median))
		row->ratio = (struct bench_value){ 1, 1, 1 };
}

/* Nothing of any spread, and nothing at all. */
static void flat_figures_are_drawn(void **state)
{
	struct place *place = *state;

	use_gnuplot();
	for (unsigned n = 0; n < SAMPLE_BENCHMARKS; n++) {
		struct bench_result r = sample_bench(n);
		/* There are no multiples of 0. */
		bool zero = n % 2 && benchmarks[n]->drawing != DRAWN_AS_GROWTH;

		for (unsigned i = 0; i < r.rows; i++)
			if (row_measured(&r.row[i]))
				make_even(&r.row[i], zero ? 0 : 1e9);
		expect_drawn(place, &r);
		bench_result_free(&r);
	}
}

/* Rows that a figure has no place for, but that are there: none of its params is told. */
static void rows_without_params_are_drawn_or_refused(void **state)
{
	struct place *place = *state;

	use_gnuplot();
	for (unsigned i = 0; i < SAMPLE_BENCHMARKS; i++) {
		struct bench_result r = sample_bench(i);
		int rc;

		for (unsigned k = 0; k < r.rows; k++)
			r.row[k].params = 0;
		rc = draw_aside(place, &r);
		assert_true(rc == 0 || rc == -ENODATA);
		assert_false(file_has("said", "warning") || file_has("said", "gnuplot"));
		bench_result_free(&r);
	}
}

/* gnuplot runs what stands in backquotes, and takes other marks for markup. */
static void names_are_no_commands(void **state)
{
	static const char evil[] = "`touch run`\" {/:Bold x} @A '\\n' #<b>";
	struct place *place = *state;

	use_gnuplot();
	for (unsigned i = 0; i < SAMPLE_BENCHMARKS; i++) {
		struct bench_result r = sample_bench(i);

		for (unsigned k = 0; k < r.rows; k += 2) {
			snprintf(r.row[k].name, sizeof(r.row[k].name), "%s", evil);
			snprintf(r.row[k].unit, sizeof(r.row[k].unit), "`touch run`\"'");
			if (i != 2)
				snprintf(r.row[k].measure, sizeof(r.row[k].measure),
					 "\"'`touch run`");
		}
		expect_drawn(place, &r);
		bench_result_free(&r);
	}
	assert_false(exists("run"));
	expect_in("out.svg", "?touch run??");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(params_are_told_in_words),
		cmocka_unit_test(words_are_plain),
		cmocka_unit_test(long_params_are_cut),
		IN_PLACE(rows_of_a_case_share_a_line),
		IN_PLACE(what_is_not_known_has_a_stand_in),
		IN_PLACE(throughput_is_drawn_where_it_got),
		IN_PLACE(executors_have_panels_where_there_are_several),
		IN_PLACE(growth_is_drawn_in_multiples),
		IN_PLACE(nothing_measured_is_nothing_drawn),
		IN_PLACE(data_are_left_without_gnuplot),
		IN_PLACE(all_benchmarks_are_drawn),
		IN_PLACE(one_row_is_enough),
		IN_PLACE(flat_figures_are_drawn),
		IN_PLACE(rows_without_params_are_drawn_or_refused),
		IN_PLACE(names_are_no_commands),
	};

	return cmocka_run_group_tests(tests, find_things, NULL);
}
