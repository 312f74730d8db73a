/* SPDX-License-Identifier: MIT */
/* What slices of protocols add up to, and how it is told: by records made by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"
#include "calibrate/statistics/bound.h"
#include "calibrate/tests/report_sample.h"
#include "commands/tmax/protocols.h"

#define SLICES_MAX 4096

static struct cell_record slice[SLICES_MAX];
static size_t slices;

static struct cell_record *add_slice(const char *stage, const char *protocol,
				     enum crossing crossing, unsigned split, uint64_t toggles,
				     uint64_t torn)
{
	struct cell_record *r = &slice[slices++];

	assert_true(slices <= SLICES_MAX);
	*r = sample_cell(stage, (unsigned)slices);
	r->cell.protocol = (enum protocol)protocol_parse(protocol);
	r->cell.crossing = crossing;
	r->cell.split = split;
	r->result.toggles = 2 * toggles;
	r->result.exposed = toggles;
	r->result.tears[TEAR_OLD_FRONT] = 3 * torn;
	r->result.torn = torn;
	/* 2000 ticks of rest, and 520 of a change. */
	r->result.ticks = 2 * toggles * (r->cell.rest + 520);
	r->result.executions = 1000000;
	return r;
}

static void begin_slices(bool control)
{
	slices = 0;
	if (control)
		add_slice(STAGE_OUTSIDE, "no-int3", CROSSING_LINE, 3, 1000, 900);
}

static const struct protocol_row *row_named(const struct protocol_rows *rows, const char *name)
{
	for (size_t i = 0; i < rows->count; i++)
		if (strcmp(protocol_name(rows->row[i].protocol), name) == 0)
			return &rows->row[i];
	fail_msg("there is no row %s", name);
	return NULL;
}

/* --- Adding up ------------------------------------------------------------------------------- */

static void each_part_by_itself(void **state)
{
	struct protocol_rows rows;
	const struct protocol_row *row;
	struct cell_record *slow;

	(void)state;
	begin_slices(true);
	add_slice(STAGE_CLAIMED, "text-poke", CROSSING_LINE, 2, 100000, 0);
	add_slice(STAGE_CLAIMED, "text-poke", CROSSING_LINE, 3, 100000, 0);
	add_slice(STAGE_CLAIMED, "text-poke", CROSSING_LINE, 3, 100000, 0);
	add_slice(STAGE_OUTSIDE, "text-poke", CROSSING_PAGE, 3, 1000, 10);
	add_slice(STAGE_STILL, "text-poke", CROSSING_LINE, 2, 1, 0);
	/* In another seat, and of another command. */
	slow = add_slice(STAGE_CLAIMED, "text-poke", CROSSING_LINE, 2, 1000, 0);
	slow->cell.executors = 4;
	slow->result.ticks *= 100;
	add_slice("controls", "text-poke", CROSSING_LINE, 2, 1000, 1000)->result.ticks *= 100;
	assert_int_equal(protocol_rows_make(&rows, slice, slices), 0);
	row = row_named(&rows, "text-poke");
	assert_int_equal(row->part[PART_CLAIMED].sites, 2);
	assert_int_equal(row->part[PART_CLAIMED].verdict, STEPS_HOLD);
	assert_null(row->part[PART_CLAIMED].witness);
	assert_true(row->part[PART_CLAIMED].upper_p ==
		    bound_mixed(0, 301000, 301000.0 * 301000 / (3e10 + 1e6), 1, CONFIDENCE));
	assert_int_equal(row->part[PART_OUTSIDE].verdict, STEPS_TEAR);
	assert_int_equal(row->part[PART_OUTSIDE].sites, 1);
	assert_true(row->part[PART_OUTSIDE].p == 0.01);
	assert_ptr_equal(row->part[PART_OUTSIDE].witness, &slice[4]);
	assert_true(fabs(row->ticks - 520) < 1e-6);
	assert_ptr_equal(protocol_row_main(row), &row->part[PART_CLAIMED]);
	assert_ptr_equal(protocol_row_main(row_named(&rows, "no-int3")),
			 &row_named(&rows, "no-int3")->part[PART_OUTSIDE]);
	protocol_rows_free(&rows);
}

/* One torn change among all sites is no claim that holds; one that died says more than one that
 * tore. */
