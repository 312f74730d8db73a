/* SPDX-License-Identifier: MIT */
#include "marker_sample.h"

#ifdef MAIN
#include <stdio.h>

static int add_one(int n)
{
	return n + 1;
}

static int add_ten(int n)
{
	return n + 10;
}

FI_CALL_DEFINE(step, add_one);

static int seen;

static void on_marker(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	(void)id;
	(void)site;
	(void)regs;
	(void)data;
	seen++;
}

static int all(int n)
{
	int sum = shared_inline(n) + shared_inline(n + 1) + other_file(n);

#ifdef __cplusplus
#if __cplusplus >= 201103L
	int left = 0;

	for (int i = 0; i < 2; i++) {
		guard g = { left };

		if (fi_branch(sample, twice))
			continue;
		sum += in_template(100);
	}
	sum += left;
#else
	sum += 2 * in_template(100) + 2;
#endif
	sum += (int)in_template(100L) - 100;
#else
	sum += 202;
#endif
	return fi_call(step, sum);
}

static int fail(const char *what, long got)
{
	printf("%s: %ld\n", what, got);
	return 1;
}

int main(void)
{
	uint32_t ids[32];
	int off = all(3), on;
	long n;

	if (off != 3 + 4 + 3 + 202 + 1)
		return fail("without the library", off);
	if (fi_init() || all(3) != off)
		return fail("after fi_init()", all(3));
	n = fi_find("sample.*", ids, 32);
	if (n < 3)
		return fail("markers", n);
	if (fi_activate_batch(ids, (size_t)n, on_marker) || all(3) != off || seen < 3)
		return fail("with markers", seen);
	n = fi_branch_on("sample.twice");
	on = all(3);
#if defined(__cplusplus) && __cplusplus >= 201103L
	on += 200;
#endif
	if (n != 1 || on != 6 + 8 + 6 + 202 + 1)
		return fail("with branches", on);
	if (fi_call_set(step, add_ten) || fi_branch_off("sample.*") < 1)
		return fail("calls", 0);
	printf("%d markers\n", seen);
	return 0;
}

#else

int other_file(int n)
{
	FI_MARKER(sample, other, n);
	return shared_inline(n);
}

#endif
