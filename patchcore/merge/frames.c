/* SPDX-License-Identifier: MIT */
/*
 * Memory is read and written by system calls: the end of a stack may be unknown, and
 * what lies behind may be unmapped at any moment.
 */
#include "patchcore/merge/frames.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

#include "patchcore/merge/others.h"

NOPATCH static bool is_restorer(const struct frames *frames, uintptr_t word)
{
	uintptr_t known = 1;

	for (unsigned i = 0; i < KERNEL_SIGNALS && known; i++) {
		known = load_relaxed(&frames->restorers[i]);
		if (word && known == word)
			return true;
	}
	return false;
}

NOPATCH static bool keep_restorer(struct frames *frames, uintptr_t restorer)
{
	bool is_kept = false;

	for (unsigned i = 0; i < KERNEL_SIGNALS && !is_kept; i++) {
		uintptr_t known = 0;

		is_kept = atomic_compare_exchange_strong(&frames->restorers[i], &known, restorer) ||
			  known == restorer;
	}
	return is_kept;
}

NOPATCH int frames_known(const struct frames *frames)
{
	int known = 0;

	while (known < KERNEL_SIGNALS && atomic_load(&frames->restorers[known]))
		known++;
	return known + atomic_load(&frames->nests);
}

NOPATCH int frames_learn(struct frames *frames)
{
	struct kernel_action action;

	for (int i = 1; i <= KERNEL_SIGNALS; i++) {
		/* Every handler needs a restorer; the C library keeps it when a signal is reset. */
		if (kernel_action(i, NULL, &action) < 0 || !(action.flags & KERNEL_RESTORER))
			continue;
		if (action.flags & SA_NODEFER)
			atomic_store(&frames->nests, true);
		if (!keep_restorer(frames, action.restorer))
			return -EACCES;
	}
	return frames_known(frames);
}

NOPATCH uintptr_t frames_top(pid_t tid)
{
	uintptr_t head = 0;
	size_t len = 0;

	return sys_call(SYS_get_robust_list, tid, &head, &len) == 0 ? head : 0;
}

/*
 * Does the thread not go on behind this place? Siginfo is read in frames of our own handlers only:
 * the kernel leaves it unwritten for a handler without SA_SIGINFO, and old bytes lie there.
 */
NOPATCH static bool is_void(const struct frames_frame *frame, const struct frames_inside *inside,
			    uintptr_t pc, bool may_be_live)
{
	const siginfo_t *info = (const void *)frame->info;

	if (frame->restorer != (uintptr_t)kernel_sigreturn)
		return false;
	if (others_is_ours(info->si_code, (uintptr_t)info->si_value.sival_ptr))
		return !may_be_live;
	return info->si_signo == SIGTRAP && info->si_code == SI_KERNEL &&
	       frames_is_door(inside, pc - 1);
}

/*
 * Also of what only looks like a frame (an old one, or a copy): that costs a search
 * in vain, while a real one must not be lost.
 */
NOPATCH static void add_stack(struct frames_search *search, const struct frames_stack *stack,
			      uintptr_t sp)
{
	/* A handler that has just returned to the restorer has the frame's first word below sp. */
	uintptr_t from = (sp & ~(uintptr_t)7) - sizeof(uintptr_t), end = from + FRAMES_REACH;

	if (!sp)
		return;
	for (unsigned i = 0; i < search->stack_count; i++)
		if (from >= search->stacks[i].from && from < search->stacks[i].end) {
			if (from > search->stacks[i].last)
				search->stacks[i].last = from;
			return;
		}
	search->is_full = search->stack_count == FRAMES_STACKS;
	if (search->is_full)
		return;
	if (from < stack->top && end > stack->top)
		end = stack->top;
	if (from >= stack->alternate && from < stack->alternate_end && end > stack->alternate_end)
		end = stack->alternate_end;
	search->stacks[search->stack_count].from = search->stacks[search->stack_count].last = from;
	search->stacks[search->stack_count++].end = end;
}

/* Is it inside a place? Then it is moved, or counted. */
NOPATCH static bool meet_frame(struct frames_search *search, const struct frames_stack *stack,
			       const struct frames_places *places, uintptr_t at,
			       enum frames_mode mode)
{
	struct frames_frame *frame = &search->frame;
	const greg_t *gregs =
		(const void *)&frame->context[offsetof(ucontext_t, uc_mcontext.gregs)];
	struct frames_inside *inside;
	uintptr_t pc;

	/* Not what the search itself has copied. */
	if (at - (uintptr_t)search < sizeof(*search) ||
	    sys_transfer(SYS_process_vm_readv, at, frame, sizeof(*frame)) != sizeof(*frame))
		return false;
	pc = (uintptr_t)gregs[REG_RIP];
	add_stack(search, stack, (uintptr_t)gregs[REG_RSP]);
	inside = frames_find(places, pc);
	if (!inside || is_void(frame, inside, pc, at < stack->looks_end))
		return false;
	if (mode == FRAMES_MOVE)
		sys_transfer(SYS_process_vm_writev,
			     at + ((uintptr_t)&gregs[REG_RIP] - (uintptr_t)frame), &inside->end,
			     sizeof(inside->end));
	else if (mode == FRAMES_COUNT)
		atomic_fetch_add(&inside->found, 1);
	return true;
}

/* How many such frames, or -EACCES. */
NOPATCH static int search_stack(const struct frames *frames, struct frames_search *search,
				const struct frames_stack *stack,
				const struct frames_places *places, unsigned index,
				enum frames_mode mode)
{
	uintptr_t from = search->stacks[index].from, at = from, end = search->stacks[index].end;
	long len = 0, size = 0;
	int found = 0;

	for (; at < end && len == size; at += (uintptr_t)len) {
		size = end - at < FRAMES_CHUNK ? (long)(end - at) : (long)FRAMES_CHUNK;
		len = sys_transfer(SYS_process_vm_readv, at, search->words, (size_t)size);
		if (len < 0 && len != -EFAULT)
			return -EACCES;
		for (size_t n = 0; len > 0 && n < (size_t)len / sizeof(*search->words); n++)
			if (is_restorer(frames, search->words[n]))
				found += meet_frame(search, stack, places,
						    at + n * sizeof(*search->words), mode);
		/* The word below sp is no part of a stack that is used to the last byte. */
		if (len < 0)
			len = at == from ? size = sizeof(uintptr_t) : 0;
	}
	/* Beyond what was read there is no stack. */
	search->stacks[index].end = at;
	return found;
}

NOPATCH int frames_visit(const struct frames *frames, struct frames_search *search,
			 const struct frames_stack *stack, const struct frames_places *places,
			 enum frames_mode mode)
{
	int found = 0, ret = 0;

	search->stack_count = 0;
	search->is_full = false;
	add_stack(search, stack, stack->sp);
	for (unsigned i = 0; i < search->stack_count && ret >= 0; i++) {
		ret = search_stack(frames, search, stack, places, i, mode);
		found += ret;
		/* Another stack was taken for part of this one: what leads there is sought. */
		for (unsigned j = 0; j <= i && ret >= 0; j++)
			if (search->stacks[i].last >= search->stacks[i].end)
				ret = search_stack(frames, search, stack, places, j, FRAMES_FIND);
	}
	/* Copies of frames, which another search might come upon. */
	for (size_t n = 0; n < sizeof(search->words) / sizeof(*search->words); n++)
		*(volatile uintptr_t *)&search->words[n] = 0;
	*(volatile uintptr_t *)&search->frame.restorer = 0;
	if (ret < 0)
		return ret;
	return search->is_full ? -ELOOP : found;
}
