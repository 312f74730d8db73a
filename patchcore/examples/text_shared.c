/* SPDX-License-Identifier: MIT */
/*
 * Patch code that other processes map, too: here a child, which does not run it meanwhile. Without
 * being asked to, the library refuses.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "example.h"

static int change(uint8_t *code)
{
	uint8_t load[5];
	int ret;

	put_load(load, 2);
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

/* What a child that is told when to look gets from the function. */
static int ask_child(uint8_t *code)
{
	int told[2], status = 0;
	char byte = 0;
	pid_t pid;

	if (pipe(told) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		_exit(read(told[0], &byte, 1) == 1 ? run(code) : 255);
	if (change(code) < 0 || write(told[1], &byte, 1) != 1)
		status = -1;
	close(told[1]);
	if (waitpid(pid, status < 0 ? NULL : &status, 0) != pid || status < 0)
		return -1;
	return WEXITSTATUS(status);
}

int main(void)
{
	uint8_t *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int number;

	if (code == MAP_FAILED || pc_init() < 0)
		skip("no shared code to be had");
	put_function(code, 1);
	close_code(code, PAGE);
	number = ask_child(code);
	printf("in the child the function returns %d\n", number);
	return number == 2 ? 0 : 1;
}
