/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "patchcore/machine/identity.h"

static const struct identity machine = {
	.vendor = "AuthenticAMD",
	.family = 25,
	.model = 17,
	.stepping = 1,
	.brand = "AMD EPYC",
	.microcode = "0x1000065",
	.hypervisor = "KVMKVMKVM",
	.cache_line = 64,
	.caches = "L1d 32K L1i 32K L2 1024K L3 32768K",
	.features = UINT64_C(0x244ece17f4957fac),
	.tsc_invariant = true,
	.tsc_khz = 2596140,
	.sockets = 1,
	.cores = 2,
	.cpus = 2,
	.kernel = "6.18.44",
};

static void fields_are_printed(void **state)
{
	static const char *const printed[][2] = {
		{ "vendor", "AuthenticAMD" },
		{ "family", "25" },
		{ "model", "17" },
		{ "stepping", "1" },
		{ "brand", "AMD EPYC" },
		{ "microcode", "0x1000065" },
		{ "hypervisor", "KVMKVMKVM" },
		{ "cache_line", "64" },
		{ "caches", "L1d 32K L1i 32K L2 1024K L3 32768K" },
		{ "features", "0x244ece17f4957fac" },
		{ "tsc_invariant", "yes" },
		{ "tsc_khz", "2596140" },
		{ "sockets", "1" },
		{ "cores", "2" },
		{ "cpus", "2" },
		{ "kernel", "6.18.44" },
	};
	struct identity back = { 0 };
	const char *name;
	char value[128];
	unsigned i;

	(void)state;
	for (i = 0; identity_field(&machine, i, &name, value, sizeof(value)); i++) {
		assert_true(i < sizeof(printed) / sizeof(printed[0]));
		assert_string_equal(name, printed[i][0]);
		assert_string_equal(value, printed[i][1]);
		assert_int_equal(identity_set(&back, name, value), 0);
	}
	assert_int_equal(i, sizeof(printed) / sizeof(printed[0]));
	assert_null(identity_differs(&machine, &back));
	assert_string_equal(machine.kernel, back.kernel);
}

static void a_short_buffer_is_not_overrun(void **state)
{
	char value[8] = "1234567";
	const char *name;

	(void)state;
	assert_true(identity_field(&machine, 4, &name, value, 4));
	assert_memory_equal(value,
			    "AMD\0"
			    "567",
			    8);
}

static void a_difference_is_named(void **state)
{
	static const struct {
		const char *name, *value;
	} changes[] = {
		{ "vendor", "GenuineIntel" },
		{ "family", "26" },
		{ "model", "18" },
		{ "stepping", "2" },
		{ "brand", "AMD EPYC 9004" },
		{ "microcode", "0x1000066" },
		{ "hypervisor", "none" },
		{ "cache_line", "128" },
		{ "caches", "unknown" },
		{ "features", "0x0123456789abcdef" },
		{ "tsc_invariant", "no" },
		{ "tsc_khz", "2000000" },
		{ "sockets", "2" },
		{ "cores", "1" },
		{ "cpus", "4" },
		{ "kernel", "6.1.0" },
	};
	const struct identity id = machine;
	char value[128];
	const char *name;
	unsigned i;

	(void)state;
	for (i = 0; identity_field(&id, i, &name, value, sizeof(value)); i++) {
		struct identity other = id;

		assert_true(i < sizeof(changes) / sizeof(changes[0]));
		assert_string_equal(name, changes[i].name);
		assert_null(identity_differs(&id, &other));
		assert_int_equal(identity_set(&other, name, changes[i].value), 0);
		if (strcmp(name, "kernel") == 0)
			assert_null(identity_differs(&id, &other));
		else
			assert_string_equal(identity_differs(&id, &other), name);
	}
	assert_int_equal(i, sizeof(changes) / sizeof(changes[0]));
}

