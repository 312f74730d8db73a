/* SPDX-License-Identifier: MIT */
/*
 * The call sites of the Java virtual machine, if there is one. A machine takes seconds to start
 * and to warm up: below TMAX_STRESS_SCALE=1 it is one of the two.
 */
#include "stress/tests/peer_checks.h"

static void test_jvm_volatile(void **arg)
{
	(void)arg;
	check_all(peer_of("jvm-volatile"), true);
}

static void test_jvm_mutable(void **arg)
{
	const char *scale = getenv("TMAX_STRESS_SCALE");

	(void)arg;
	if (scale && strtod(scale, NULL) < 1)
		skip();
	check_all(peer_of("jvm-mutable"), true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jvm_volatile),
		cmocka_unit_test(test_jvm_mutable),
	};

	return cmocka_run_group_tests(tests, seat, unseat);
}
