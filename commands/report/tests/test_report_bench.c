/* SPDX-License-Identifier: MIT */
/* Benchmarks on the page, without gnuplot. */
#include <math.h>

#include "bench/record/bench_record.h"
#include "bench/tests/bench_sample.h"
#include "calibrate/tests/report_place.h"

/* Takes over result. */
static int bench_line(struct journal *journal, struct bench_result *result)
{
	int rc = sample_line(journal, "bench", bench_to_json(result));

	bench_result_free(result);
	return rc;
}

static int write_benchmarks(struct journal *journal)
{
	int rc = sample_run(journal);

	for (unsigned i = 0; i < SAMPLE_BENCHMARKS && !rc; i++) {
		struct bench_result result = sample_bench(i);

		rc = bench_line(journal, &result);
	}
	return rc;
}

/* --- Tests --------------------------------------------------------------------------------- */

static void benchmarks_alone_make_a_page(void **state)
{
	static const char *const texts[] = {
		"<title>Patching on Sample", "0 cells and 7 benchmarks of 0 journals",
		"so there is no T_max here", "<h2 id=\"machine\">",
		"<h2 id=\"bench-toggle\">",  "<h2 id=\"bench-throughput\">",
		"<h2 id=\"bench-latent\">",  "<h2 id=\"bench-stall\">",
		"<h2 id=\"bench-invoke\">",  "<a href=\"#bench-invoke\">",
		"<h2 id=\"bench-probes\">",  "<h2 id=\"bench-growth\">",
	};
	struct place *place = *state;
	char *page = page_with(place, write_benchmarks);

	assert_has_all(page, texts, sizeof(texts) / sizeof(texts[0]));
	assert_has_not(page, "<h2 id=\"verdict\">");
	assert_has_not(page, "href=\"#cells\"");
	assert_int_equal(place->report.undrawn, 7);
	free(page);
}

static void rows_and_what_was_skipped_are_listed(void **state)
{
	char *page = page_with(*state, write_benchmarks);

	assert_has(
		page,
		"<td>call: split 1|4, 1 executor</td><td>on, us</td>"
		"<td class=\"n\">0.0635 [0.0616, 0.0654]</td><td class=\"n\">0.0571 to 0.127</td>"
		"<td class=\"n\">1.92</td><td class=\"n\">17 of 4000</td>"
		"<td>1.1 [1.07, 1.13] x floor</td><td></td>");
	assert_has(page, "1 [0.97, 1.03] x floor: no difference");
	assert_has(page, "balance 1.07");
	assert_has(page, "<tr class=\"absent\"><td>ptrace</td><td>on</td>"
			 "<td class=\"w\" colspan=\"6\">ptrace: Operation not permitted</td>");
	assert_has(page, "meanwhile: involuntary switches 12, interrupts 900, steal 0.2 %, "
			 "runnable at the end 1.25");
	assert_has(page, "policy wait: 1.54 us and 769 ns, or 4 times");
	assert_has(page, "a line takes 53.8 ns from one to the other (46.2 ns to 150 ns)");
	free(page);
}

static int write_twice(struct journal *journal)
{
	struct bench_result old = sample_result("invoke"), fresh = sample_result("invoke");

	sample_row(&old, "call", "call", "ticks", 77);
	sample_row(&fresh, "call", "call", "ticks", 55);
	snprintf(fresh.waits_from, sizeof(fresh.waits_from), "assumed");
	if (bench_line(journal, &old))
		return -1;
	return bench_line(journal, &fresh);
}

static void the_last_line_wins(void **state)
{
	struct place *place = *state;
	char *page;

	fill(place, sample_run);
	page = page_with(place, write_twice);
	assert_has(page, "This is the last of 2 results of this benchmark.");
	assert_has(page, "<td class=\"n\">21.2 [20.5, 21.8]</td>");
	assert_has_not(page, "<td class=\"n\">29.6 [");
	assert_has(page, "These waits are assumed");
	assert_has_not(page, "<h2 id=\"bench-toggle\">");
	free(page);
}