static void nothing_seen_is_forgotten(void **state)
{
	struct protocol_rows rows;
	const struct protocol_part *part;
	struct cell_record *r;

	(void)state;
	begin_slices(true);
	for (unsigned i = 0; i < 200; i++)
		add_slice(STAGE_CLAIMED, "gvisor", CROSSING_LINE, 1 + i % 4, 100000, i == 77);
	assert_int_equal(protocol_rows_make(&rows, slice, slices), 0);
	part = &row_named(&rows, "gvisor")->part[PART_CLAIMED];
	assert_int_equal(part->verdict, STEPS_TEAR);
	assert_int_equal(part->torn, 1);
	assert_ptr_equal(part->witness, &slice[78]);
	protocol_rows_free(&rows);

	for (int outcome = OUTCOME_CRASH; outcome <= OUTCOME_HANG; outcome++) {
		r = add_slice(STAGE_CLAIMED, "gvisor", CROSSING_PAGE, 3, 0, 0);
		r->result.outcome = (enum outcome)outcome;
		assert_int_equal(protocol_rows_make(&rows, slice, slices), 0);
		part = &row_named(&rows, "gvisor")->part[PART_CLAIMED];
		assert_int_equal(part->verdict, STEPS_DIE);
		assert_int_equal(part->died, 1);
		assert_ptr_equal(part->witness, r);
		protocol_rows_free(&rows);
		slices--;
	}
}

/* Without a broken protocol that tore, and without a change that could tear, nothing holds. */
static void a_blind_oracle_says_nothing(void **state)
{
	struct protocol_rows rows;

	(void)state;
	begin_slices(false);
	add_slice(STAGE_CLAIMED, "text-poke", CROSSING_LINE, 2, 100000, 0);
	add_slice(STAGE_OUTSIDE, "naive", CROSSING_LINE, 2, 100000, 0);
	assert_int_equal(protocol_rows_make(&rows, slice, slices), 0);
	assert_false(rows.seen);
	for (size_t i = 0; i < rows.count; i++) {
		assert_int_equal(protocol_row_main(&rows.row[i])->verdict, STEPS_UNCLEAR);
		assert_true(isnan(protocol_row_p(&rows.row[i])));
		assert_false(rows.row[i].frontier);
	}
	protocol_rows_free(&rows);
	add_slice(STAGE_OUTSIDE, "front-first", CROSSING_LINE, 2, 100, 1);
	add_slice(STAGE_CLAIMED, "xray", CROSSING_LINE, 2, 0, 0);
	/* A tear of another one shows nothing of the oracle: it may count what is none. */
	add_slice(STAGE_CLAIMED, "uftrace", CROSSING_LINE, 2, 100, 1);
	assert_int_equal(protocol_rows_make(&rows, slice, slices), 0);
	assert_true(rows.seen);
	assert_int_equal(row_named(&rows, "text-poke")->part[PART_CLAIMED].verdict, STEPS_HOLD);
	assert_int_equal(row_named(&rows, "xray")->part[PART_CLAIMED].verdict, STEPS_UNCLEAR);
	protocol_rows_free(&rows);
	slice[2] = slice[4];
	assert_int_equal(protocol_rows_make(&rows, slice, 4), 0);
	assert_false(rows.seen);
	protocol_rows_free(&rows);
}

/* Executions are compared of one site in one seat. */
static void a_loss_is_of_like_slices(void **state)
{
	struct protocol_rows rows;
	struct cell_record *r;

	(void)state;
	begin_slices(true);
	add_slice(STAGE_STILL, "text-poke", CROSSING_LINE, 2, 1, 0)->result.executions = 4000000;
	add_slice(STAGE_CLAIMED, "text-poke", CROSSING_LINE, 2, 1000, 0)->result.executions =
		3000000;
	add_slice(STAGE_CLAIMED, "text-poke", CROSSING_LINE, 3, 1000, 0);
	r = add_slice(STAGE_CLAIMED, "text-poke", CROSSING_LINE, 2, 1000, 0);
	r->cell.placement = PLACEMENT_OVERSUBSCRIBED;
	r = add_slice(STAGE_CLAIMED, "text-poke", CROSSING_LINE, 2, 1000, 0);
	r->cell.executors = 2;
	assert_int_equal(protocol_rows_make(&rows, slice, slices), 0);
	assert_true(protocol_row_loss(row_named(&rows, "text-poke")) == 0.25);
	assert_true(row_named(&rows, "text-poke")->changes == 2000);
	assert_true(isnan(protocol_row_loss(row_named(&rows, "no-int3"))));
	protocol_rows_free(&rows);
}

