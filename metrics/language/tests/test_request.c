/* SPDX-License-Identifier: MIT */
/*
 * A metric and a focus become code at the probes that they name, in order, of a program that the
 * test makes up. The paper's figure 3 is what is made of its figure 2.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "metrics/language/request.h"
#include "metrics/language/tests/paper.h"

/* Procedures: their entries have 10 times their numbers, returns one more. */
static const struct {
	const char *module, *name;
	bool returns;
} procedures[] = {
	{ "main.c", "main", true },   { "msg.c", "pvm_send", true }, { "msg.c", "pvm_recv", true },
	{ "msg.c", "helper", false }, { "myprog.c", "foo", true },
};
#define PROCEDURES_N (sizeof(procedures) / sizeof(*procedures))

static bool has_pattern(size_t i, const char *pattern)
{
	char full[64];

	snprintf(full, sizeof(full), "%s:%s", procedures[i].module, procedures[i].name);
	if (!strcmp(pattern, "*") || !strcmp(pattern, procedures[i].name) || !strcmp(pattern, full))
		return true;
	strcpy(strchr(full, ':'), ":*");
	return !strcmp(pattern, full);
}

static long find(void *data, const char *pattern, const struct mdl_list *list, uint32_t **found)
{
	long n = 0;

	(void)data;
	(void)list;
	*found = calloc(PROCEDURES_N, sizeof(**found));
	for (uint32_t i = 0; i < PROCEDURES_N; i++)
		if (has_pattern(i, pattern))
			(*found)[n++] = i;
	return n;
}

static const char *name(void *data, uint32_t procedure)
{
	(void)data;
	return procedures[procedure].name;
}

static size_t probes(void *data, uint32_t procedure, enum code_point point, bool registers,
		     const uint32_t **ids)
{
	static uint32_t id;

	(void)data;
	(void)registers;
	id = 10 * procedure + (point == CODE_AT_RETURN);
	*ids = &id;
	return point == CODE_AT_ENTRY || (point == CODE_AT_RETURN && procedures[procedure].returns);
}

static int symbol(void *data, const char *text, uint64_t *address, unsigned *size)
{
	(void)data;
	(void)text;
	(void)address;
	(void)size;
	return -1;
}

static const struct metric_world world = {
	.find = find, .name = name, .probes = probes, .symbol = symbol
};

static struct mdl mdl;
static struct metric_plan plan;
static struct mdl_error error;

static int make(const char *text, const char *metric, const char *focus)
{
	const struct metric_request request = {
		.metric = metric, .next_value = 1, .foci = { focus }, .foci_n = focus != NULL
	};

	plan_free(&plan);
	mdl_free(&mdl);
	if (mdl_read(&mdl, text, &error))
		fail_msg("%u:%u: %s", error.place.line, error.place.column, error.text);
	return plan_metric(&mdl, &request, &world, &plan, &error);
}

static void must_make(const char *text, const char *metric, const char *focus)
{
	if (make(text, metric, focus))
		fail_msg("%s", error.text);
}

static void must_refuse(const char *text, const char *metric, const char *focus, const char *why)
{
	assert_int_equal(make(text, metric, focus), -EINVAL);
	assert_string_equal(error.text, why);
}

static void must_check(const char *text, const char *why)
{
	plan_free(&plan);
	mdl_free(&mdl);
	if (mdl_read(&mdl, text, &error) || mdl_check(&mdl, &error))
		assert_string_equal(error.text, why);
	else
		assert_null(why);
}

static void must_be_at(size_t i, uint32_t id, bool prepend)
{
	assert_true(i < plan.n);
	assert_int_equal(plan.placement[i].id, id);
	assert_int_equal(plan.placement[i].prepend, prepend);
}

static void all_procedures_have_the_code(void **state)
{
	(void)state;
	must_make(PAPER_CALLS, "proc_calls", NULL);
	assert_int_equal(plan.n, PROCEDURES_N);
	for (uint32_t i = 0; i < PROCEDURES_N; i++)
		must_be_at(i, 10 * i, false);
	assert_int_equal(plan.next_value, 1);
}

/* Figure 3: two snippets in foo, two in the functions of messages that look at a flag. */
static void figure_3_is_made_of_figure_2(void **state)
{
	struct mdl_value values[2] = { 0 };

	(void)state;
	must_make(PAPER_FIGURE_2, "msgs", "/Code/myprog.c/foo");
	assert_int_equal(plan.n, 4);
	must_be_at(0, 40, false);
	must_be_at(1, 41, true);
	must_be_at(2, 10, false);
	must_be_at(3, 20, false);
	run_snippet(plan.placement[2].snippet, values, NULL);
	assert_int_equal(values[0].value, 0);
	run_snippet(plan.placement[0].snippet, values, NULL);
	run_snippet(plan.placement[2].snippet, values, NULL);
	run_snippet(plan.placement[3].snippet, values, NULL);
	assert_int_equal(values[0].value, 2);
	run_snippet(plan.placement[1].snippet, values, NULL);
	run_snippet(plan.placement[2].snippet, values, NULL);
	assert_int_equal(values[0].value, 2);
}

