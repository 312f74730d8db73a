/* SPDX-License-Identifier: MIT */
/*
 * refused plain|undumpable|filtered|traced: says "ready", and is what fastinst cannot attach to,
 * until its input ends. 9: that cannot be had here.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static int filter(void)
{
	struct sock_filter all[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog program = { 1, all };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* By a child, which ends with what it reads from. */
static int be_traced(void)
{
	int ready[2], hold[2];
	char byte;

	if (pipe(ready) || pipe(hold))
		return 1;
	if (!fork()) {
		close(hold[1]);
		if (ptrace(PTRACE_SEIZE, getppid(), NULL, NULL) || write(ready[1], "", 1) != 1)
			_exit(1);
		_exit(read(hold[0], &byte, 1) != 0);
	}
	close(ready[1]);
	close(hold[0]);
	return read(ready[0], &byte, 1) != 1;
}

int main(int argc, char **argv)
{
	char byte;

	if (argc != 2 || (!strcmp(argv[1], "undumpable") && prctl(PR_SET_DUMPABLE, 0)) ||
	    (!strcmp(argv[1], "filtered") && filter()) ||
	    (!strcmp(argv[1], "traced") && be_traced()))
		return 9;
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