static void the_frontier_has_what_no_other_beats(void **state)
{
	static const struct {
		const char *name;
		uint64_t toggles, torn, ticks;
		bool frontier;
	} points[] = {
		{ "gvisor", 100000, 1000, 100, true },	 { "uftrace", 100000, 1000, 200, false },
		{ "xray", 100000, 100, 200, true },	 { "dynamorio", 100000, 0, 5000, true },
		{ "text-poke", 100000, 0, 9000, false }, { "openj9", 100000, 100, 200, true },
	};
	struct protocol_rows rows;

	(void)state;
	begin_slices(true);
	for (size_t i = 0; i < 6; i++) {
		struct cell_record *r = add_slice(STAGE_CLAIMED, points[i].name, CROSSING_LINE, 2,
						  points[i].toggles, points[i].torn);

		r->result.ticks = r->result.toggles * (r->cell.rest + points[i].ticks);
		add_slice(STAGE_STILL, points[i].name, CROSSING_LINE, 2, 1, 0);
	}
	assert_int_equal(protocol_rows_make(&rows, slice, slices), 0);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(row_named(&rows, points[i].name)->frontier, points[i].frontier);
	protocol_rows_free(&rows);
}

/* --- The bound ------------------------------------------------------------------------------- */

static uint64_t draw_poisson(uint64_t *random, double mean)
{
	double product = 1, limit = exp(-mean);
	uint64_t n = 0;

	while ((product *= (double)(random_next(random) >> 11) / 9007199254740992.0) > limit)
		n++;
	return n;
}

/*
 * In each simulated run sites differ by so much, and times too: rates of slices are exponential,
 * whose variance is the square of the mean. How many runs have a bound below the true mean?
 */
static unsigned count_missed(unsigned runs, double share)
{
	static const double rate[4] = { 40e-6, 0, 0, 0 };
	uint64_t random = 4711;
	unsigned missed = 0;

	for (unsigned run = 0; run < runs; run++) {
		struct protocol_rows rows;

		begin_slices(true);
		for (unsigned i = 0; i < 24; i++) {
			double u = ((double)(random_next(&random) >> 11) + 1) / 9007199254740993.0;
			uint64_t toggles = 10000;

			add_slice(STAGE_CLAIMED, "gvisor", CROSSING_LINE, 1 + i % 4, toggles,
				  draw_poisson(&random, (double)toggles * rate[i % 4] * -log(u)));
		}
		assert_int_equal(protocol_rows_make(&rows, slice, slices), 0);
		missed += share * row_named(&rows, "gvisor")->part[PART_CLAIMED].upper_p < 10e-6;
		protocol_rows_free(&rows);
	}
	return missed;
}

/* 5 % of 1000 runs, and 5 standard deviations. A bound of a third is seen not to be one. */
static void bounds_cover_sites_and_times_that_differ(void **state)
{
	(void)state;
	assert_true(count_missed(1000, 1) <= 50 + 35);
	assert_true(count_missed(1000, 1.0 / 3) > 50 + 35);
}

/* --- Telling --------------------------------------------------------------------------------- */

static const char *const all[] = {
	"naive",      "no-int3",	"front-first",	   "text-poke",	    "gvisor",
	"openj9",     "hotspot-call",	"hotspot-replace", "dynamorio",	    "uftrace",
	"xray",	      "javascriptcore", "uprobes-nop5",	   "uprobes-nop10", "word-patch",
	"call-patch", "liteinst2",	"liteinst2-line"
};

/* verdict: of all but the controls. */
static char *print_result(unsigned format, bool strict, uint64_t torn, enum outcome outcome)
{
	static char *text;
	struct protocols_report report = { .identity = sample_machine(),
					   .seed = 7,
					   .budget = 60,
					   .seconds = 61.5,
					   .strict = strict,
					   .date = "2026-01-31T23:59:59Z" };
	size_t size;
	FILE *out;

	begin_slices(true);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		bool control = i < 3;

		for (unsigned split = 1; split <= 4 && !control; split++) {
			struct cell_record *r = add_slice(STAGE_CLAIMED, all[i], CROSSING_LINE,
							  split, 123456789, torn);

			r->result.outcome = outcome;
			r->result.signal = outcome == OUTCOME_CRASH ? 11 : 0;
		}
		add_slice(STAGE_OUTSIDE, all[i], CROSSING_PAGE, 3, 98765432, 12345678);
		add_slice(STAGE_STILL, all[i], CROSSING_LINE, 2, 1, 0)->result.executions =
			77777777;
	}
	assert_int_equal(protocol_rows_make(&report.rows, slice, slices), 0);
	free(text);
	out = open_memstream(&text, &size);
	protocols_print(out, &report, format);
	fclose(out);
	protocol_rows_free(&report.rows);
	return text;
}

