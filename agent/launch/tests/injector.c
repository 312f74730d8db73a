/* SPDX-License-Identifier: MIT */
/*
 * Puts a library into a process again and again. With BROKEN set it forgets something on purpose,
 *and the process is to notice.
 *
 * With KILL=N it is killed behind the N-th step: a ptrace(2), or a change of memory. With LATE set
 * those behind the first change of memory count.
 *
 *	injector PID LIBRARY TIMES
 */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <unistd.h>

#include "agent/launch/inject.h"
#include "agent/launch/target.h"

#define NOHAND	  514
#define TIMES_MAX 1000

long __real_ptrace(enum __ptrace_request request, pid_t pid, void *addr, void *data);
long __wrap_ptrace(enum __ptrace_request request, pid_t pid, void *addr, void *data);

static struct user_regs_struct had;

static bool breaks(const char *what)
{
	const char *broken = getenv("BROKEN");

	return broken && !strcmp(broken, what);
}

ssize_t __real_pwrite64(int fd, const void *from, size_t len, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *from, size_t len, off_t at);
ssize_t __real_pwrite(int fd, const void *from, size_t len, off_t at);
ssize_t __wrap_pwrite(int fd, const void *from, size_t len, off_t at);

static int steps;
static bool changed; /* memory */

static void count_step(void)
{
	const char *last = getenv("KILL"), *late = getenv("LATE");

	if (last && (changed || !late || !*late) && ++steps == atoi(last))
		raise(SIGKILL);
}

/* In place of XRSTOR64 with a displacement come NOPs. */
static const void *spoil_code(const void *code, size_t len)
{
	static const uint8_t xrstor[] = { 0x48, 0x0f, 0xae, 0xab };
	static uint8_t copy[65536];
	uint8_t *found;

	if (!breaks("vectors") || len > sizeof(copy))
		return code;
	memcpy(copy, code, len);
	found = memmem(copy, len, xrstor, sizeof(xrstor));
	if (found)
		memset(found, 0x90, sizeof(xrstor) + 4);
	return copy;
}

ssize_t __wrap_pwrite64(int fd, const void *from, size_t len, off_t at)
{
	ssize_t ret = __real_pwrite64(fd, spoil_code(from, len), len, at);

	count_step();
	changed = true;
	return ret;
}

ssize_t __wrap_pwrite(int fd, const void *from, size_t len, off_t at)
{
	ssize_t ret = __real_pwrite(fd, spoil_code(from, len), len, at);

	count_step();
	changed = true;
	return ret;
}

/* Registers that are given back, or those of a call. */
static void spoil(struct user_regs_struct *regs)
{
	bool is_return = regs->rip == had.rip;

	if (is_return && breaks("registers"))
		regs->r14++;
	if (is_return && breaks("call"))
		regs->orig_rax = UINT64_MAX;
	if (is_return && breaks("eintr") && (long)regs->rax == -NOHAND)
		regs->rax = (uint64_t)-EINTR;
	/* The code is called there: on the stack of the thread, red zone and all. */
	if (!is_return && breaks("stack") && !(regs->rip & 4095))
		regs->rsp = had.rsp & ~UINT64_C(15);
}

static long change_ptrace(enum __ptrace_request request, pid_t pid, void *addr, void *data)
{
	struct user_regs_struct regs;
	long ret;

	if (request == PTRACE_SETREGS) {
		regs = *(struct user_regs_struct *)data;
		spoil(&regs);
		return __real_ptrace(request, pid, addr, &regs);
	}
	ret = __real_ptrace(request, pid, addr, data);
	if (request == PTRACE_SEIZE)
		had = (struct user_regs_struct){ 0 };
	if (request == PTRACE_GETREGS && !had.rip)
		had = *(struct user_regs_struct *)data;
	return ret;
}

long __wrap_ptrace(enum __ptrace_request request, pid_t pid, void *addr, void *data)
{
	long ret = change_ptrace(request, pid, addr, data);

	count_step();
	return ret;
}

static int compare_times(const void *a, const void *b)
{
	double one = *(const double *)a, two = *(const double *)b;

	return (one > two) - (one < two);
}

static void print_times(double *stopped, int times, unsigned attempts)
{
	qsort(stopped, (size_t)times, sizeof(*stopped), compare_times);
	printf("%d times: %u moments looked at, stopped %.3f ms in the middle, 95 of 100 below "
	       "%.3f, "
	       "%.3f at most\n",
	       times, attempts, stopped[times / 2] * 1e3, stopped[(times * 95 - 1) / 100] * 1e3,
	       stopped[times - 1] * 1e3);
}

int main(int argc, char **argv)
{
	static double stopped[TIMES_MAX];
	unsigned attempts = 0;
	int times;

	if (argc != 4 || atoi(argv[3]) < 1 || atoi(argv[3]) > TIMES_MAX)
		return 2;
	times = atoi(argv[3]);
	for (int i = 0; i < times; i++) {
		struct inject inject = {
			.pid = atoi(argv[1]),
			.library = argv[2],
			.entry = "guest",
			.text = "eleven char",
		};
		int ret;

		/* Where the process gets little CPU, it is seldom at another place. */
		for (int k = 0; k < 15; k++) {
			inject.why[0] = '\0';
			ret = inject_library(&inject);
			if (ret != -EAGAIN && ret != -ETIMEDOUT)
				break;
		}
		if (ret || inject.result != 11) {
			printf("%d of %d: %s, %s, result %d\n", i, times, strerror(-ret),
			       inject.why, inject.result);
			return 1;
		}
		stopped[i] = inject.stopped;
		attempts += inject.attempts;
	}
	print_times(stopped, times, attempts);
	return 0;
}
