/* SPDX-License-Identifier: MIT */
/*
 * What code computes is what C computes of the same text; what must not be done in code is refused
 * at its place.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "metrics/language/request.h"

#define VALUES 8

static struct mdl_value values[VALUES];
static int16_t known = -7;

static int find_known(void *data, const char *name, uint64_t *address, unsigned *size)
{
	(void)data;
	*address = (uintptr_t)&known;
	*size = sizeof(known);
	return strcmp(name, "known") ? -1 : 0;
}

/* The code of a metric m with the counters a and b, at a field of any procedure. */
static int make_plan(const char *code, const char *type, const char *field, struct mdl *mdl,
		     struct metric_plan *plan, struct mdl_error *error)
{
	static const struct metric_request request = { .metric = "m", .next_value = 1 };
	struct metric_world world = no_program;
	char text[4096];
	int ret;

	world.symbol = find_known;
	snprintf(text, sizeof(text),
		 "metric m { counter a, b; base is %s {\nforeach f in $procedures\n"
		 "append preInsn f.%s (* \n%s\n *) } }",
		 type, field, code);
	*plan = (struct metric_plan){ 0 };
	ret = mdl_read(mdl, text, error);
	return ret ? ret : plan_metric(mdl, &request, &world, plan, error);
}

static int64_t run_with(const char *code, const char *field, const struct fi_regs *regs)
{
	struct metric_plan plan;
	struct mdl_error error;
	struct mdl mdl;

	memset(values, 0, sizeof(values));
	if (make_plan(code, "counter", field, &mdl, &plan, &error))
		fail_msg("%s: %s", code, error.text);
	assert_int_equal(plan.n, 1);
	run_snippet(plan.placement[0].snippet, values, regs);
	plan_free(&plan);
	mdl_free(&mdl);
	return values[0].value;
}

