/* SPDX-License-Identifier: MIT */
/*
 * Patch code that other processes map, too: here a child, which does not run it meanwhile. Without
 * being asked to, the library refuses.
 */
#include <signal.h>
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

/* What a child gets from the function, which stops until the function is changed. */
static int ask_child(uint8_t *code)
{
	int status = 0, ret;
	pid_t pid = fork();

	if (pid == 0) {
		raise(SIGSTOP);
		_exit(run(code));
	}
	waitpid(pid, NULL, WUNTRACED);
	ret = change(code);
	kill(pid, SIGCONT);
	return waitpid(pid, &status, 0) == pid && ret == 0 ? WEXITSTATUS(status) : -1;
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
