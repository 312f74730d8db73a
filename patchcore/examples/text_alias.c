/* SPDX-License-Identifier: MIT */
/* Patch code that is never writable where it runs: no page is writable and executable. */
#include <errno.h>
#include <patchcore/patchcore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096

/* mov eax, number: five bytes inside one 8-byte word, so one store changes them anywhere. */
static void make_load(uint8_t code[5], uint32_t number)
{
	code[0] = 0xb8;
	memcpy(code + 1, &number, sizeof(number));
}

static uint8_t *make_function(void)
{
	uint8_t *code =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		return NULL;
	make_load(code, 1);
	code[5] = 0xc3; /* ret */
	return mprotect(code, PAGE, PROT_READ | PROT_EXEC) == 0 ? code : NULL;
}

static void tell_way(uint8_t *code)
{
	enum pc_text_way way;
	char reason[128];
	int ret = pc_text_way(code, PAGE, &way, reason, sizeof(reason));

	printf("%s: %s\n", ret == 0 ? "can be patched" : strerror(-ret), reason);
}

int main(void)
{
	uint8_t *code = make_function(), load[5];
	int ret = code ? pc_init() : -EACCES, number;

	if (ret == 0)
		tell_way(code);
	if (ret == 0)
		ret = pc_text_alias(code, PAGE);
	if (ret < 0) {
		printf("there is no alias to be had: %s\n", strerror(-ret));
		return ret == -EACCES ? 77 : 1;
	}
	tell_way(code);
	make_load(load, 2);
	ret = pc_patch(code, load, sizeof(load));
	if (ret < 0)
		printf("not patched: %s\n", strerror(-ret));
	/* Private memory again from here on; what was patched stays so. */
	if (ret == 0)
		ret = pc_text_close(code, PAGE);
	number = ((int (*)(void))(void *)code)();
	printf("the function returns %d\n", number);
	return ret == 0 && number == 2 ? 0 : 1;
}