/* What C computes without parentheses is what is asked. */
#pragma GCC diagnostic ignored "-Wparentheses"
#define SAME(expression)                                                                           \
	assert_int_equal(run_with("m = " #expression ";", "entry", NULL), expression)

static void expressions_are_those_of_c(void **state)
{
	(void)state;
	SAME(1 + 2 * 3);
	SAME((1 + 2) * 3);
	SAME(10 - 4 - 3);
	SAME(100 / 7 / 2);
	SAME(-100 % 7);
	SAME(-7 / 2);
	SAME(1 < 2 == 1);
	SAME(3 >= 4 || 2 != 2);
	SAME(1 || 0 && 0);
	SAME(!5 + !0);
	SAME(- -3);
	SAME(2 <= 2 && 7 > 6);
	SAME(0x10 + 010 * 0);
	SAME(9223372036854775807);
}

static void divisions_that_trap_do_not(void **state)
{
	(void)state;
	assert_int_equal(run_with("m = 5 / (1 - 1);", "entry", NULL), 0);
	assert_int_equal(run_with("m = 5 % 0;", "entry", NULL), 0);
	assert_int_equal(run_with("m = (-9223372036854775807 - 1) / -1;", "entry", NULL),
			 INT64_MIN);
	assert_int_equal(run_with("m = (-9223372036854775807 - 1) % -1;", "entry", NULL), 0);
}

static void statements_run_in_order(void **state)
{
	(void)state;
	assert_int_equal(
		run_with("a = 3; b = a; b += 2; a--; m = 10 * a + b; m -= 1;", "entry", NULL), 24);
	assert_int_equal(run_with("if (a) m = 1; else if (b == 0) { m = 2; m++; } else m = 4;",
				  "entry", NULL),
			 3);
	assert_int_equal(run_with("a = 1; if (a) if (b) m = 1; else m = 2;", "entry", NULL), 2);
	assert_int_equal(run_with(";;{}", "entry", NULL), 0);
}

static void arguments_are_those_of_the_abi(void **state)
{
	uint64_t stack[] = { 0, 66, 77 }; /* behind the return address */
	const struct fi_regs regs = { .rdi = 1,
				      .rsi = 0xffffffffu,
				      .rdx = 3,
				      .rcx = 4,
				      .r8 = 5,
				      .r9 = 6,
				      .rax = 8,
				      .rsp = (uintptr_t)stack };

	(void)state;
	assert_int_equal(run_with("m = $arg[0] + 10 * $arg[2] + 100 * $arg[3] + 1000 * $arg[4] "
				  "+ 10000 * $arg[5];",
				  "entry", &regs),
			 65431);
	assert_int_equal(run_with("m = $arg[6] + $arg[7];", "entry", &regs), 143);
	assert_int_equal(run_with("m = $arg[1];", "entry", &regs), 0xffffffff);
	assert_int_equal(run_with("m = int($arg[1]);", "entry", &regs), -1);
	assert_int_equal(run_with("m = $return;", "return", &regs), 8);
}

static void memory_is_read_or_0(void **state)
{
	struct fi_regs regs = { .rdi = (uintptr_t)&known, .rsi = 8 };

	(void)state;
	assert_int_equal(run_with("m = readSymbol(\"known\");", "entry", NULL), -7);
	assert_int_equal(run_with("m = readAddress($arg[0], 2);", "entry", &regs), -7);
	assert_int_equal(run_with("m = readAddress($arg[0], 1);", "entry", &regs), -7);
	assert_int_equal(run_with("m = readAddress($arg[1]);", "entry", &regs), 0);
	assert_int_equal(run_with("a = 12345678901; m = readAddress(&a, 8);", "entry", NULL),
			 12345678901);
}

static void timers_add_up_the_outermost_spans(void **state)
{
	struct metric_plan start, stop;
	struct mdl_error error;
	struct mdl one, two;
	int64_t before;

	(void)state;
	memset(values, 0, sizeof(values));
	assert_int_equal(
		make_plan("startThreadTimer(m);", "threadTimer", "entry", &one, &start, &error), 0);
	assert_int_equal(
		make_plan("stopThreadTimer(&m);", "threadTimer", "return", &two, &stop, &error), 0);
	/* A stop without a start does nothing. */
	run_snippet(stop.placement[0].snippet, values, NULL);
	assert_int_equal(values[0].depth, 0);
	assert_int_equal(values[0].value, 0);
	run_snippet(start.placement[0].snippet, values, NULL);
	before = values[0].start;
	run_snippet(start.placement[0].snippet, values, NULL);
	assert_int_equal(values[0].depth, 2);
	assert_int_equal(values[0].start, before);
	run_snippet(stop.placement[0].snippet, values, NULL);
	assert_int_equal(values[0].value, 0);
	run_snippet(stop.placement[0].snippet, values, NULL);
	assert_int_equal(values[0].depth, 0);
	assert_true(values[0].value > 0);
	assert_int_equal(values[0].version % 2, 0);
	plan_free(&start);
	plan_free(&stop);
	mdl_free(&one);
	mdl_free(&two);
}

static void wrong_code_is_refused_at_its_place(void **state)
{
	static const struct {
		const char *code, *field, *why;
		unsigned column;
	} wrong[] = {
		{ "m = $arg[0];", "return", "$arg is known at .entry only", 5 },
		{ "m = $return;", "entry", "$return is known at .return only", 5 },
		{ "m = $arg[32];", "entry", "the last argument is $arg[31]", 5 },
		{ "m = c;", "entry",
		  "there is no c here: the metric, its counters and its constraints are", 5 },
		{ "c = 1;", "entry", "c is no counter", 1 },
		{ "m = f;", "entry", "f is no number", 5 },
		{ "m = \"x\";", "entry", "code knows numbers only", 5 },
		{ "m = f.name;", "entry", "code knows numbers only", 5 },
		{ "m = readSymbol(m);", "entry", "readSymbol takes a name in quotes", 16 },
		{ "m = readSymbol(\"x\");", "entry", "no variable x of 1, 2, 4 or 8 bytes is here",
		  16 },
		{ "m = readAddress(1, 3);", "entry", "what is read has 1, 2, 4 or 8 bytes", 20 },
		{ "m = readAddress();", "entry", "readAddress does not take 0 arguments", 5 },
		{ "startWallTimer(m);", "entry", "m is no wallTimer", 16 },
		{ "startWallTimer(m + 1);", "entry", "startWallTimer takes a timer", 1 },
		{ "m = $constraint[0];", "entry",
		  "there is no $constraint here: the metric, its counters and its constraints are",
		  5 },
	};
	struct metric_plan plan;
	struct mdl_error error;
	struct mdl mdl;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(
			make_plan(wrong[i].code, "counter", wrong[i].field, &mdl, &plan, &error),
			-EINVAL);
		assert_string_equal(error.text, wrong[i].why);
		assert_int_equal(error.place.line, 4);
		assert_int_equal(error.place.column, wrong[i].column);
		plan_free(&plan);
		mdl_free(&mdl);
	}
	assert_int_equal(make_plan("usleep(1);", "counter", "entry", &mdl, &plan, &error), -EINVAL);
	plan_free(&plan);
	mdl_free(&mdl);
	assert_int_equal(make_plan("m = strlen(1);", "counter", "entry", &mdl, &plan, &error),
			 -EINVAL);
	plan_free(&plan);
	mdl_free(&mdl);
	assert_int_equal(make_plan("a = m;", "wallTimer", "entry", &mdl, &plan, &error), -EINVAL);
	assert_string_equal(error.text, "m is a wallTimer: it is started and stopped, not read");
	plan_free(&plan);
	mdl_free(&mdl);
}

/* Each jump leads forward, and to the end at most: what runs is bounded. */
static void jumps_lead_forward(void **state)
{
	struct metric_plan plan;
	struct mdl_error error;
	struct mdl mdl;

	(void)state;
	assert_int_equal(make_plan("if (a) { if (b) m++; else m--; } else { if (m) a = 1; }",
				   "counter", "entry", &mdl, &plan, &error),
			 0);
	for (uint32_t i = 0; i < plan.snippets[0]->n; i++) {
		const struct snippet_insn *insn = &plan.snippets[0]->insn[i];

		if (insn->op == OP_JUMP || insn->op == OP_UNLESS)
			assert_in_range(insn->at, i + 1, plan.snippets[0]->n);
	}
	plan_free(&plan);
	mdl_free(&mdl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expressions_are_those_of_c),
		cmocka_unit_test(divisions_that_trap_do_not),
		cmocka_unit_test(statements_run_in_order),
		cmocka_unit_test(arguments_are_those_of_the_abi),
		cmocka_unit_test(memory_is_read_or_0),
		cmocka_unit_test(timers_add_up_the_outermost_spans),
		cmocka_unit_test(wrong_code_is_refused_at_its_place),
		cmocka_unit_test(jumps_lead_forward),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
