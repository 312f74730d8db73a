/* SPDX-License-Identifier: MIT */
/*
 * Memory is read and written by system calls: nothing tells where a stack ends, and
 * what lies behind may be unmapped at any moment.
 */
#include "patchcore/merge/frames.h"

#include <errno.h>
#include <stddef.h>
#include <sys/uio.h>

#include "patchcore/merge/others.h"

/* Of the frame: the restorer's address, and the context behind it. */
#define FRAME_RSP (8 + offsetof(ucontext_t, uc_mcontext.gregs) + REG_RSP * sizeof(greg_t))
#define FRAME_RIP (8 + offsetof(ucontext_t, uc_mcontext.gregs) + REG_RIP * sizeof(greg_t))
/* The kernel's context ends with a mask of 8 bytes, then comes siginfo. */
#define FRAME_SIGNAL (8 + offsetof(ucontext_t, uc_sigmask) + 8)
#define INFO_READ    32 /* bytes of siginfo, up to the value that it carries */

NOPATCH static bool is_restorer(const struct frames *frames, uintptr_t word)
{
	for (unsigned i = 0; i < frames->count; i++)
		if (frames->restorers[i] == word)
			return true;
	return false;
}

NOPATCH void frames_learn(struct frames *frames)
{
	struct kernel_action action;

	frames->count = 0;
	for (int i = 1; i <= KERNEL_SIGNALS; i++)
		if (kernel_action(i, NULL, &action) == 0 && (action.flags & KERNEL_RESTORER) &&
		    !is_restorer(frames, action.restorer))
			frames->restorers[frames->count++] = action.restorer;
}

NOPATCH static long transfer(long call, uintptr_t at, void *local, size_t size)
{
	struct iovec here = { local, size }, there = { (void *)at, size };

	return sys_call(call, sys_call(SYS_gettid), &here, 1, &there, 1, 0);
}

NOPATCH static uintptr_t word_at(uintptr_t at)
{
	uintptr_t word = 0;

	return transfer(SYS_process_vm_readv, at, &word, sizeof(word)) == sizeof(word) ? word : 0;
}

/*
 * Does the thread not go on behind this place? At the INT3 of a door it runs the door again. A
 * frame of the look itself is stale: a thread that is still on it has all signals blocked, and is
 * asked again when it has left it.
 */
NOPATCH static bool is_void(const struct frames_inside *inside, uintptr_t frame, uintptr_t pc)
{
	siginfo_t info;

	if (transfer(SYS_process_vm_readv, frame + FRAME_SIGNAL, &info, INFO_READ) != INFO_READ)
		return false;
	if (others_is_ours(info.si_code, (uintptr_t)info.si_value.sival_ptr))
		return true;
	return info.si_signo == SIGTRAP && info.si_code == SI_KERNEL &&
	       frames_is_door(inside, pc - 1);
}

/*
 * Also of what only looks like a frame (an old one, or a copy): that costs a search
 * in vain, while a real one must not be lost.
 */
NOPATCH static void add_stack(struct frames_search *search, uintptr_t sp)
{
	sp &= ~(uintptr_t)7;
	for (unsigned i = 0; i < search->stack_count; i++)
		if (sp - search->stacks[i] < FRAMES_REACH)
			return;
	if (sp && search->stack_count < FRAMES_STACKS)
		search->stacks[search->stack_count++] = sp;
}

NOPATCH int frames_visit(const struct frames *frames, struct frames_search *search, uintptr_t sp,
			 const struct frames_places *places, bool move)
{
	struct frames_inside *inside;
	uintptr_t frame, pc;
	int found = 0;

	search->stack_count = 0;
	add_stack(search, sp);
	for (unsigned i = 0; i < search->stack_count; i++) {
		uintptr_t at = search->stacks[i], end = at + FRAMES_REACH;
		long len = FRAMES_CHUNK;

		for (; at < end && len == (long)FRAMES_CHUNK; at += FRAMES_CHUNK) {
			len = transfer(SYS_process_vm_readv, at, search->words, FRAMES_CHUNK);
			if (len < 0 && len != -EFAULT)
				return -EACCES;
			for (size_t n = 0; len > 0 && n < (size_t)len / sizeof(*search->words);
			     n++) {
				if (!is_restorer(frames, search->words[n]))
					continue;
				frame = at + n * sizeof(*search->words);
				add_stack(search, word_at(frame + FRAME_RSP));
				pc = word_at(frame + FRAME_RIP);
				inside = frames_find(places, pc);
				if (!inside || (!move && is_void(inside, frame, pc)))
					continue;
				found++;
				if (move)
					transfer(SYS_process_vm_writev, frame + FRAME_RIP,
						 &inside->end, sizeof(inside->end));
				else
					frames_count(inside);
			}
		}
	}
	return found;
}
