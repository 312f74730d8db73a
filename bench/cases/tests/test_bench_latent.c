/* SPDX-License-Identifier: MIT */
/* Are the sites off that latent calls off, and is every row there? */
#include "bench/tests/pass_test.h"

/* What so many passes of it call. */
static bool is_off(const struct pass_spec *spec)
{
	uint64_t calls[2];
	int ret = count_calls(spec, calls);

	if (ret == -ENOTSUP)
		return true;
	assert_int_equal(ret, 0);
	return calls[0] == 0 && calls[1] == 0;
}

static void every_site_is_off(void **state)
{
	struct pass_spec spec[PASS_SPECS];
	size_t count = list_specs(spec, latent, LENGTH(latent));

	(void)state;
	assert_true(count <= PASS_SPECS);
	for (size_t i = 0; i < count; i++) {
		bool calls =
			strcmp(spec[i].name, "pointer") == 0 || strcmp(spec[i].name, "direct") == 0;

		if (is_off(&spec[i]) == calls)
			fail_msg("%s, split %u", spec[i].name, spec[i].loop.split);
	}
}

/* Those that are on, so that the test above can fail. */
static void a_site_that_is_on_is_seen(void **state)
{
	static const enum pass_state on[] = { PASS_BUILT, PASS_PATCHED, PASS_CALL_ON };
	struct pass_spec spec = { .name = "on", .loop.kind = LOOP_SITE };

	(void)state;
	for (size_t i = 0; i < sizeof(on) / sizeof(*on); i++) {
		spec.state = on[i];
		assert_false(is_off(&spec));
	}
	spec = (struct pass_spec){ .name = "flag", .loop.kind = LOOP_FLAG };
	assert_false(is_off(&spec));
}

/* The split of a row is where the site lies; the loop beside it begins behind that place. */
static void sites_and_baselines_lie_alike(void **state)
{
	char why[BENCH_WHY];

	(void)state;
	for (unsigned split = 0; split < LOOP_SITE_BYTES; split++) {
		struct pass_spec site = { .name = "s", .loop = { LOOP_SITE, .split = split } };
		struct pass_spec empty = { .name = "e", .loop = { LOOP_EMPTY, .split = split } };
		struct pass a, b;

		assert_int_equal(pass_build(&a, &site, why), 0);
		assert_int_equal(pass_build(&b, &empty, why), 0);
		assert_int_equal(((uintptr_t)a.loop.site + split) % 64, 0);
		assert_int_equal(((uintptr_t)a.loop.run + LOOP_SITE_BYTES) % 4096,
				 (uintptr_t)b.loop.run % 4096);
		pass_free(&a);
		pass_free(&b);
	}
}

static void every_row_is_there(void **state)
{
	static const char *const names[] = { "nop", "call" };
	static const char *const others[] = { "flag", "flag-pointer", "pointer", "direct",
					      "empty" };
	struct bench_result result;

	(void)state;
	assert_int_equal(run_bench(bench_latent.run, 2, &result), 0);
	assert_int_equal(result.rows, 2 * (2 * LOOP_SITE_BYTES + 5));
	for (unsigned b = 0; b < 2; b++)
		for (unsigned n = 0; n < 2; n++)
			for (unsigned split = 0; split < LOOP_SITE_BYTES; split++)
				assert_non_null(find_row(&result, names[n], loop_split_name(split),
							 NULL, bodies[b]));
	check_others(&result, others, 5);
	check_rows(&result, "pass", 2 * 2 * PASS_SAMPLES, "empty");
	assert_false(find_row(&result, "call", NULL, NULL, NULL)->peer);
	assert_true(find_row(&result, "flag", NULL, NULL, NULL)->peer);
	bench_result_free(&result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_site_is_off),
		cmocka_unit_test(a_site_that_is_on_is_seen),
		cmocka_unit_test(sites_and_baselines_lie_alike),
		cmocka_unit_test(every_row_is_there),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
