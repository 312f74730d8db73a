/* SPDX-License-Identifier: MIT */
/*
 * Markers of this program: what is told of them, counts, arguments, semaphores, and those that
 * cannot be used.
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "probes/include/fastinst/args.h"

#define _SDT_HAS_SEMAPHORES
extern unsigned short unit_watched_semaphore;
#include "probes/include/fastinst/compat/sys/sdt.h"

unsigned short unit_watched_semaphore __attribute__((section(".probes")));

static int global = -7;
static struct {
	unsigned narrow : 3;
} bits = { 5 };

__attribute__((noinline)) static int all_kinds(int a, char b, unsigned short c, long d,
					       const char *text, double number)
{
	char array[] = "array";

	FI_MARKER(unit, kinds, a, b, c, d, text, number, array, 42, global, bits.narrow, -1L,
		  (unsigned char)(a + 200));
	return a + b + c + (int)d + array[0];
}

/* All registers that a compiler may use are in use. */
__attribute__((noinline)) static long pressure(long a, long b, long c, long d, long e, long f)
{
	long g = a * b, h = b * c, i = c * d, j = d * e, k = e * f, l = f * a;

	FI_MARKER(unit, pressure, a, b, c, d, e, f, g, h, i, j, k, l);
	return a + b + c + d + e + f + (g ^ h ^ i ^ j ^ k ^ l);
}

static inline __attribute__((always_inline)) int inlined(int n)
{
	FI_MARKER(unit, inlined, n);
	return n + 1;
}

__attribute__((noinline)) static int twice(int n)
{
	return inlined(n) + inlined(n + 100);
}

__attribute__((noinline)) static void watched(int n)
{
	if (__builtin_expect(unit_watched_semaphore, 0))
		STAP_PROBE1(unit, watched, n);
}

/* As SystemTap's header makes them. */
__attribute__((noinline)) static void foreign(void)
{
	__asm__ volatile("990:\tnop\n" FI_NOTE("0", "unit", "foreign", "") "\tmov %%eax, %%eax" ::
				 : "eax");
}

static struct fi_probe found(const char *name)
{
	struct fi_probe probe;

	for (uint32_t id = 0; id < fi_probes(); id++)
		if (fi_get(id, &probe) == 0 && strcmp(probe.function, name) == 0)
			return probe;
	fail_msg("no marker %s", name);
	return probe;
}

static uint32_t only(const char *name)
{
	uint32_t id;

	assert_int_equal(fi_find(name, &id, 1), 1);
	return id;
}

/* --- What probe functions saw ----------------------------------------------------------------- */

static int64_t args[12];
static int rets[12], arg_count, seen;
static uint64_t seen_regs[16];
static void *seen_data;

static void look(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	(void)site;
	seen++;
	seen_data = data;
	arg_count = fi_marker_args(id);
	for (int i = 0; i < arg_count; i++)
		rets[i] = fi_marker_arg(id, regs, (unsigned)i, &args[i]);
	rets[11] = arg_count < 12 ? fi_marker_arg(id, regs, (unsigned)arg_count, &args[11]) : 0;
	fi_marker_regs(id, regs, seen_regs);
}

static int start(void **state)
{
	(void)state;
	return fi_init();
}

static void told(void **state)
{
	struct fi_probe probe = found("unit.kinds");

	(void)state;
	assert_int_equal(probe.kind, FI_MARKER);
	assert_int_equal(probe.state, FI_OFF);
	assert_string_equal(probe.provider, "marker");
	assert_memory_equal(probe.address, "\x0f\x1f\x44\x00\x08", 5);
	assert_int_equal(((uint8_t *)probe.address)[-1], 0x90);
	assert_int_equal(fi_activate(probe.id, NULL), 0);
	assert_int_equal(*(uint8_t *)probe.address, 0xe9);
	assert_int_equal(fi_deactivate(probe.id), 0);
	assert_memory_equal(probe.address, "\x0f\x1f\x44\x00\x08", 5);
}

