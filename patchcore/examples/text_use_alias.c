/* SPDX-License-Identifier: MIT */
/* Patch code that a program has mapped twice itself: executable here, and writable there. */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <patchcore/patchcore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

struct jit {
	uint8_t *code;
	uint8_t *writable;
};

/* mov eax, number: five bytes inside one 8-byte word, so one store changes them anywhere. */
static void make_load(uint8_t code[5], uint32_t number)
{
	code[0] = 0xb8;
	memcpy(code + 1, &number, sizeof(number));
}

static int make_function(struct jit *jit)
{
	int fd = memfd_create("jit", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, PAGE) < 0)
		return -1;
	jit->code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	jit->writable = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (jit->code == MAP_FAILED || jit->writable == MAP_FAILED)
		return -1;
	make_load(jit->writable, 1);
	jit->writable[5] = 0xc3; /* ret */
	return 0;
}

int main(void)
{
	struct jit jit;
	uint8_t load[5];
	int number, ret;

	if (make_function(&jit) < 0)
		return puts("no memory that can be mapped twice"), 77;
	ret = pc_init();
	if (ret == 0)
		ret = pc_text_use_alias(jit.code, PAGE, jit.writable);
	make_load(load, 2);
	/* Written at jit.writable, and run at jit.code. */
	if (ret == 0)
		ret = pc_patch(jit.code, load, sizeof(load));
	if (ret == 0)
		ret = pc_text_close(jit.code, PAGE);
	if (ret < 0)
		printf("not patched: %s\n", strerror(-ret));
	number = ((int (*)(void))(void *)jit.code)();
	printf("the function returns %d\n", number);
	return ret == 0 && number == 2 ? 0 : 1;
}
