/* SPDX-License-Identifier: MIT */
/* Make a thousand changes at the price of few: they share their waits. */
#include <errno.h>
#include <patchcore/batch.h>
#include <patchcore/patchcore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum {
	COUNT = 1000,
	SLOT = 13, /* so that some of them straddle a word, and some do not */
	BYTES = COUNT * SLOT
};

static uint8_t load[COUNT][5];
static struct pc_op ops[COUNT];

/* mov eax, number */
static void make_load(uint8_t bytes[5], uint32_t number)
{
	bytes[0] = 0xb8;
	memcpy(bytes + 1, &number, sizeof(number));
}

static uint8_t *make_functions(void)
{
	uint8_t *code =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		return NULL;
	for (int i = 0; i < COUNT; i++) {
		make_load(code + i * SLOT, 0);
		code[i * SLOT + 5] = 0xc3; /* ret */
	}
	return mprotect(code, BYTES, PROT_READ | PROT_EXEC) == 0 ? code : NULL;
}

/* Each of them is made or not, independently of the others. */
static int count_wrong(const uint8_t *code)
{
	int wrong = 0;

	for (int i = 0; i < COUNT; i++) {
		int number = ((int (*)(void))(void *)(uintptr_t)(code + i * SLOT))();

		wrong += number != (ops[i].result == 0 ? i : 0);
	}
	return wrong;
}

int main(void)
{
	uint8_t *code = make_functions();
	int ret = pc_init(), refused = 0;

	if (!code)
		return puts("no memory that is executable"), 0;
	for (int i = 0; i < COUNT; i++) {
		make_load(load[i], (uint32_t)i);
		ops[i] = (struct pc_op){ code + i * SLOT, load[i], sizeof(load[i]), 0 };
	}
	/* One that is refused: INT3 as new code could not be told from a held site. */
	load[COUNT / 2][0] = 0xcc;
	if (ret == 0)
		ret = pc_patch_batch(ops, COUNT);
	for (int i = 0; i < COUNT; i++)
		refused += ops[i].result < 0;
	printf("first error: %s; %d of %d refused\n", strerror(-ret), refused, COUNT);
	return ret < 0 && refused >= 1 && count_wrong(code) == 0 ? 0 : 1;
}