static void without_a_focus_nothing_is_looked_at(void **state)
{
	(void)state;
	must_make(PAPER_FIGURE_2, "msgs", NULL);
	assert_int_equal(plan.n, 2);
	assert_int_equal(plan.next_value, 1);
	must_make(PAPER_FIGURE_2, "msgs", "/Code");
	assert_int_equal(plan.n, 2);
}

/* helper() has no probes at its returns: the constraint cannot be put there. */
static void procedures_without_a_point_are_left_out(void **state)
{
	(void)state;
	must_make(PAPER_FIGURE_2, "msgs", "/Code/msg.c");
	assert_int_equal(plan.n, 6);
	assert_int_equal(plan.left_out, 1);
	for (size_t i = 0; i < plan.n; i++)
		assert_int_not_equal(plan.placement[i].id, 30);
	must_refuse(PAPER_FIGURE_2, "msgs", "/Code/msg.c/helper",
		    "helper has no probes at .return; fastinst(7) says how to compile");
}

/* Also where its points are in two loops. */
static void a_procedure_is_left_out_as_a_whole(void **state)
{
	(void)state;
	must_make("metric m { base is wallTimer {"
		  "foreach f in $procedures append preInsn f.entry (* startWallTimer(m); *)"
		  "foreach f in $procedures append preInsn f.return (* stopWallTimer(m); *)"
		  "append preInsn $exit.entry (* stopWallTimer(m); *) } }",
		  "m", NULL);
	assert_int_equal(plan.left_out, 1);
	assert_int_equal(plan.n, 2 * (PROCEDURES_N - 1) + 1);
	for (size_t i = 0; i < plan.n; i++)
		assert_int_not_equal(plan.placement[i].id, 30);
}

/* Two foci of one constraint are two variables, which both must be set. */
static void two_foci_have_two_variables(void **state)
{
	const struct metric_request request = { .metric = "msgs",
						.next_value = 1,
						.foci = { "/Code/myprog.c/foo",
							  "/Code/main.c/main" },
						.foci_n = 2 };
	struct mdl_value values[3] = { 0 };

	(void)state;
	must_make(PAPER_FIGURE_2, "msgs", NULL);
	plan_free(&plan);
	assert_int_equal(plan_metric(&mdl, &request, &world, &plan, &error), 0);
	must_be_at(0, 40, false);
	must_be_at(2, 0, false);
	must_be_at(4, 10, false);
	run_snippet(plan.placement[0].snippet, values, NULL);
	run_snippet(plan.placement[4].snippet, values, NULL);
	assert_int_equal(values[0].value, 0);
	run_snippet(plan.placement[2].snippet, values, NULL);
	run_snippet(plan.placement[4].snippet, values, NULL);
	assert_int_equal(values[0].value, 1);
}

static void a_procedure_is_once_in_a_list(void **state)
{
	(void)state;
	must_make(
		"list l is procedure { items { \"foo\", \"myprog.c:foo\", \"main\", \"none\" }; }"
		"metric m { base is counter { foreach f in l append preInsn f.entry (* m++; *) } }",
		"m", NULL);
	assert_int_equal(plan.n, 2);
	must_be_at(0, 0, false);
	must_be_at(1, 40, false);
}

static void a_value_of_the_focus_is_a_number_in_code(void **state)
{
	const struct fi_regs regs = { .rsi = 5 };
	struct mdl_value values[2] = { 0 };

	(void)state;
	must_make(PAPER_FIGURE_2, "msgs", "/SyncObject/MsgTag/5");
	must_be_at(0, 10, true);
	run_snippet(plan.placement[0].snippet, values, &regs);
	assert_int_equal(values[1].value, 1);
	must_make(PAPER_FIGURE_2, "msgs", "/SyncObject/MsgTag/6");
	run_snippet(plan.placement[0].snippet, values, &regs);
	assert_int_equal(values[1].value, 0);
	must_refuse(PAPER_FIGURE_2, "msgs", "/SyncObject/MsgTag/x", "$constraint is no number");
}

static void what_is_not_there_is_told(void **state)
{
	(void)state;
	must_refuse(PAPER_FIGURE_2, "msg", NULL, "there is no metric msg");
	must_refuse(PAPER_FIGURE_2, "msgs", "/Code/msg.c/nobody", "no procedure is msg.c:nobody");
	must_refuse(PAPER_FIGURE_2, "msgs", "/File/x",
		    "msgs cannot be limited to /File/x: it has no constraint for that");
	must_refuse(PAPER_FIGURE_2, "msgs", "/Code/a/b/c",
		    "msgs cannot be limited to /Code/a/b/c: it has no constraint for that");
}

#define WHERE(text) "metric m { base is counter { " text " } }"

