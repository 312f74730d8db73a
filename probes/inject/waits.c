/* SPDX-License-Identifier: MIT */
/*
 * Whether a thread is where it may be made to call functions of its C library.
 */
#include "probes/inject/target.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>

#define STACK_MAX (UINT64_C(4) << 20) /* that is looked through for signal handlers */
#define USER_CODE 0x33		      /* the selector of 64-bit code */

/*
 * System calls that programs wait in, and that malloc and the loader make none of. The first go on
 * as if nothing had been; those of the second kind say EINTR when a thread is stopped in them,
 * which inject.c sees to, but their time begins anew.
 */
static int kind_of(long number, uint64_t second)
{
	switch (number) {
	case SYS_futex:
		return (second & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET ? 0 : -1;
	case SYS_read:
	case SYS_write:
	case SYS_readv:
	case SYS_writev:
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_pause:
	case SYS_rt_sigsuspend:
	case SYS_accept:
	case SYS_accept4:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_flock:
		return 0;
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_rt_sigtimedwait:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_msgrcv:
	case SYS_msgsnd:
		return 1;
	default:
		return -1;
	}
}

int target_sleeps(const struct target *target, pid_t thread)
{
	char name[64];
	FILE *file;
	unsigned long second;
	long number;
	int kind = -1;
	char line[256] = "";

	snprintf(name, sizeof(name), "task/%d/syscall", (int)thread);
	file = target_file(target->pid, name);
	if (!file)
		return -1;
	if (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "running", 7))
			kind = 2;
		else if (sscanf(line, "%ld %*s %lx", &number, &second) == 2 && number >= 0)
			kind = kind_of(number, second);
	}
	fclose(file);
	return kind;
}

static const struct piece *piece_at(const struct target *target, uint64_t at)
{
	for (size_t i = 0; i < target->n; i++)
		if (at >= target->pieces[i].start && at < target->pieces[i].end)
			return &target->pieces[i];
	return NULL;
}

static bool is_quiet(const struct target *target, uint64_t at)
{
	const struct piece *piece = piece_at(target, at);

	return piece && piece->quiet;
}

static bool is_restorer(const struct target *target, uint64_t word)
{
	for (size_t i = 0; i < target->restorers; i++)
		if (target->restorer[i] == word)
			return true;
	return false;
}

/* In words behind the address that a signal handler returns to, as the kernel puts them there. */
#define FRAME_FLAGS    1
#define FRAME_LINK     2
#define FRAME_RIP      (6 + REG_RIP)
#define FRAME_SEGMENTS (6 + REG_CSGSFS)
#define FRAME_WORDS    (FRAME_SEGMENTS + 1)

/* Whether a context that was interrupted stands there; the same address is in what sigaction(2)
 * got. */
static bool is_frame(const uint64_t *words)
{
	return words[FRAME_FLAGS] <= 7 && !words[FRAME_LINK] &&
	       (words[FRAME_SEGMENTS] & 0xffff) == USER_CODE;
}

/* The stack, for signal handlers: one may have interrupted malloc. */
static const char *handlers(const struct target *target, uint64_t from)
{
	const struct piece *stack = piece_at(target, from);
	const char *why = NULL;
	uint64_t *words;
	size_t n;

	if (!stack || !stack->writable)
		return "its stack is not where one was";
	if (stack->end - from > STACK_MAX)
		return "its stack is too long to be looked through for signal handlers";
	n = (stack->end - from) / sizeof(*words);
	words = malloc(n * sizeof(*words) + 1);
	if (!words || !target_read(target, from, words, n * sizeof(*words)))
		why = "its stack cannot be read";
	for (size_t i = 0; !why && i + FRAME_WORDS <= n; i++)
		if (is_restorer(target, words[i]) && is_frame(words + i) &&
		    !is_quiet(target, words[i + FRAME_RIP]))
			why = "it is in a signal handler, which may have interrupted malloc";
	free(words);
	return why;
}

bool target_waits(const struct user_regs_struct *regs)
{
	return kind_of((long)regs->orig_rax, regs->rsi) >= 0;
}

const char *target_safe(const struct target *target, const struct user_regs_struct *regs)
{
	int state;

	if (regs->cs != USER_CODE)
		return "it runs 32-bit code";
	if (!target_read(target, target->loader_state, &state, sizeof(state)) || state)
		return "its loader is at work";
	if ((long)regs->orig_rax >= 0 && !target_waits(regs))
		return "it is in a system call that malloc or the loader may have made";
	if ((long)regs->orig_rax < 0 && !is_quiet(target, regs->rip))
		return "it is in the C library, in its loader, or in an allocator";
	return handlers(target, regs->rsp & ~UINT64_C(7));
}