static void text_fits_a_screen(void **state)
{
	static const struct {
		uint64_t torn;
		enum outcome outcome;
		const char *has;
	} cases[] = {
		{ 0, OUTCOME_DONE, " holds " },
		{ 1234567, OUTCOME_DONE, "tmax stress --protocol " },
		{ 0, OUTCOME_CRASH, " SIGSEGV" },
		{ 0, OUTCOME_HANG, " hang" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = print_result(0, true, cases[i].torn, cases[i].outcome), *line;
		unsigned lines = 0;

		assert_non_null(strstr(text, cases[i].has));
		assert_non_null(strstr(text, "a sequence of steps, as read in the source"));
		for (; (line = strsep(&text, "\n")) && text; lines++)
			if (strlen(line) > PROTOCOLS_COLUMNS)
				fail_msg("%zu columns: %s", strlen(line), line);
		assert_in_range(lines, 22, PROTOCOLS_LINES);
	}
}

static json_t *json_told(uint64_t torn, enum outcome outcome)
{
	json_t *all_of = json_loads(print_result(2, false, torn, outcome), 0, NULL);

	assert_non_null(all_of);
	return all_of;
}

static void json_has_all_that_is_known(void **state)
{
	json_t *json = json_told(3, OUTCOME_DONE);
	const json_t *rows = json_object_get(json, "protocols");
	const json_t *row = json_find(rows, "name", "text-poke"), *part;

	(void)state;
	assert_int_equal(json_array_size(rows), sizeof(all) / sizeof(all[0]));
	part = json_object_get(row, "claimed");
	assert_string_equal(json_text_of(part, "verdict"), "tears");
	assert_int_equal(json_integer_value(json_object_get(part, "torn")), 12);
	assert_int_equal(json_integer_value(json_object_get(part, "torn_sites")), 4);
	assert_non_null(strstr(json_text_of(json_object_get(part, "witness"), "command"),
			       "tmax stress --placement same-l3 --crossing line --split 1 "));
	assert_non_null(strstr(json_text_of(row, "source"), "Linux"));
	assert_true(json_is_true(json_object_get(json_find(rows, "name", "naive"), "broken")));
	json_decref(json);
	json = json_told(0, OUTCOME_DONE);
	part = json_object_get(json_find(json_object_get(json, "protocols"), "name", "gvisor"),
			       "claimed");
	assert_string_equal(json_text_of(part, "verdict"), "holds");
	assert_null(json_object_get(part, "witness"));
	assert_true(json_real_of(part, "upper_p") < 1e-8);
	json_decref(json);
}

static unsigned count_text(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static void junit_fails_only_where_that_is_asked_for(void **state)
{
	(void)state;
	assert_int_equal(count_text(print_result(1, false, 3, OUTCOME_DONE), "<failure"), 0);
	assert_int_equal(count_text(print_result(1, true, 3, OUTCOME_DONE), "<failure"), 15);
	assert_int_equal(count_text(print_result(1, true, 0, OUTCOME_CRASH), "<failure"), 15);
	assert_int_equal(count_text(print_result(1, true, 0, OUTCOME_DONE), "<failure"), 0);
	/* What claims nothing keeps all that it claims. */
	assert_int_equal(count_text(print_result(1, true, 0, OUTCOME_DONE), "<skipped"), 3);
	assert_non_null(strstr(print_result(1, true, 3, OUTCOME_DONE),
			       "this sequence of steps, as read in Linux"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_part_by_itself),
		cmocka_unit_test(nothing_seen_is_forgotten),
		cmocka_unit_test(a_blind_oracle_says_nothing),
		cmocka_unit_test(a_loss_is_of_like_slices),
		cmocka_unit_test(the_frontier_has_what_no_other_beats),
		cmocka_unit_test(bounds_cover_sites_and_times_that_differ),
		cmocka_unit_test(text_fits_a_screen),
		cmocka_unit_test(json_has_all_that_is_known),
		cmocka_unit_test(junit_fails_only_where_that_is_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