static void names_choose_procedures(void **state)
{
	(void)state;
	must_make(WHERE("foreach f in $procedures if (f.name == \"foo\" || f.name == \"main\")"
			"append preInsn f.entry (* m++; *)"),
		  "m", NULL);
	assert_int_equal(plan.n, 2);
	must_make(WHERE("foreach f in $procedures if (!(f.name != \"foo\") && 1 + 1 == -2 + 4)"
			"append preInsn f.entry (* m++; *) else prepend postInsn f.entry (* *)"),
		  "m", NULL);
	assert_int_equal(plan.n, PROCEDURES_N);
	must_be_at(0, 0, true);
	assert_true(plan.placement[0].post);
	must_be_at(4, 40, false);
	assert_false(plan.placement[4].post);
	must_make("list l is module { items { \"msg.c\", \"main.c\" }; }" WHERE(
			  "foreach o in l foreach f in o.funcs append preInsn f.entry (* m++; *)"),
		  "m", NULL);
	assert_int_equal(plan.n, 4);
	must_make("list l is thread { items { \"7\", \"8\" }; }" WHERE(
			  "foreach t in l append preInsn $exit.entry (* m += t; *)"),
		  "m", NULL);
	assert_int_equal(plan.n, 2);
	must_be_at(0, AT_EXIT, false);
}

#define METRIC                                                                                     \
	"metric m { constraint c; base is counter { append preInsn $start.entry (* m++; *) } }"

static void a_constraint_may_replace_the_base(void **state)
{
	(void)state;
	must_make("constraint c /Code is replace wallTimer {"
		  "append preInsn $constraint[0].entry (* startWallTimer(c); *)"
		  "append preInsn $constraint[0].return (* stopWallTimer(c); *) }" METRIC,
		  "m", "/Code/myprog.c/foo");
	assert_int_equal(plan.type, MDL_WALL_TIMER);
	assert_int_equal(plan.n, 2);
	assert_int_equal(plan.next_value, 1);
	must_make("constraint c /Thread is default;" METRIC, "m", "/Thread/worker");
	assert_string_equal(plan.thread, "worker");
	assert_int_equal(plan.n, 1);
	must_be_at(0, AT_START, false);
}

static void what_cannot_be_is_found_before_it_runs(void **state)
{
	(void)state;
	must_check(PAPER_CALLS PAPER_STEPS PAPER_FIGURE_2, NULL);
	must_check(ALL_ELSE, NULL);
	must_check(PAPER_LIST PAPER_MODULE("1") PAPER_METRIC,
		   "module is for no focus: of the last component, $constraint[0], it takes "
		   "neither .funcs, which is a module, nor points, which is a procedure");
	must_check(PAPER_LIST PAPER_MODULE("0") PAPER_PROCEDURE("") PAPER_METRIC,
		   "there is no constraint msgTag");
	must_check("metric m { }", "m has no base");
	must_check(METRIC METRIC, "there is a metric m already");
	must_check("constraint c /File is default;", "only /Thread is known by default, not /File");
	must_check("constraint c /File is wallTimer { }",
		   "a constraint is a counter, or replaces a base, and is no wallTimer");
	must_check("metric m { counter m; base is counter { } }", "m is something else already");
	must_check(WHERE("append preInsn f.entry (* *)"), "there is no f here");
	must_check(WHERE("foreach f in $procedures append preInsn f.middle (* *)"),
		   "points of a procedure are .entry, .return and .calls");
	must_check(WHERE("append preInsn $start.return (* *)"),
		   "$start and $exit have .entry only");
	must_check(WHERE("foreach f in $procedures foreach g in f.funcs { }"),
		   "foreach goes through a list, $procedures, or the .funcs of a module");
	must_check(WHERE("if (\"a\" < \"b\") { }"),
		   "texts are == or != to texts, and nothing else");
	must_check(WHERE("if (1 + \"a\") { }"), "texts are == or != to texts, and nothing else");
	must_check(WHERE("if ($return) { }"), "it is known to code in (* *) only");
	must_check(WHERE("if (0) append preInsn $start.entry (* n++; *)"), "n is no counter");
}

static int teardown(void **state)
{
	(void)state;
	plan_free(&plan);
	mdl_free(&mdl);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_procedures_have_the_code),
		cmocka_unit_test(figure_3_is_made_of_figure_2),
		cmocka_unit_test(without_a_focus_nothing_is_looked_at),
		cmocka_unit_test(procedures_without_a_point_are_left_out),
		cmocka_unit_test(a_procedure_is_left_out_as_a_whole),
		cmocka_unit_test(two_foci_have_two_variables),
		cmocka_unit_test(a_procedure_is_once_in_a_list),
		cmocka_unit_test(a_value_of_the_focus_is_a_number_in_code),
		cmocka_unit_test(what_is_not_there_is_told),
		cmocka_unit_test(names_choose_procedures),
		cmocka_unit_test(a_constraint_may_replace_the_base),
		cmocka_unit_test(what_cannot_be_is_found_before_it_runs),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
