/* SPDX-License-Identifier: MIT */
/* What the report is made of: its HTML, its rates. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "calibrate/tests/report_sample.h"
#include "commands/report/report.h"
#include "results/figures/html.h"

/* --- HTML -------------------------------------------------------------------------- */

static char *written; /* what a function wrote to a stream */
static size_t length;

static FILE *write_to(void)
{
	free(written);
	written = NULL;
	return open_memstream(&written, &length);
}

static void escapes_all_markup(void **state)
{
	FILE *out = write_to();

	(void)state;
	html_text(out, "<a href=\"x\">&'\t\x7f\xc3\xa9");
	fclose(out);
	assert_string_equal(written, "&lt;a href=&quot;x&quot;&gt;&amp;&#39;????");
}

static void escapes_what_a_format_brings(void **state)
{
	FILE *out = write_to();

	(void)state;
	html_cell(out, "%s", "<td>");
	html_cells(out, "n", "%s", "&");
	html_paragraph(out, "%d %s", 7, "'");
	fclose(out);
	assert_string_equal(written,
			    "<td>&lt;td&gt;</td><td class=\"n\">&amp;</td><p>7 &#39;</p>\n");
}

/* A text with a tab in it may shift its row's cells, and does no other harm. */
static void cells_of_a_row_are_escaped(void **state)
{
	FILE *out = write_to();

	(void)state;
	html_cells(out, "tnt", "%s\t%d", "<b>", 7);
	fclose(out);
	assert_string_equal(written, "<td>&lt;b&gt;</td><td class=\"n\">7</td>"
				     "<td></td>");
	out = write_to();
	html_cells(out, "tt", "%s\t%s", "<\t>\t", "'");
	fclose(out);
	assert_string_equal(written, "<td>&lt;</td><td>&gt;</td>");
}

static void folds_are_escaped(void **state)
{
	FILE *out = write_to();

	(void)state;
	html_fold(out, "%s", "<e>");
	fclose(out);
	assert_string_equal(written, "<details><summary>&lt;e&gt;</summary>\n");
}

static void cuts_long_texts(void **state)
{
	char text[3000];
	FILE *out = write_to();

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	html_format(out, "%s", text);
	fclose(out);
	assert_int_equal(length, 1023);
}

