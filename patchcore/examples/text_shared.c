/* SPDX-License-Identifier: MIT */
/*
 * Patch code that other processes map, too: here a child, which does not run it meanwhile. Without
 * being asked to, the library refuses.
 */
#include <errno.h>
#include <patchcore/patchcore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

/* mov eax, number: five bytes inside one 8-byte word, so one store changes them anywhere. */
static void make_load(uint8_t code[5], uint32_t number)
{
	code[0] = 0xb8;
	memcpy(code + 1, &number, sizeof(number));
}

static uint8_t *make_function(void)
{
	uint8_t *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		return NULL;
	make_load(code, 1);
	code[5] = 0xc3; /* ret */
	return mprotect(code, PAGE, PROT_READ | PROT_EXEC) == 0 ? code : NULL;
}

/* What a child that is told when to look gets from the function. */
static int ask_child(int (*function)(void), int (*change)(void *), void *code)
{
	int told[2], status = 0;
	char byte = 0;
	pid_t pid;

	if (pipe(told) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		_exit(read(told[0], &byte, 1) == 1 ? function() : 255);
	if (change(code) < 0 || write(told[1], &byte, 1) != 1)
		status = -1;
	close(told[1]);
	if (waitpid(pid, status < 0 ? NULL : &status, 0) != pid || status < 0)
		return -1;
	return WEXITSTATUS(status);
}

static int change(void *code)
{
	uint8_t load[5];
	int ret;

	make_load(load, 2);
	ret = pc_patch(code, load, sizeof(load));
	printf("unasked: %s\n", strerror(-ret));
	if (ret != -EPERM)
		return -1;
	ret = pc_text_open_shared(code, PAGE);
	if (ret == 0) {
		ret = pc_patch(code, load, sizeof(load));
		pc_text_close(code, PAGE);
	}
	return ret;
}

int main(void)
{
	uint8_t *code = make_function();
	int number;

	if (!code || pc_init() < 0)
		return puts("no shared code to be had"), 77;
	number = ask_child((int (*)(void))(void *)code, change, code);
	printf("in the child the function returns %d\n", number);
	return number == 2 ? 0 : 1;
}
