/* SPDX-License-Identifier: MIT */
/*
 * Markers of <sys/sdt.h> with floating-point arguments, constants too: a probe function must read
 * the bits of each. For C and C++. 0, or 1: one was refused or read wrongly.
 */
#include <stdio.h>
#include <string.h>

#include <fastinst.h>
#include <fastinst/args.h>
#include <sys/sdt.h>

static const double in_constant = 7.5;
static volatile double in_memory = 4.25;
static float in_variable = 1.25f;

static void all(double d, float f)
{
	DTRACE_PROBE4(floating, constants, 1.5, -2.5, 0.0, in_constant);
	DTRACE_PROBE2(floating, single, 2.5f, -0.5f);
	DTRACE_PROBE4(floating, variables, d, d * 2, f, in_variable);
	DTRACE_PROBE2(floating, last, in_memory, 3);
}

#define ARGS 12
static int64_t values[ARGS];
static unsigned seen;
static int failed;

static void on_marker(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	int n = fi_marker_args(id);

	(void)site;
	(void)data;
	for (unsigned i = 0; (int)i < n && seen < ARGS; i++) {
		if (fi_marker_arg(id, regs, i, &values[seen++])) {
			printf("argument %u: %s\n", i, fi_marker_refusal(id, i));
			failed = 1;
		}
	}
}

static void expect(unsigned i, const void *bits, size_t size)
{
	int64_t value = 0;

	memcpy(&value, bits, size);
	if (values[i] == value)
		return;
	printf("%u: %llx, not %llx\n", i, (unsigned long long)values[i], (unsigned long long)value);
	failed = 1;
}

int main(void)
{
	static const double constants[] = { 1.5, -2.5, 0.0, 7.5 };
	static const float singles[] = { 2.5f, -0.5f };
	static const double variables[] = { 6.5, 13.0 };
	static const float more[] = { -3.5f, 1.25f };
	static const double last = 4.25;
	uint32_t ids[16];
	long n;

	all(6.5, -3.5f); /* for a debugger: before the library is there */
	if (fi_init() < 0)
		return 1;
	n = fi_find("floating.*", ids, 16);
	if (n < 4 || n > 16 || fi_activate_batch(ids, (size_t)n, on_marker))
		return 1;
	all(6.5, -3.5f);
	for (unsigned i = 0; i < 4; i++)
		expect(i, &constants[i], sizeof(*constants));
	for (unsigned i = 0; i < 2; i++) {
		expect(4 + i, &singles[i], sizeof(*singles));
		expect(6 + i, &variables[i], sizeof(*variables));
		expect(8 + i, &more[i], sizeof(*more));
	}
	expect(10, &last, sizeof(last));
	if (seen != ARGS || values[11] != 3)
		failed = 1;
	return failed;
}
