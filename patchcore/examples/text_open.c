/* SPDX-License-Identifier: MIT */
/* Patch many functions, and change the protection of their pages only once. */
#include <errno.h>
#include <patchcore/patchcore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum {
	COUNT = 1000,
	SLOT = 8,
	BYTES = COUNT * SLOT
};

/* mov eax, number: five bytes inside one 8-byte word, so one store changes them anywhere. */
static void make_load(uint8_t code[5], uint32_t number)
{
	code[0] = 0xb8;
	memcpy(code + 1, &number, sizeof(number));
}

static uint8_t *make_functions(void)
{
	uint8_t *code =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		return NULL;
	for (int i = 0; i < COUNT; i++) {
		make_load(code + i * SLOT, 1);
		code[i * SLOT + 5] = 0xc3; /* ret */
	}
	return mprotect(code, BYTES, PROT_READ | PROT_EXEC) == 0 ? code : NULL;
}

int main(void)
{
	uint8_t *code = make_functions(), load[5];
	int sum = 0, ret = pc_init();

	if (ret == 0)
		ret = code ? pc_text_open(code, BYTES) : -EACCES;
	if (ret < 0) {
		printf("code cannot be made writable: %s\n", strerror(-ret));
		return ret == -EACCES ? 77 : 1;
	}
	make_load(load, 2);
	for (int i = 0; i < COUNT && ret == 0; i++)
		ret = pc_patch(code + i * SLOT, load, sizeof(load));
	if (ret < 0)
		printf("not patched: %s\n", strerror(-ret));
	/* The pages are read-only again from here on. */
	ret = pc_text_close(code, BYTES);
	for (int i = 0; i < COUNT; i++)
		sum += ((int (*)(void))(void *)(code + i * SLOT))();
	printf("%d functions return %d\n", COUNT, sum);
	return ret == 0 && sum == 2 * COUNT ? 0 : 1;
}
