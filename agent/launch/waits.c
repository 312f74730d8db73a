/* SPDX-License-Identifier: MIT */
/* Whether a thread is where it may be made to call functions of its C library. */
#include "agent/launch/target.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>

#define STACK_MAX (UINT64_C(4) << 20) /* that is looked through for signal handlers */
#define STACKS	  2		      /* of one thread, and of its signal handlers */
#define USER_CODE 0x33		      /* the selector of 64-bit code */

/*
 * System calls that programs wait in, and that malloc and the loader make none of. Those that have
 * 1 go on as if nothing had been; those that have 2 say EINTR when a thread is stopped in them,
 * which inject.c sees to, but their time begins anew.
 */
static const signed char waits[] = {
	[SYS_read] = 1,	       [SYS_write] = 1,
	[SYS_readv] = 1,       [SYS_writev] = 1,
	[SYS_poll] = 1,	       [SYS_ppoll] = 1,
	[SYS_select] = 1,      [SYS_pselect6] = 1,
	[SYS_nanosleep] = 1,   [SYS_clock_nanosleep] = 1,
	[SYS_wait4] = 1,       [SYS_waitid] = 1,
	[SYS_pause] = 1,       [SYS_rt_sigsuspend] = 1,
	[SYS_accept] = 1,      [SYS_accept4] = 1,
	[SYS_recvfrom] = 1,    [SYS_recvmsg] = 1,
	[SYS_sendto] = 1,      [SYS_sendmsg] = 1,
	[SYS_flock] = 1,       [SYS_epoll_wait] = 2,
	[SYS_epoll_pwait] = 2, [SYS_rt_sigtimedwait] = 2,
	[SYS_semop] = 2,       [SYS_semtimedop] = 2,
	[SYS_msgrcv] = 2,      [SYS_msgsnd] = 2,
};

static int kind_of(long number, uint64_t second)
{
	if (number == SYS_futex)
		return (second & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET ? 0 : -1;
	return number >= 0 && number < (long)sizeof(waits) ? waits[number] - 1 : -1;
}

int target_sleeps(const struct target *target, pid_t thread)
{
	unsigned long second;
	char name[64];
	int fields;
	long number;
	FILE *file;

	snprintf(name, sizeof(name), "task/%d/syscall", (int)thread);
	file = target_file(target->pid, name);
	if (!file)
		return -1;
	fields = fscanf(file, "%ld %*s %lx", &number, &second);
	fclose(file);
	/* The line is "running", or empty: the thread has ended. */
	if (fields == 0)
		return 2;
	return fields == 2 && number >= 0 ? kind_of(number, second) : -1;
}

static const struct target_mapping *mapping_at(const struct target *target, uint64_t at)
{
	for (size_t i = 0; i < target->n; i++)
		if (at >= target->mappings[i].start && at < target->mappings[i].end)
			return &target->mappings[i];
	return NULL;
}

static bool has_no_lock(const struct target *target, uint64_t at)
{
	const struct target_mapping *mapping = mapping_at(target, at);

	return mapping && mapping->is_lock_free;
}

/* A signal frame, in words from the address that the handler returns to. */
#define FRAME_FLAGS    1
#define FRAME_LINK     2
#define FRAME_RSP      (6 + REG_RSP)
#define FRAME_RIP      (6 + REG_RIP)
#define FRAME_SEGMENTS (6 + REG_CSGSFS)
#define FRAME_WORDS    (FRAME_SEGMENTS + 1)

/* The stack from there on. */
struct stack_words {
	uint64_t *word;
	size_t n;
};

/*
 * Whether a signal frame begins there. The restorer's address alone does not tell: it is in the
 * argument of sigaction(2) as well.
 */
static bool is_frame(const struct target *target, const struct stack_words *stack, size_t i)
{
	const uint64_t *word = stack->word + i;
	bool is_restorer = false;

	for (size_t k = 0; k < target->restorers; k++)
		is_restorer |= target->restorer[k] == *word;
	return is_restorer && i + FRAME_WORDS <= stack->n && word[FRAME_FLAGS] <= 7 &&
	       !word[FRAME_LINK] && (word[FRAME_SEGMENTS] & 0xffff) == USER_CODE;
}

static bool is_agents(const struct target *target, uint64_t word)
{
	const struct target_mapping *mapping = mapping_at(target, word);

	return mapping && mapping->agent;
}

static const char agents[] = "it is in the agent's code, or comes back there";

/*
 * A signal handler may have interrupted malloc. Before the agent is unloaded, no word may point
 * into its code, on the stack that a handler has interrupted either; a stale word may look so, too.
 */
static const char *look_through(const struct target *target, uint64_t from, bool unloads,
				unsigned stacks)
{
	const struct target_mapping *mapping = mapping_at(target, from);
	size_t len = mapping && mapping->writable ? mapping->end - from : STACK_MAX + 1;
	struct stack_words stack = { .n = len / sizeof(*stack.word) };
	const char *why = NULL;

	if (stacks && len <= STACK_MAX)
		stack.word = malloc(len + 1);
	if (!stack.word || !target_read(target, from, stack.word, 8 * stack.n))
		why = "its stack is not where one was, or too long to look for signal handlers";
	for (size_t i = 0; !why && i < stack.n; i++) {
		const uint64_t *word = stack.word + i;

		if (unloads && is_agents(target, *word))
			why = agents;
		else if (!is_frame(target, &stack, i))
			continue;
		else if (!has_no_lock(target, word[FRAME_RIP]))
			why = "it is in a signal handler, which may have interrupted malloc";
		else if (unloads && word[FRAME_RSP] - from >= 8 * stack.n)
			why = look_through(target, word[FRAME_RSP] & ~UINT64_C(7), true,
					   stacks - 1);
	}
	free(stack.word);
	return why;
}

bool target_waits(const struct user_regs_struct *regs)
{
	return kind_of((long)regs->orig_rax, regs->rsi) >= 0;
}

const char *target_safe(const struct target *target, const struct user_regs_struct *regs,
			bool unloads)
{
	if (regs->cs != USER_CODE)
		return "it runs 32-bit code";
	if (target_loads(target))
		return "its loader is at work";
	if ((long)regs->orig_rax >= 0 && !target_waits(regs))
		return "it is in a system call that malloc or the loader may have made";
	if ((long)regs->orig_rax < 0 && !has_no_lock(target, regs->rip))
		return "it is in the C library, in its loader, or in an allocator";
	if (unloads && is_agents(target, regs->rip))
		return agents;
	return look_through(target, regs->rsp & ~UINT64_C(7), unloads, STACKS);
}