static void numbers_are_for_people(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{ 0, "0" },	      { 4700, "4700" },		{ 99999, "99999" },
		{ 100000, "1e5" },    { 1620000, "1.62e6" },	{ 1.6e6, "1.6e6" },
		{ 3.1e-7, "3.1e-7" }, { 2e-4, "2e-4" },		{ 0.25, "0.25" },
		{ -3, "-3" },	      { 1.25e-12, "1.25e-12" }, { NAN, "?" },
		{ 10.04, "10" },      { INFINITY, "inf" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(NUMBER(cases[i].value), cases[i].text);
}

static void ticks_are_times_for_people(void **state)
{
	(void)state;
	assert_string_equal(TICKS(200, 2600000), "76.9 ns");
	assert_string_equal(TICKS(2600, 2600000), "1 us");
	assert_string_equal(TICKS(20000, 2600000), "7.69 us");
	assert_string_equal(TICKS(0, 2600000), "0 ns");
	assert_string_equal(TICKS(20000, 0), "20000 ticks");
}

static int svg_of(const char *text, const char *prefix)
{
	char path[] = "/tmp/test_report.XXXXXX";
	int fd = mkstemp(path), rc;
	FILE *out;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	out = write_to();
	rc = html_svg(out, path, prefix);
	fclose(out);
	unlink(path);
	return rc;
}

static void only_the_root_element_is_inlined(void **state)
{
	(void)state;
	assert_int_equal(
		svg_of("<?xml version='1.0'?>\n<!DOCTYPE svg>\n"
		       "<svg a='b'><title>DATA using 1</title><defs><p id='x' fill='#x'/></defs>"
		       "<use xlink:href='#x'/><g clip-path=\"url(#x)\" id=\"y\"/></svg>\n\n",
		       "one-"),
		0);
	assert_string_equal(written, "<svg a='b'><defs><p id='one-x' fill='#x'/></defs>"
				     "<use xlink:href='#one-x'/><g clip-path=\"url(#one-x)\" "
				     "id=\"one-y\"/></svg>");
}

/* gnuplot's script for the text of a point would not run on the page. */
static void a_point_has_its_text_as_a_title(void **state)
{
	(void)state;
	assert_int_equal(
		svg_of("<svg><g onmousemove=\"gnuplot_svg.showHypertext(evt,'1 of 2')\" "
		       "onmouseout=\"gnuplot_svg.hideHypertext()\"><title> </title><p/></g>"
		       "<title>DATA</title></svg>",
		       "a-"),
		0);
	assert_string_equal(written, "<svg><g><title>1 of 2</title><p/></g></svg>");
}

static void what_is_no_svg_is_refused(void **state)
{
	(void)state;
	assert_int_equal(svg_of("<svg>cut", "a"), -EINVAL);
	assert_int_equal(length, 0);
	assert_int_equal(svg_of("text", "a"), -EINVAL);
	assert_int_equal(svg_of("", "a"), -EINVAL);
	assert_int_equal(html_svg(stdout, "/nonexistent", "a"), -ENOENT);
}

/* --- Rates -------------------------------------------------------------------------- */

static struct journal_data of(struct cell_record *records, size_t count)
{
	return (struct journal_data){ .records = records, .count = count };
}

static const struct tally_row *find_tally_row(const struct tally *points, bool constant,
					      uint64_t wait)
{
	const uint64_t key[TALLY_KEYS] = { CLAIM_LINE, constant, wait };
	const struct tally_row *row = tally_find(points, key);

	assert_non_null(row);
	return row;
}

static void all_tears_of_a_wait_add_up(void **state)
{
	struct cell_record r[3] = { sample_cell("a", 0), sample_cell("a", 1), sample_cell("a", 2) };
	struct journal_data data = of(r, 3);
	struct tally points = { 0 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		r[i].result.tears[TEAR_OLD_FRONT] = 5;
		r[i].result.tears[TEAR_NEW_FRONT] = 2;
	}
	r[0].result.tears[TEAR_OTHER] = 1;
	r[2].cell.waits.stretch = 4;
	rate_points(&points, &data);
	assert_int_equal(points.count, 2);
	assert_int_equal(find_tally_row(&points, true, 3000)->events, 15);
	assert_int_equal(find_tally_row(&points, true, 3000)->trials, 2000000);
	assert_int_equal(find_tally_row(&points, false, 3000)->events, 7);
	tally_free(&points);
}

static void other_protocols_and_oracles_are_no_rate(void **state)
{
	struct cell_record r[3] = { sample_cell("a", 0), sample_cell("a", 1), sample_cell("a", 2) };
	struct journal_data data = of(r, 3);
	struct tally points = { 0 };

	(void)state;
	r[0].cell.protocol = PROTOCOL_MEMBARRIER;
	r[1].cell.oracle = ORACLE_CRASH;
	r[2].result.toggles = 0;
	rate_points(&points, &data);
	assert_int_equal(points.count, 0);
}

static void a_hung_cell_keeps_its_tears_only(void **state)
{
	struct cell_record r[2] = { sample_cell("a", 0), sample_cell("a", 1) };
	struct journal_data data = of(r, 2);
	struct tally points = { 0 };

	(void)state;
	r[1].result.outcome = OUTCOME_HANG;
	r[1].result.tears[TEAR_OLD_FRONT] = 4;
	rate_points(&points, &data);
	assert_int_equal(find_tally_row(&points, true, 3000)->events, 4);
	assert_int_equal(find_tally_row(&points, true, 3000)->trials, 1000000);
	tally_free(&points);
}

static void sums_do_not_wrap(void **state)
{
	struct cell_record r[2] = { sample_cell("a", 0), sample_cell("a", 1) };
	struct journal_data data = of(r, 2);
	struct tally points = { 0 };

	(void)state;
	r[0].result.tears[TEAR_OLD_FRONT] = r[1].result.tears[TEAR_OLD_FRONT] = UINT64_MAX - 1;
	rate_points(&points, &data);
	assert_true(find_tally_row(&points, true, 3000)->events == UINT64_MAX);
	tally_free(&points);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escapes_all_markup),
		cmocka_unit_test(escapes_what_a_format_brings),
		cmocka_unit_test(cells_of_a_row_are_escaped),
		cmocka_unit_test(folds_are_escaped),
		cmocka_unit_test(cuts_long_texts),
		cmocka_unit_test(numbers_are_for_people),
		cmocka_unit_test(ticks_are_times_for_people),
		cmocka_unit_test(only_the_root_element_is_inlined),
		cmocka_unit_test(a_point_has_its_text_as_a_title),
		cmocka_unit_test(what_is_no_svg_is_refused),
		cmocka_unit_test(all_tears_of_a_wait_add_up),
		cmocka_unit_test(other_protocols_and_oracles_are_no_rate),
		cmocka_unit_test(a_hung_cell_keeps_its_tears_only),
		cmocka_unit_test(sums_do_not_wrap),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(written);
	return failed;
}
