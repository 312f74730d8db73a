/* SPDX-License-Identifier: MIT */
/* Patch code that a program has mapped twice itself: executable here, and writable there. */
#define _GNU_SOURCE /* memfd_create() */
#include <unistd.h>

#include "example.h"

int main(void)
{
	int fd = memfd_create("jit", MFD_CLOEXEC), number, ret;
	uint8_t *code, *writable, load[5];

	if (fd < 0 || ftruncate(fd, PAGE) < 0)
		skip("no memory that can be mapped twice");
	code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	writable = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (code == MAP_FAILED || writable == MAP_FAILED)
		skip("no memory that can be mapped twice");
	put_function(writable, 1);
	ret = pc_init();
	if (ret == 0)
		ret = pc_text_use_alias(code, PAGE, writable);
	put_load(load, 2);
	/* Written where it is writable, and run at code. */
	if (ret == 0)
		ret = pc_patch(code, load, sizeof(load));
	if (ret == 0)
		ret = pc_text_close(code, PAGE);
	if (ret < 0)
		printf("not patched: %s\n", strerror(-ret));
	number = run(code);
	printf("the function returns %d\n", number);
	return ret == 0 && number == 2 ? 0 : 1;
}