static void arguments(void **state)
{
	uint32_t id = only("unit.kinds");
	const double number = 2.5;
	char data;
	int got;

	(void)state;
	got = all_kinds(-3, 'x', 65535, 1L << 40, "text", number);
	assert_int_equal(fi_set_data(id, &data), 0);
	assert_int_equal(fi_activate(id, look), 0);
	seen = 0;
	assert_int_equal(all_kinds(-3, 'x', 65535, 1L << 40, "text", number), got);
	assert_int_equal(seen, 1);
	assert_ptr_equal(seen_data, &data);
	assert_int_equal(arg_count, 12);
	for (int i = 0; i < 12; i++)
		if (rets[i])
			fail_msg("argument %d: %s", i, fi_marker_refusal(id, (unsigned)i));
	assert_int_equal(args[0], -3);
	assert_int_equal(args[1], 'x');
	assert_int_equal(args[2], 65535);
	assert_int_equal(args[3], 1L << 40);
	assert_string_equal((const char *)args[4], "text");
	assert_memory_equal(&args[5], &number, sizeof(number));
	assert_int_equal(args[7], 42);
	assert_int_equal(args[8], -7);
	assert_int_equal(args[9], 5);
	assert_int_equal(args[10], -1);
	assert_int_equal(args[11], 197);
	assert_int_equal(fi_deactivate(id), 0);
	all_kinds(1, 2, 3, 4, "", 0);
	assert_int_equal(seen, 1);
}

static void every_register(void **state)
{
	static const int64_t wanted[] = { 2, 3, 5, 7, 11, 13, 6, 15, 35, 77, 143, 26 };
	uint32_t id = only("unit.pressure");
	long got = pressure(2, 3, 5, 7, 11, 13);

	(void)state;
	assert_int_equal(fi_activate(id, look), 0);
	memset(args, 0, sizeof(args));
	assert_int_equal(pressure(2, 3, 5, 7, 11, 13), got);
	assert_int_equal(arg_count, 12);
	assert_memory_equal(args, wanted, sizeof(wanted));
	/* The stack pointer of the function, which lies above this frame's end by no page. */
	assert_in_range((uintptr_t)__builtin_frame_address(0) - seen_regs[4], 0, 4096);
	assert_int_equal(fi_deactivate(id), 0);
	assert_int_equal(fi_marker_args(fi_probes()), -ENOENT);
	assert_int_equal(fi_marker_arg(id, NULL, 0, &args[0]), -EINVAL);
	assert_null(fi_marker_refusal(id, 0));
}

static void many_sites(void **state)
{
	uint32_t ids[8];
	long n = fi_find("unit.inlined", ids, 8);

	(void)state;
	assert_int_equal(n, 2);
	assert_int_equal(fi_activate_batch(ids, 2, look), 0);
	seen = 0;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(twice(i), 2 * i + 102);
	assert_int_equal(seen, 2000);
	assert_int_equal(fi_count(ids[0]), 1000);
	assert_int_equal(fi_count(ids[1]), 1000);
	assert_int_equal(fi_deactivate_batch(ids, 2), 0);
	twice(1);
	assert_int_equal(fi_count(ids[0]) + fi_count(ids[1]), 2000);
}

static void semaphores(void **state)
{
	uint32_t id = only("unit.watched");

	(void)state;
	watched(1);
	assert_int_equal(unit_watched_semaphore, 0);
	assert_int_equal(fi_activate(id, look), 0);
	assert_int_equal(fi_activate(id, NULL), 0);
	assert_int_equal(fi_activate(id, look), 0);
	assert_int_equal(unit_watched_semaphore, 1);
	watched(17);
	assert_int_equal(fi_count(id), 1);
	assert_int_equal(args[0], 17);
	assert_int_equal(fi_deactivate(id), 0);
	assert_int_equal(unit_watched_semaphore, 0);
}

static void refused(void **state)
{
	struct fi_probe probe = found("unit.foreign");
	uint32_t id;

	(void)state;
	foreign();
	assert_int_equal(probe.state, FI_REFUSED);
	assert_non_null(strstr(probe.reason, "1-byte NOP"));
	assert_int_equal(fi_activate(probe.id, NULL), -ENOTSUP);
	assert_int_equal(fi_find("unit.foreign", &id, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(told),		  cmocka_unit_test(arguments),
		cmocka_unit_test(every_register), cmocka_unit_test(many_sites),
		cmocka_unit_test(semaphores),	  cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
