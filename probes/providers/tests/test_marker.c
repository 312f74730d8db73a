/* SPDX-License-Identifier: MIT */
/*
 * Markers of this program: what is told of them, counts, arguments, semaphores, and those that
 * cannot be used.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "probes/include/fastinst/args.h"
#include "probes/insn/insn.h"
#include "probes/providers/marker.h"

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

/*
 * Markers of other headers, in functions that keep sixteen words in the red zone: the name, where
 * in a line the marker begins, its code, and a word of the reason if it is refused.
 */
#define NOP5  "0x0f, 0x1f, 0x44, 0x00, 0x00"
#define NOP8  "0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00"
#define NOP10 "0x66, 0x2e, " NOP8
#define FORMS(row)                                                                                 \
	row(nop5, 3, NOP5, NULL) row(nop_nop5, 0, "0x90, " NOP5, NULL) row(                        \
		nop_nop10, 0, "0x90, " NOP10,                                                      \
		NULL) row(nop10, 9, NOP10,                                                         \
			  NULL) row(line_54, 54, "0x90, " NOP10,                                   \
				    NULL) row(line_55, 55, "0x90, " NOP10,                         \
					      NULL) row(line_56, 56, "0x90, " NOP10,               \
							NULL) row(line_57, 57, "0x90, " NOP10,     \
								  NULL) row(line_58, 58,           \
									    "0x90, " NOP10, NULL)  \
		row(line_59, 59, "0x90, " NOP10, NULL) row(line_60, 60, "0x90, " NOP10, NULL) row( \
			line_61, 61, "0x90, " NOP10,                                               \
			NULL) row(line_62, 62, "0x90, " NOP10,                                     \
				  NULL) row(cs_nop5, 0, "0x90, 0x2e, " NOP5,                       \
					    NULL) row(data16_nop5, 0, "0x90, 0x66, " NOP5, NULL)   \
			row(ds_nop4, 0, "0x90, 0x3e, 0x0f, 0x1f, 0x40, 0x00", NULL) row(           \
				fs_gs_nop5, 1, "0x90, 0x64, 0x65, " NOP5,                          \
				NULL) row(rex_nop5, 0, "0x90, 0x48, " NOP5,                        \
					  NULL) row(data16_nop1, 0,                                \
						    "0x90, 0x66, 0x66, 0x66, 0x66, 0x90", NULL)    \
				row(nop7, 1, "0x90, 0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00",     \
				    NULL) row(rip_nop7, 1,                                         \
					      "0x90, 0x0f, 0x1f, 0x05, 0x00, 0x00, 0x00, 0x00",    \
					      NULL) row(no_base_nop8, 1,                           \
							"0x90, 0x0f, 0x1f, 0x04, 0x25, 0x00, "     \
							"0x00, 0x00, 0x00",                        \
							NULL) row(nop9, 0, "0x90, 0x66, " NOP8,    \
								  NULL)                            \
					row(nop15, 3,                                              \
					    "0x90, 0x66, 0x66, 0x66, 0x66, 0x66, " NOP10,          \
					    NULL) row(nop3, 0, "0x90, 0x0f, 0x1f, 0x00",           \
						      "1-byte NOP") row(nop2, 0, "0x66, 0x90",     \
									"1-byte NOP")              \
						row(pause, 0, "0xf3, 0x90, 0x90, 0x90", "no NOP")  \
							row(exchange, 0, "0x45, 0x90, 0x45, 0x90", \
							    "no NOP") row(padding8, 2,             \
									  "0x90, " NOP5,           \
									  "padding")               \
								row(padding16, 5, "0x90, " NOP10,  \
								    "padding") row(padding_two, 0, \
										   "0x90, " NOP5   \
										   ", 0x66, 0x90", \
										   "padding")

#define EACH_WORD(insn)                                                                            \
	".irp at,8,16,24,32,40,48,56,64,72,80,88,96,104,112,120,128\n" insn ".endr\n"
