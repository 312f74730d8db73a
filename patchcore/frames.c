/* SPDX-License-Identifier: MIT */
/*
 * Memory is read and written by system calls: nobody knows where a stack ends, and
 * what lies behind may be unmapped at any moment.
 */
#include "patchcore/frames.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#define CHUNK  2048u /* bytes; handlers may run on small stacks */
#define STACKS 8     /* one leading to the next */

/* As the kernel has it. */
#define RESTORER_FLAG 0x04000000ul
struct kernel_action {
	uintptr_t handler;
	unsigned long flags;
	uintptr_t restorer;
	uint64_t mask;
};

/* Of the frame: the restorer's address, and the context behind it. */
#define FRAME_RSP (8 + offsetof(ucontext_t, uc_mcontext.gregs) + REG_RSP * sizeof(greg_t))
#define FRAME_RIP (8 + offsetof(ucontext_t, uc_mcontext.gregs) + REG_RIP * sizeof(greg_t))
/* The kernel's context ends with a mask of 8 bytes, then comes siginfo. */
#define FRAME_SIGNAL (8 + offsetof(ucontext_t, uc_sigmask) + 8)

void frames_learn(struct frames *frames)
{
	struct kernel_action action = { 0 };

	frames->count = 0;
	for (int i = 1; i <= FRAMES_SIGNALS; i++) {
		unsigned known = 0;

		if (syscall(SYS_rt_sigaction, i, NULL, &action, sizeof(action.mask)) < 0 ||
		    !(action.flags & RESTORER_FLAG))
			continue;
		while (known < frames->count && frames->restorers[known] != action.restorer)
			known++;
		if (known == frames->count)
			frames->restorers[frames->count++] = action.restorer;
	}
}

static bool is_restorer(const struct frames *frames, uintptr_t word)
{
	for (unsigned i = 0; i < frames->count; i++)
		if (frames->restorers[i] == word)
			return true;
	return false;
}

static long transfer(long call, uintptr_t at, void *local, size_t size)
{
	struct iovec here = { local, size }, there = { (void *)at, size };

	return syscall(call, getpid(), &here, 1ul, &there, 1ul, 0ul);
}

static uintptr_t word_at(uintptr_t at)
{
	uintptr_t word = 0;

	return transfer(SYS_process_vm_readv, at, &word, sizeof(word)) == sizeof(word) ? word : 0;
}

/* Is it that of an INT3? Then the place is one byte before. */
static bool is_trap(uintptr_t frame)
{
	int info[3] = { 0 }; /* si_signo, si_errno, si_code */

	return transfer(SYS_process_vm_readv, frame + FRAME_SIGNAL, info, sizeof(info)) ==
		       sizeof(info) &&
	       info[0] == SIGTRAP && info[2] == SI_KERNEL;
}

/* What one search looks for, and what it has found. */
struct search {
	const struct frames *frames;
	uintptr_t start;
	uintptr_t end;
	bool move;
	int found;
	uintptr_t stacks[STACKS]; /* where to search from */
	unsigned stack_count;
};

/*
 * Also of what only looks like a frame (an old one, or a copy): that costs a search
 * in vain, while a real one must not be lost.
 */
static void add_stack(struct search *search, uintptr_t sp)
{
	for (unsigned i = 0; i < search->stack_count; i++)
		if (sp - search->stacks[i] < FRAMES_REACH)
			return;
	if (sp && search->stack_count < STACKS)
		search->stacks[search->stack_count++] = sp;
}

static void meet_frame(struct search *search, uintptr_t frame)
{
	uintptr_t pc = word_at(frame + FRAME_RIP);

	add_stack(search, word_at(frame + FRAME_RSP) & ~(uintptr_t)7);
	if (pc <= search->start || pc >= search->end)
		return;
	if (!search->move && is_trap(frame))
		return;
	search->found++;
	if (search->move)
		transfer(SYS_process_vm_writev, frame + FRAME_RIP, &search->end,
			 sizeof(search->end));
}

/* From sp up. 0, or -EACCES. */
static int search_stack(struct search *search, uintptr_t sp)
{
	uintptr_t words[CHUNK / sizeof(uintptr_t)];

	for (uintptr_t at = sp; at < sp + FRAMES_REACH; at += CHUNK) {
		long len = transfer(SYS_process_vm_readv, at, words, CHUNK);

		if (len < 0)
			return errno == EFAULT ? 0 : -EACCES;
		for (size_t i = 0; i < (size_t)len / sizeof(*words); i++)
			if (is_restorer(search->frames, words[i]))
				meet_frame(search, at + i * sizeof(*words));
		if (len < (long)CHUNK)
			return 0;
	}
	return 0;
}

int frames_visit(const struct frames *frames, uintptr_t sp, uintptr_t start, uintptr_t end,
		 bool move)
{
	struct search search = { .frames = frames, .start = start, .end = end, .move = move };

	add_stack(&search, sp & ~(uintptr_t)7);
	for (unsigned i = 0; i < search.stack_count; i++) {
		int ret = search_stack(&search, search.stacks[i]);

		if (ret < 0)
			return ret;
	}
	return search.found;
}