static void tsc_may_differ_by_one_percent(void **state)
{
	static const struct {
		uint64_t a, b;
		bool differ;
	} pairs[] = {
		{ 2000000, 2020000, false }, { 2000000, 2020300, true },
		{ 2000000, 1980000, false }, { 2000000, 1979900, true },
		{ 2000000, 0, true },	     { 0, 0, false },
		{ UINT64_MAX, 1, true },     { UINT64_MAX, UINT64_MAX / 2, true },
	};
	struct identity a = machine, b = a;

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		a.tsc_khz = pairs[i].a;
		b.tsc_khz = pairs[i].b;
		assert_int_equal(identity_differs(&a, &b) != NULL, pairs[i].differ);
		assert_int_equal(identity_differs(&b, &a) != NULL, pairs[i].differ);
	}
}

static void hostile_values_are_refused(void **state)
{
	static const char *const numbers[] = { "",
					       "-1",
					       "+1",
					       " 1",
					       "1 ",
					       "01",
					       "0x10",
					       "1x",
					       "1.0",
					       "x",
					       "4294967296",
					       "1\n",
					       "18446744073709551616",
					       "99999999999999999999999" };
	static const char *const hashes[] = { "",
					      "0x",
					      "0x1",
					      "244ece17f4957fac",
					      "0x244ECE17F4957FAC",
					      "0x244ece17f4957fa",
					      "0x244ece17f4957facc",
					      "0x244ece17f4957fag",
					      "-0x44ece17f4957fac" };
	static const char *const flags[] = { "", "1", "0", "true", "YES", "yes ", "noo" };
	static const char *const texts[] = { "",    " a",    "a ",    "a  b", "a\tb",
					     "a\n", "a\x01", "a\xff", "a ;b" };
	static const struct {
		const char *field;
		const char *const *values;
		size_t count;
	} hostile[] = {
		{ "family", numbers, sizeof(numbers) / sizeof(numbers[0]) },
		{ "cpus", numbers, sizeof(numbers) / sizeof(numbers[0]) },
		{ "features", hashes, sizeof(hashes) / sizeof(hashes[0]) },
		{ "tsc_invariant", flags, sizeof(flags) / sizeof(flags[0]) },
		{ "brand", texts, sizeof(texts) / sizeof(texts[0]) },
		{ "kernel", texts, sizeof(texts) / sizeof(texts[0]) },
	};
	struct identity id = machine, before = id;

	(void)state;
	for (size_t h = 0; h < sizeof(hostile) / sizeof(hostile[0]); h++)
		for (size_t i = 0; i < hostile[h].count; i++)
			assert_int_equal(identity_set(&id, hostile[h].field, hostile[h].values[i]),
					 -EINVAL);
	assert_int_equal(identity_set(&id, "tsc_khz", "-1"), -EINVAL);
	assert_int_equal(identity_set(&id, "tsc_khz", "18446744073709551616"), -EINVAL);
	assert_int_equal(identity_set(&id, "colour", "red"), -ENOENT);
	assert_int_equal(identity_set(&id, "Vendor", "x"), -ENOENT);
	assert_memory_equal(&id, &before, sizeof(id));
}

static void overlong_text_is_refused(void **state)
{
	struct identity id = machine, before = id;
	static char text[5000];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	assert_int_equal(identity_set(&id, "brand", text), -EINVAL);
	text[sizeof(id.brand)] = '\0';
	assert_int_equal(identity_set(&id, "brand", text), -EINVAL);
	assert_memory_equal(&id, &before, sizeof(id));
	text[sizeof(id.brand) - 1] = '\0';
	assert_int_equal(identity_set(&id, "brand", text), 0);
	assert_string_equal(id.brand, text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_printed),
		cmocka_unit_test(a_short_buffer_is_not_overrun),
		cmocka_unit_test(a_difference_is_named),
		cmocka_unit_test(tsc_may_differ_by_one_percent),
		cmocka_unit_test(hostile_values_are_refused),
		cmocka_unit_test(overlong_text_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
