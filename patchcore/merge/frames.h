/* SPDX-License-Identifier: MIT */
/*
 * Code that signal handlers have interrupted: the frames that the kernel has put
 * on a stack. Private. All is NOPATCH.
 *
 * A frame is known by its return address, which is the restorer that the handler
 * was installed with; the C library has one for all. A stack is searched up to its end, as far as
 * that is known (frames_top(), struct frames_stack), and for FRAMES_REACH bytes at most.
 */
#ifndef PATCHCORE_MERGE_FRAMES_H
#define PATCHCORE_MERGE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <ucontext.h>

#include "patchcore/syscall/kernel_signal.h"

#define FRAMES_REACH  (256u << 10) /* bytes per stack */
#define FRAMES_STACKS 24	   /* one leading to the next */
#define FRAMES_CHUNK  2048u	   /* bytes, read at once */

/* All that was ever learnt: a handler may still run when its signal has long been reset. */
struct frames {
	_Atomic(uintptr_t) restorers[KERNEL_SIGNALS]; /* up to the first 0 */
	_Atomic(bool) nests; /* some handler runs without its own signal blocked */
};

/* For the frames that are inside of a place. */
enum frames_mode {
	FRAMES_COUNT,
	FRAMES_MOVE, /* to the end of the place */
	FRAMES_FIND, /* and no more */
};

/* Where a thread is, and what is known of its stacks. */
struct frames_stack {
	uintptr_t sp;
	uintptr_t top; /* no stack of the thread reaches beyond this, if it begins below */
	uintptr_t alternate, alternate_end;
	uintptr_t looks_end; /* below, the thread may still be on the frame of a look */
};

/*
 * The places behind start and before end, but for the doors: bit i, an INT3 of ours
 * stands at start + i.
 */
struct frames_inside {
	uintptr_t start;
	uintptr_t end;
	unsigned doors;
	atomic_uint found;   /* threads and frames that were not moved out */
	struct merge *merge; /* the change of this place (merge.h) */
};

/* Such places of several changes, in order of address. None reaches into another. */
struct frames_places {
	struct frames_inside *inside;
	size_t n;
};

/* As the kernel has put it, up to the value that siginfo carries. */
struct frames_frame {
	uintptr_t restorer;
	char context[offsetof(ucontext_t, uc_sigmask) + sizeof(uint64_t)];
	char info[32];
};

/* What one search needs, for which the stack of a signal handler may be too small. */
struct frames_search {
	unsigned stack_count;
	bool is_full;
	struct {
		uintptr_t from, end;
		uintptr_t last; /* the highest that was taken for part of it */
	} stacks[FRAMES_STACKS];
	struct frames_frame frame;
	uintptr_t words[FRAMES_CHUNK / sizeof(uintptr_t)];
};

NOPATCH_INLINE bool frames_is_door(const struct frames_inside *inside, uintptr_t pc)
{
	return pc - inside->start < 32 && (inside->doors >> (pc - inside->start) & 1);
}

/* frames_find - the one that pc is in, or NULL. */
NOPATCH_INLINE struct frames_inside *frames_find(const struct frames_places *places, uintptr_t pc)
{
	size_t low = 0, high = places->n, mid;
	struct frames_inside *last;

	/* Below low they start before pc, from high on they do not. */
	while (low < high) {
		mid = low + (high - low) / 2;
		if (places->inside[mid].start < pc)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return NULL;
	last = &places->inside[low - 1];
	return pc < last->end && !frames_is_door(last, pc) ? last : NULL;
}

/*
 * frames_known - how much was learnt: if that is more than before a look, a thread may have been in
 * a handler that was taken for none.
 * frames_learn - add which restorers are in use now, and how handlers run: 64 system calls. What is
 * known then, or -EACCES: there are more restorers than can be kept.
 * By any number of threads at once.
 */
int frames_known(const struct frames *frames);
int frames_learn(struct frames *frames);

/*
 * frames_may_be - may a thread that blocks these signals be in a handler? There its signal is
 * blocked, unless the handler was installed with SA_NODEFER, or has let it in. The signal may have
 * been reset since, so that no signal is left out for having no handler.
 */
NOPATCH_INLINE bool frames_may_be(const struct frames *frames, uint64_t blocked)
{
	return blocked || frames->nests;
}

/*
 * frames_top - an address above the stack of a thread, 0: the calling one; 0 if none is known. The
 * C library keeps the list of robust mutexes with the thread's own data, at the top of the stack.
 * (That of the first thread is elsewhere, below its stack.)
 */
uintptr_t frames_top(pid_t tid);

/*
 * frames_visit - for every frame on the stack above sp, and on those that it leads
 * to: is its place inside one of them? search: memory to work with. Returns how many such there
 * were, or -EACCES: stacks cannot be read. -ELOOP: they are more than can be searched, old frames
 * may lead to any. Async-signal-safe.
 *
 * Frames of the library's own handlers, which have a restorer of their own, are passed over in two
 * cases. An executor that waits in our trap handler has a place behind the INT3 in its frame, but
 * goes back to it: so does the frame of an INT3 at a door. And a thread that was found inside by a
 * look leaves the frame of that behind; one that may still be on it (looks_end) is not passed over.
 */
int frames_visit(const struct frames *frames, struct frames_search *search,
		 const struct frames_stack *stack, const struct frames_places *places,
		 enum frames_mode mode);

#endif
