/* SPDX-License-Identifier: MIT */
/* Do the sites call what invoke says, each time, and is every row there? */
#include "bench/method/result.h"
#include "bench/tests/pass_test.h"

/* -1: another number than the passes; else which target they called. */
static int target_of(const struct pass_spec *spec)
{
	uint64_t calls[2];

	if (count_calls(spec, calls) < 0)
		return -1;
	if (calls[0] + calls[1] != TEST_PASSES || (calls[0] && calls[1]))
		return -1;
	return calls[1] ? 1 : 0;
}

static void every_site_calls_its_target(void **state)
{
	struct pass_spec spec[PASS_SPECS];
	size_t count = list_specs(spec, invoke, LENGTH(invoke));

	(void)state;
	assert_true(count <= PASS_SPECS);
	for (size_t i = 0; i < count; i++) {
		const char *target = spec[i].target;
		int expected = target && strcmp(target, "original") != 0;

		if (target_of(&spec[i]) != expected)
			fail_msg("%s, split %u, target %s", spec[i].name, spec[i].loop.split,
				 target ? target : "-");
	}
}

static void a_site_that_is_off_is_seen(void **state)
{
	struct pass_spec spec = { .name = "off", .loop.kind = LOOP_SITE };

	(void)state;
	spec.state = PASS_CALL_OFF;
	assert_int_equal(target_of(&spec), -1);
	spec.state = PASS_NOP;
	assert_int_equal(target_of(&spec), -1);
}

static bool through_stub(const struct pass_spec *spec)
{
	struct pc_call_info info;
	char why[BENCH_WHY];
	struct pass pass;
	bool own;

	assert_int_equal(pass_build(&pass, spec, why), 0);
	assert_int_equal(pc_call_get(&pass.call, &info), 0);
	assert_true(info.active);
	assert_ptr_equal(info.target, pass.far ? pass.far : pass.loop.target[1]);
	assert_int_equal(info.split, spec->loop.split);
	own = pass.call.own || pass.call.shared;
	pass_free(&pass);
	return own;
}

/* As the comment of invoke.c has it. */
static void stubs_are_where_they_are_told_to_be(void **state)
{
	(void)state;
	for (unsigned split = 0; split < LOOP_SITE_BYTES; split++) {
		struct pass_spec spec = { .name = "call",
					  .state = PASS_CALL_OTHER,
					  .loop = { LOOP_SITE, .split = split } };

		assert_int_equal(through_stub(&spec), split >= 2);
		spec.state = PASS_CALL_FAR;
		assert_true(through_stub(&spec));
	}
}

static void every_row_is_there(void **state)
{
	static const char *const targets[] = { "original", "other", "far" };
	static const char *const others[] = { "aligned", "flag", "pointer", "flag-pointer",
					      "direct" };
	struct bench_result result;

	(void)state;
	assert_int_equal(run_bench(bench_invoke.run, 1, &result), 0);
	assert_int_equal(result.rows, 2 * (3 * LOOP_SITE_BYTES + 5));
	for (unsigned b = 0; b < 2; b++)
		for (unsigned n = 0; n < 3; n++)
			for (unsigned split = 0; split < LOOP_SITE_BYTES; split++)
				assert_non_null(find_row(&result, "call", loop_split_name(split),
							 targets[n], bodies[b]));
	check_others(&result, others, 5);
	check_rows(&result, "call", 2 * PASS_SAMPLES, "direct");
	bench_result_free(&result);
}

/* --- The difference --------------------------------------------------------------------------- */

static void add_block(struct samples *s, double value)
{
	samples_add(s, value);
	samples_end_block(s);
}

/* A B B A with a drift of 1 per block, which is not to be seen in it. */
static void drift_is_no_difference(void **state)
{
	struct samples a = { 0 }, b = { 0 };
	struct bench_value over;
	double drift = 0;

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		add_block(&a, 103 + drift++);
		add_block(&b, 100 + drift++);
		add_block(&b, 100 + drift++);
		add_block(&a, 103 + drift++);
	}
	over = over_pairs(&a, &b);
	assert_true(over.median == 3 && over.low == 3 && over.high == 3);
	samples_free(&a);
	samples_free(&b);
	over = over_pairs(&a, &b);
	assert_true(isnan(over.median));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_site_calls_its_target),
		cmocka_unit_test(a_site_that_is_off_is_seen),
		cmocka_unit_test(stubs_are_where_they_are_told_to_be),
		cmocka_unit_test(every_row_is_there),
		cmocka_unit_test(drift_is_no_difference),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
