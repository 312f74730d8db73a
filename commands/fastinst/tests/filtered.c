/* SPDX-License-Identifier: MIT */
/*
 * filtered kill|errno PROGRAM...: runs it where a seccomp filter forbids membarrier and code that
 * is writable, by the end of the process or by EPERM. 9: there are no filters here.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int what = !strcmp(argv[1], "kill") ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM;
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, what),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 4, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, what),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = { sizeof(f) / sizeof(*f), f };
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (argc < 3 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		return 9;
	execvp(argv[2], argv + 2);
	return 8;
}
