/* SPDX-License-Identifier: MIT */
/*
 * Runs the functions of compared.c, whose compares are known: are they counted exactly, with their
 * operands, and not at all when they are off? "rounds": runs them so often, for fastinst to count.
 *
 * Operands are handed over with other bits above them than their own, as the ABI allows.
 */
#include <fastinst.h>
#include <fastinst/compare.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS	1000
#define GARBAGE (INT64_C(0x5a5a5a5a) << 32)

/* Compiled with other types: see GARBAGE. */
int same1(int64_t a, int64_t b);
int same2(int64_t a, int64_t b);
int same4(int64_t a, int64_t b);
int same8(int64_t a, int64_t b);
int is1(int64_t a, int64_t b);
int is2(int64_t a, int64_t b);
int is4(int64_t a, int64_t b);
int is8(int64_t a, int64_t b);
int chosen4(int64_t a, int64_t b);
int chosen8(int64_t a, int64_t b);
int same_float(float a, float b);
int same_double(double a, double b);

static const struct compare {
	const char *name;
	int (*run)(int64_t a, int64_t b);
	int64_t a, b;
	int operands;
	int64_t operand[2]; /* a constant first */
	unsigned bytes;
} compares[] = {
	{ "same1+*", same1, -5, 100, 2, { -5, 100 }, 1 },
	{ "same2+*", same2, -500, 20000, 2, { -500, 20000 }, 2 },
	{ "same4+*", same4, -5, 2000000000, 2, { -5, 2000000000 }, 4 },
	{ "same8+*", same8, -5, INT64_MAX, 2, { -5, INT64_MAX }, 8 },
	{ "is1+*", is1, -5, 0, 2, { 100, -5 }, 1 },
	{ "is2+*", is2, -500, 0, 2, { 10000, -500 }, 2 },
	{ "is4+*", is4, -5, 0, 2, { 1000000000, -5 }, 4 },
	{ "is8+*", is8, INT64_MIN, 0, 2, { 1000000000000000000, INT64_MIN }, 8 },
	{ "chosen4+*", chosen4, -5, 0, 1, { -5 }, 4 },
	{ "chosen8+*", chosen8, -5, 0, 1, { -5 }, 8 },
};

static const struct compare *running;
static uint64_t called, wrong;

static void on_compare(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	int64_t value;

	(void)site;
	(void)data;
	called++;
	wrong += fi_compare_args(id) != running->operands;
	for (int i = 0; i < running->operands; i++)
		wrong += fi_compare_arg(id, regs, (unsigned)i, &value) != 0 ||
			 value != running->operand[i];
	wrong += fi_compare_arg(id, regs, (unsigned)running->operands, &value) == 0;
}

/* The compare of a function; blocks have names of the same form. */
static uint32_t find(const char *name)
{
	uint32_t ids[16], found = UINT32_MAX;
	long n = fi_find(name, ids, 16);
	struct fi_probe probe;

	for (long i = 0; i < n && i < 16; i++) {
		if (fi_get(ids[i], &probe) || probe.kind != FI_COMPARE)
			continue;
		if (found != UINT32_MAX)
			return UINT32_MAX;
		found = ids[i];
	}
	return found;
}

static void run(const struct compare *compare)
{
	int64_t mask = compare->bytes == 8 ? INT64_C(-1) : UINT32_MAX;
	int64_t above = compare->bytes == 8 ? 0 : GARBAGE;

	running = compare;
	for (int i = 0; i < ROUNDS; i++)
		compare->run((compare->a & mask) | above, (compare->b & mask) | above);
}

/* One NOP stands there, or a TEST once it has been on, or the RET of a jump. */
static int is_off(uint32_t id)
{
	struct fi_probe probe;
	const uint8_t *code;

	if (fi_get(id, &probe))
		return 0;
	code = probe.address;
	return !memcmp(code, "\x0f\x1f\x44", 3) || !memcmp(code, "\x66\x0f\x1f\x44", 4) ||
	       code[code[0] == 0x67] == 0xa9 || *code == 0xc3;
}

static int check(const struct compare *compare)
{
	uint32_t id = find(compare->name);
	int failed = id == UINT32_MAX || !is_off(id);

	if (failed) {
		printf("%s: not found, or not off\n", compare->name);
		return 1;
	}
	called = wrong = 0;
	run(compare);
	failed = fi_count(id) != 0;
	if (fi_activate(id, on_compare))
		failed = 1;
	run(compare);
	failed |= fi_count(id) != ROUNDS || called != ROUNDS || wrong;
	if (fi_deactivate(id))
		failed = 1;
	run(compare);
	failed |= fi_count(id) != ROUNDS || called != ROUNDS || !is_off(id);
	if (failed)
		printf("%s: counted %llu, called %llu, wrong %llu\n", compare->name,
		       (unsigned long long)fi_count(id), (unsigned long long)called,
		       (unsigned long long)wrong);
	return failed;
}

static double first, second;

static void on_floats(uint32_t id, void *site, const struct fi_regs *regs, void *data, double xmm0,
		      double xmm1, double xmm2, double xmm3, double xmm4, double xmm5, double xmm6,
		      double xmm7)
{
	float half[2];

	(void)site;
	(void)regs;
	(void)data;
	(void)xmm2, (void)xmm3, (void)xmm4, (void)xmm5, (void)xmm6, (void)xmm7;
	called++;
	memcpy(&half[0], &xmm0, sizeof(*half));
	memcpy(&half[1], &xmm1, sizeof(*half));
	first = fi_compare_float(id) == 4 ? (double)half[0] : xmm0;
	second = fi_compare_float(id) == 4 ? (double)half[1] : xmm1;
}

/* gcc only: clang tells of no compare of floating point. */
static int check_floats(void)
{
	static const char *const names[] = { "same_float+*", "same_double+*" };
	static const int bytes[] = { 4, 8 };
	int failed = 0;

	failed |= fi_compare_float(find("same8+*")) != 0 || fi_compare_float(UINT32_MAX) >= 0;

	for (int i = 0; i < 2; i++) {
		uint32_t id = find(names[i]);

		if (id == UINT32_MAX)
			continue;
		puts("floats");
		failed |= fi_compare_args(id) != 0 || fi_compare_float(id) != bytes[i];
		failed |= fi_activate(id, fi_vectors(on_floats)) != 0;
		called = 0;
		for (int round = 0; round < ROUNDS; round++) {
			failed |= !same_float((float)round / 8, (float)round / 8) ||
				  same_double(round * 0.1, -1);
			failed |=
				first < round * (i ? 0.1 : 0.125) ||
				first > round * (i ? 0.1 : 0.125) ||
				(i ? second < -1 || second > -1 : second < first || second > first);
		}
		failed |= fi_deactivate(id) != 0 || fi_count(id) != ROUNDS || called != ROUNDS;
	}
	if (failed)
		puts("floats: wrong");
	return failed;
}

static void run_floats(void)
{
	same_float(0.1f, -2);
	same_double(0.1, 1e300);
}

int main(int argc, char **argv)
{
	size_t n = sizeof(compares) / sizeof(*compares);
	int failed = 0;

	(void)argv;
	if (argc == 1 && fi_init())
		return 2;
	for (size_t i = 0; i < n; i++) {
		if (argc > 1)
			run(&compares[i]);
		else
			failed |= check(&compares[i]);
	}
	if (argc == 1)
		failed |= check_floats();
	else
		run_floats();
	return failed;
}