static void a_calibration_has_both(void **state)
{
	struct place *place = *state;
	char *page = page_with(place, sample_calibration);

	assert_has_not(page, "id=\"bench-");
	free(page);
	page = page_with(place, write_benchmarks);
	assert_has(page, "<title>T_max of Sample");
	assert_has(page, "and 7 benchmarks of 0 journals");
	assert_has(page, "<h2 id=\"verdict\">");
	assert_has(page, "<h2 id=\"bench-toggle\">");
	assert_has(page, "<h2 id=\"limits\">");
	free(page);
}

/* As good as a line may be that another program wrote. */
static int write_hostile(struct journal *journal)
{
	struct bench_result r = sample_result("toggle");
	struct bench_row *row = sample_row(&r, "<b>&", "<i>", "\"t'", 5);

	bench_row_param_text(row, "<k>", "<v>");
	bench_row_extra(row, "<e>", 1);
	sample_skip(&r, "<s>", "<u>why</u>");
	snprintf(r.row[0].against, sizeof(r.row[0].against), "<a>");
	return bench_line(journal, &r);
}

static void nothing_of_a_line_is_markup(void **state)
{
	static const char *const marks[] = {
		"<b>", "<i>", "<k>", "<v>", "<e>", "<s>", "<u>", "<a>"
	};
	struct place *place = *state;
	char *page;

	fill(place, sample_run);
	page = page_with(place, write_hostile);
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		assert_has_not(page, marks[i]);
	assert_has(page, "&lt;u&gt;why&lt;/u&gt;");
	free(page);
}

static int write_nonsense(struct journal *journal)
{
	int rc = sample_line(journal, "bench",
			     json_pack("{s:s, s:i}", "benchmark", "toggle", "rows", 3));

	return rc ? rc : sample_line(journal, "bench", json_pack("{s:i}", "benchmark", 3));
}

static void nonsense_is_told_and_survived(void **state)
{
	struct place *place = *state;
	char *page;

	fill(place, sample_run);
	page = page_with(place, write_nonsense);
	assert_has(page, "2 lines of benchmarks could not be read and are not in here.");
	assert_has_not(page, "<h2 id=\"bench-toggle\">");
	free(page);
	/* A good one beside them is read. */
	page = page_with(place, write_twice);
	assert_has(page, "2 lines of benchmarks could not be read");
	assert_has(page, "<td class=\"n\">21.2 [20.5, 21.8]</td>");
	free(page);
}

static int write_unmeasured(struct journal *journal)
{
	struct bench_result r = sample_result("stall");

	r.waits.first = r.waits.second = 0;
	snprintf(r.waits_from, sizeof(r.waits_from), "none");
	r.witness.steal = r.witness.load = -1;
	r.witness.interrupts = WITNESS_UNKNOWN;
	r.distance = (struct bench_value){ NAN, NAN, NAN };
	sample_skip(&r, "call", "one CPU");
	return bench_line(journal, &r);
}

static void a_benchmark_without_figures_says_so(void **state)
{
	struct place *place = *state;
	char *page;

	fill(place, sample_run);
	page = page_with(place, write_unmeasured);
	assert_has(page, "Nothing was measured that could be drawn.");
	assert_has(page, "<td class=\"w\" colspan=\"6\">one CPU</td>");
	assert_has(page, "policy wait: not to be had");
	assert_has(page,
		   "switches 12, interrupts unknown, steal unknown, runnable at the end unknown");
	assert_int_equal(place->report.undrawn, 0);
	free(page);
}

static void intervals_are_for_people(void **state)
{
	(void)state;
	assert_string_equal(INTERVAL(((struct bench_value){ 6420.4, 6229.9, 6612.6 })),
			    "6420 [6230, 6613]");
	assert_string_equal(INTERVAL(((struct bench_value){ 1.234, 1.1, 1.5 })), "1.23 [1.1, 1.5]");
	assert_string_equal(INTERVAL(((struct bench_value){ 7, NAN, NAN })), "7");
	assert_string_equal(INTERVAL(((struct bench_value){ NAN, NAN, NAN })), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_PAGE(benchmarks_alone_make_a_page),
		ON_PAGE(rows_and_what_was_skipped_are_listed),
		ON_PAGE(the_last_line_wins),
		ON_PAGE(a_calibration_has_both),
		ON_PAGE(nothing_of_a_line_is_markup),
		ON_PAGE(nonsense_is_told_and_survived),
		ON_PAGE(a_benchmark_without_figures_says_so),
		cmocka_unit_test(intervals_are_for_people),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
