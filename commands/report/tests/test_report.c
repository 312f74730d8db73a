/* SPDX-License-Identifier: MIT */
/* The report's page, without gnuplot. */
#include <errno.h>

#include "calibrate/tests/report_place.h"

static void the_page_says_what_the_journal_holds(void **state)
{
	static const char *const texts[] = {
		"<strong>inconclusive</strong>",
		"<strong>inconclusive</strong>: too little was measured &lt;i&gt;",
		"A change by membarrier takes 10 us.",
		"With 95 % confidence for the time of 3 runs, and no more.",
		("<tr><td class=\"n\">0.154</td><td class=\"n\">0.508</td>"
		 "<td class=\"n\">0.0012</td><td class=\"n\">4.7e6</td><td class=\"n\">1000</td>"
		 "<td class=\"n\">0.01</td><td class=\"n\">4.7e6</td><td class=\"n\">8000</td>"),
		"One store inside 16 bytes: no tear in 1000 stores, bound 0.003.",
		"the lowest constant wait without a tear: 0.615 us; longer waits tore again.",
		"its variance is 0.5 times the square of its mean across a line, and 1.25 times "
		"across a page.",
		"L1d 32K L1i 32K L2 2048K L3 107520K",
		"This is a virtual machine",
		"none (membarrier between: control)",
		"<td class=\"n\">5000</td><td class=\"n\">1.12</td>",
		"\">one package &lt;i&gt;",
		"not measured, and no run says why",
		"<td class=\"n\">2e6</td><td class=\"n\">0</td></tr>",
		"1 of 28 cells are marked as noisy. Tears in noisy cells:",
		"The worst cell: 3 tears in 1e6 toggles, at waits of 1.58 and 0.808 us",
		"broken on purpose tore in 1 more cell,",
		"A bound is not zero.",
	};
	char *page = page_with(*state, sample_calibration);

	assert_has_all(page, texts, sizeof(texts) / sizeof(texts[0]));
	free(page);
}

static void the_command_of_the_worst_cell_is_its_own(void **state)
{
	struct place *place = *state;
	char command[1024], *page;
	const struct cell_record *worst = NULL;

	fill(place, sample_calibration);
	for (size_t i = 0; i < place->data.count; i++)
		if (strcmp(place->data.records[i].key, "campaign 24 <b>") == 0)
			worst = &place->data.records[i];
	assert_non_null(worst);
	cell_command(&worst->cell, command, sizeof(command));
	page = page_of(place);
	assert_has(strstr(page, "This runs it again"), command);
	free(page);
}

static void nothing_of_a_journal_is_markup(void **state)
{
	char *page = page_with(*state, sample_calibration);

	assert_has_not(page, "<i>");
	assert_has_not(page, "<b>");
	assert_has(page, "Sample &lt;i&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/i&gt;");
	free(page);
}

static void missing_pictures_are_told(void **state)
{
	struct place *place = *state;
	char *page = page_with(place, sample_calibration);

	assert_int_equal(place->report.undrawn, 4);
	assert_has(place->report.undrawn_why, "/nonexistent/");
	assert_has(page, "This figure was not drawn: cannot read /nonexistent/ladder.gp");
	assert_has(page, "Its data are in gaps.dat.");
	assert_has(page, "This page has no style: cannot read /nonexistent/page.css");
	assert_has_not(page, "<svg");
	free(page);
}

static void what_is_missing_does_not_appear(void **state)
{
	static const char *const ids[] = { "verdict", "figure9", "gaps", "placements", "cells" };
	struct place *place = *state;
	char *page = page_with(place, sample_run), id[32];

	assert_int_equal(place->report.undrawn, 0);
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		snprintf(id, sizeof(id), "<h2 id=\"%s\"", ids[i]);
		assert_has_not(page, id);
		snprintf(id, sizeof(id), "\"#%s\"", ids[i]);
		assert_has_not(page, id);
	}
	assert_has(page, "No calibration of it has ended, so there is no verdict.");
	assert_has(page, "<h2 id=\"machine\"");
	assert_has_not(page, "class=\"missing\">No");
	free(page);
}

static int write_pooled(struct journal *journal)
{
	int rc = sample_run(journal);

	return rc ? rc
		  : sample_line(journal, "estimate",
				json_pack("{s:s, s:s, s:s, s:i, s:f, s:[{s:i, s:i, s:[{s:s, s:f, "
					  "s:i, s:i}, "
					  "{s:s, s:f, s:i, s:i}]}]}",
					  "verdict", "pass", "reason", "enough", "scope",
					  "this-run", "runs", 1, "confidence", 0.95, "levels",
					  "first", 100, "stretch", 4, "claims", "crossing", "line",
					  "upper_p", 1e-5, "toggles", 1000, "tears", 0, "crossing",
					  "page", "upper_p", 0.01, "toggles", 1000, "tears", 0));
}

/* A bound that its own counts do not allow says so. */
static void a_pooled_bound_says_so(void **state)
{
	char *page = page_with(*state, write_pooled);

	assert_has(page, "<td class=\"n\">1e-5 pooled</td>");
	assert_has(page, "<td class=\"n\">0.01</td>");
	free(page);
}