/* clang-format off */
#define FORM_CODE(name, offset, code, why)                                                         \
	__asm__(".pushsection .text\n"                                                             \
		".type form_" #name ", @function\n"                                                \
		"form_" #name ":\n"                                                                \
		"	endbr64\n"                                                                \
		"	mov %rdi, %rax\n"                                                         \
		EACH_WORD("	add $1, %rax\n	mov %rax, -\\at(%rsp)\n")                            \
		"	xor %eax, %eax\n"                                                         \
		"	jmp 990f\n"                                                               \
		"	.p2align 6\n"                                                             \
		"	.skip " #offset "\n"                                                      \
		"990:	.byte " code "\n"                                                         \
		FI_NOTE("0", "form", #name, "8@%rdi 8@-128(%rsp)")                                 \
		EACH_WORD("	add -\\at(%rsp), %rax\n")                                            \
		"	ret\n"                                                                    \
		".size form_" #name ", . - form_" #name "\n"                                       \
		".popsection\n");                                                                  \
	long form_##name(long);
/* clang-format on */
FORMS(FORM_CODE)

static const struct form {
	const char *name;
	long (*run)(long);
	const char *why;
} forms[] = {
#define FORM_ROW(name, offset, code, why) { "form." #name, form_##name, why },
	FORMS(FORM_ROW)
};
#define FORMS_N (sizeof(forms) / sizeof(*forms))

static long sum_of_red_zone(long n)
{
	return 16 * n + 136;
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

/* --- Markers of other headers ----------------------------------------------------------------- */

static void trample(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	volatile char stack[1024];

	for (size_t i = 0; i < sizeof(stack); i++)
		stack[i] = (char)0xa5;
	look(id, site, regs, data);
}

static void every_form(void **state)
{
	(void)state;
	for (size_t i = 0; i < FORMS_N; i++) {
		struct fi_probe probe = found(forms[i].name);

		assert_int_equal(forms[i].run(7), sum_of_red_zone(7));
		if (probe.state != (forms[i].why ? FI_REFUSED : FI_OFF))
			fail_msg("%s: state %d, %s", forms[i].name, probe.state, probe.reason);
		if (forms[i].why) {
			assert_non_null(strstr(probe.reason, forms[i].why));
			continue;
		}
		assert_int_equal(fi_activate(probe.id, trample), 0);
		assert_int_equal(*(uint8_t *)probe.address, 0xe9);
		for (long n = 0; n < 100; n++) {
			assert_int_equal(forms[i].run(n), sum_of_red_zone(n));
			assert_int_equal(args[0], n);
			assert_int_equal(args[1], n + 16);
		}
		assert_int_equal(fi_count(probe.id), 100);
		assert_int_equal(fi_deactivate(probe.id), 0);
		assert_int_equal(forms[i].run(7), sum_of_red_zone(7));
		assert_int_equal(fi_count(probe.id), 100);
	}
}

static atomic_bool done;

static void *run_forms(void *wrong)
{
	for (long n = 0; !done; n++)
		for (size_t i = 0; i < FORMS_N; i++)
			*(long *)wrong += forms[i].run(n) != sum_of_red_zone(n);
	return NULL;
}

static void forms_while_they_run(void **state)
{
	uint32_t ids[FORMS_N];
	long n = fi_find("form.*", ids, FORMS_N), wrong = 0;
	pthread_t runner;

	(void)state;
	assert_in_range(n, 20, FORMS_N);
	assert_int_equal(pthread_create(&runner, NULL, run_forms, &wrong), 0);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(fi_activate_batch(ids, (size_t)n, trample), 0);
		assert_int_equal(fi_deactivate_batch(ids, (size_t)n), 0);
	}
	done = true;
	pthread_join(runner, NULL);
	assert_int_equal(wrong, 0);
}

/* By a decoder: what is said to be a NOP is one of that length. */
static void lengths_of_nops(void **state)
{
	static const uint8_t usual[] = { 0x66, 0x2e, 0x3e, 0x64, 0x48, 0x41, 0x0f, 0x1f,
					 0x44, 0x84, 0x00, 0x90, 0x05, 0x04, 0x25, 0x80 };
	uint64_t random = 1, nops = 0;
	uint8_t code[20];
	struct insn insn;

	(void)state;
	for (int i = 0; i < 3000000; i++) {
		size_t len, at = 0;

		for (size_t b = 0; b < sizeof(code); b++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			code[b] = random >> 62 ? usual[random >> 58 & 15] : (uint8_t)(random >> 50);
		}
		/* Most that begin so are some. */
		if (i % 2) {
			at = random >> 61;
			memset(code, 0x66, at);
			memcpy(code + at, "\x0f\x1f", 2);
		}
		len = nop_length(code, sizeof(code));
		if (!len)
			continue;
		nops++;
		assert_true(insn_read(&insn, code, sizeof(code), 0));
		assert_true(insn.is_nop);
		assert_int_equal(insn.len, len);
		assert_int_equal(nop_length(code, len), len);
		assert_int_equal(nop_length(code, len - 1), 0);
	}
	assert_true(nops > 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(told),
		cmocka_unit_test(arguments),
		cmocka_unit_test(every_register),
		cmocka_unit_test(many_sites),
		cmocka_unit_test(semaphores),
		cmocka_unit_test(refused),
		cmocka_unit_test(every_form),
		cmocka_unit_test(forms_while_they_run),
		cmocka_unit_test(lengths_of_nops),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