static void assert_refused(struct place *place, const char *why)
{
	char path[64];

	assert_int_equal(report_write(&place->report, place->error, sizeof(place->error)), -EINVAL);
	assert_has(place->error, why);
	snprintf(path, sizeof(path), "%s/index.html", place->folder);
	assert_int_equal(access(path, F_OK), -1);
}

static int write_another_machine(struct journal *journal)
{
	struct identity id = sample_machine();

	id.stepping++;
	return journal_write_run(journal, "default", &id, NULL, JOURNAL_NO_SEED);
}

static void different_machines_are_refused(void **state)
{
	struct place *place = *state;

	assert_refused(place, "name no machine");
	fill(place, sample_run);
	fill(place, write_another_machine);
	assert_refused(place, "hold different machines");
}

/* The last one speaks for all that were added up until then. */
static int write_both_estimates(struct journal *journal)
{
	int rc = sample_calibration(journal);

	return rc ? rc : sample_estimate(journal);
}

static void the_last_estimate_counts(void **state)
{
	char *page = page_with(*state, write_both_estimates);

	assert_has(page, "This is the last of 2 estimates");
	assert_has(page, "</strong>: ");
	free(page);
}

static int write_long_run(struct journal *journal)
{
	int rc = sample_run(journal);

	return rc ? rc
		  : sample_line(journal, "estimate",
				json_pack("{s:s, s:s, s:s, s:i, s:f, s:[]}", "verdict", "pass",
					  "reason", "enough", "scope", "long-run", "runs", 31,
					  "confidence", 0.95, "levels"));
}

static void a_long_run_is_told(void **state)
{
	char *page = page_with(*state, write_long_run);

	assert_has(page, "With 95 % confidence for the long run, from 31 runs.");
	free(page);
}

/* Without an estimate the worst cell is that of the longest wait that tore. */
static int write_unconcluded(struct journal *journal)
{
	int rc = sample_run(journal);

	return rc ? rc : sample_measured(journal);
}

static void the_worst_cell_needs_no_estimate(void **state)
{
	char *page = page_with(*state, write_unconcluded);

	assert_has(page, "The worst cell: 3 tears in 1e6 toggles, at waits of 1.58 and 0.808 us");
	free(page);
}

static int write_much(struct journal *journal)
{
	int rc = sample_run(journal);

	for (unsigned i = 0; i < 18 && !rc; i++) {
		struct cell_record r = sample_cell("stress", i);

		r.cell.executors = r.result.seating.executors = 40 - i;
		r.result.tears[TEAR_OLD_FRONT] = 99;
		rc = journal_write_cell(journal, &r);
	}
	return rc;
}

static void all_cells_with_tears_are_listed(void **state)
{
	char *page = page_with(*state, write_much);

	assert_has(page,
		   "<td class=\"n\">39</td><td class=\"n\">1e6</td><td class=\"n\">99</td></tr>");
	assert_has(page, "All 18 cells with tears");
	free(page);
}

/* Lines whose parts are of other types than they should be do no harm. */
static int write_nonsense(struct journal *journal)
{
	int rc = sample_run(journal);

	if (!rc)
		rc = sample_line(journal, "gaps",
				 json_pack("{s:i, s:s, s:s, s:[i, {s:s, s:[s, [s]]}]}", "cell", 3,
					   "stores", "many", "command", "x", "kinds", 1, "kind",
					   "old-front", "histogram", "a", "b"));
	if (!rc)
		rc = sample_line(journal, "estimate",
				 json_pack("{s:i, s:[i], s:{s:i}, s:i}", "verdict", 5, "claims", 3,
					   "sections", "a", 1, "worst", 8));
	return rc ? rc
		  : sample_line(
			    journal, "estimate",
			    json_pack("{s:[], s:i, s:s, s:[i, {s:s, s:f, s:[i, {s:s, s:i}, {s:i, "
				      "s:[i, {s:s}]}]}]}",
				      "verdict", "window", 3, "paper", "none", "levels", 1, "first",
				      "a", "stretch", -1e300, "claims", 1, "crossing", "line",
				      "sections", 3, "crossing", 5, "sections", 7, "placement",
				      "moon"));
}

static void nonsense_is_survived(void **state)
{
	struct place *place = *state;

	fill(place, write_nonsense);
	free(page_of(place));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_PAGE(the_page_says_what_the_journal_holds),
		ON_PAGE(the_command_of_the_worst_cell_is_its_own),
		ON_PAGE(nothing_of_a_journal_is_markup),
		ON_PAGE(missing_pictures_are_told),
		ON_PAGE(what_is_missing_does_not_appear),
		ON_PAGE(a_pooled_bound_says_so),
		ON_PAGE(different_machines_are_refused),
		ON_PAGE(the_last_estimate_counts),
		ON_PAGE(a_long_run_is_told),
		ON_PAGE(the_worst_cell_needs_no_estimate),
		ON_PAGE(all_cells_with_tears_are_listed),
		ON_PAGE(nonsense_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
