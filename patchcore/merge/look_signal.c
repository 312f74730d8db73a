/* SPDX-License-Identifier: MIT */
/*
 * Handlers are set by exchange, since the program may set one at any moment: what was displaced
 * tells whether the signal was free, and is put back if not.
 */
#include "patchcore/merge/look_signal.h"

#include <errno.h>

#include "patchcore/merge/others.h"
#include "patchcore/site/thread.h"
#include "patchcore/syscall/kernel_signal.h"
#include "patchcore/syscall/task.h"

/* The signals that may be taken: not SIGRTMAX, which programs take first. */
#define SIGNAL_MIN TASK_REAL_TIME_MIN
#define SIGNAL_MAX (KERNEL_SIGNALS - 1)

/* The kernel takes these two out of every mask that it keeps. */
#define ALL_SIGNALS (~(kernel_bit(SIGKILL) | kernel_bit(SIGSTOP)))

int look_signal;

/* Set before any signal is taken. */
static _Atomic(uintptr_t) our_handler;

/*
 * Signals whose handler is ours, and was their program's default before. One is added
 * with the first round that needs it, and stays.
 */
static _Atomic(uint64_t) taken;

/* The one whose handler is being changed: it may be a program's, displaced for a moment. */
static _Atomic(int) settling;

/*
 * What some thread was seen to have a use for. Kept: one that has all signals blocked for a
 * moment, as in a handler, hides what it blocks besides.
 */
static _Atomic(uint64_t) known_used;

NOPATCH static uintptr_t handler_of(int signal)
{
	struct kernel_action now;

	return kernel_action(signal, NULL, &now) == 0 ? now.handler : (uintptr_t)SIG_ERR;
}

NOPATCH static bool is_our_handler(int signal)
{
	return signal && handler_of(signal) == load_relaxed(&our_handler);
}

/*
 * Put back what was displaced. Should the program have set another meanwhile, that is
 * what this displaces, and so it is put back in turn.
 */
NOPATCH static void put_back(int signal, struct kernel_action *displaced,
			     struct kernel_action *expected)
{
	struct kernel_action put = *displaced, found;

	while (kernel_action(signal, &put, &found) == 0 &&
	       (found.handler != expected->handler || found.flags != expected->flags ||
		found.mask != expected->mask)) {
		*expected = put;
		put = found;
	}
}

NOPATCH static bool take_signal(int signal)
{
	struct kernel_action ours = { .handler = load_relaxed(&our_handler),
				      .flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART |
					       KERNEL_RESTORER,
				      .restorer = (uintptr_t)kernel_sigreturn,
				      .mask = ALL_SIGNALS };
	struct kernel_action before;
	uint64_t mask = kernel_mask(SIG_BLOCK, ~UINT64_C(0));
	bool free = false;

	atomic_store(&settling, signal);
	if (kernel_action(signal, &ours, &before) == 0) {
		free = before.handler == (uintptr_t)SIG_DFL || before.handler == ours.handler;
		if (free)
			atomic_fetch_or(&taken, kernel_bit(signal));
		else
			put_back(signal, &before, &ours);
	}
	atomic_store(&settling, 0);
	kernel_mask(SIG_SETMASK, mask);
	return free;
}

NOPATCH void others_keep_off(uint64_t blocked)
{
	uint64_t used = task_uses(blocked, 0);

	if (used & ~load_relaxed(&known_used))
		atomic_fetch_or(&known_used, used);
}

/* The one of the last round if that will still do. */
NOPATCH static int choose_from(uint64_t used, uint64_t pending)
{
	if (is_our_handler(look_signal) && !(used & kernel_bit(look_signal)))
		return 0;
	for (int i = SIGNAL_MAX; i >= SIGNAL_MIN; i--) {
		if (used & kernel_bit(i))
			continue;
		/* What is pending is the library's own where its handler stands, else another's. */
		if (is_our_handler(i) || (!(pending & kernel_bit(i)) &&
					  handler_of(i) == (uintptr_t)SIG_DFL && take_signal(i))) {
			look_signal = i;
			return 0;
		}
	}
	return -EAGAIN;
}

NOPATCH int look_signal_choose(void (*handler)(int signal, siginfo_t *info, void *context),
			       uint64_t used, uint64_t pending)
{
	uint64_t known = atomic_fetch_or(&known_used, used) | used;
	int ret;

	atomic_store(&our_handler, (uintptr_t)handler);
	ret = choose_from(known, pending);
	/* Rather one that was in use once than none. */
	return ret == -EAGAIN ? choose_from(used, pending) : ret;
}

/*
 * The signal is sent again, to this thread: the program's handler, which is back at its place,
 * takes it, or the default action ends the process. Where the program's newer handler has called
 * ours, as the one that was there before it, the signal has been dealt with.
 */
NOPATCH void look_signal_pass_on(int signal, siginfo_t *info)
{
	const struct kernel_action dfl = { .handler = (uintptr_t)SIG_DFL };
	int64_t deadline = clock_ns() + OTHERS_MS * CLOCK_MS;
	bool is_kept;

	while (atomic_load(&settling) == signal && clock_ns() < deadline)
		clock_sleep(CLOCK_MS / 20);
	is_kept = atomic_load(&taken) & kernel_bit(signal);
	if (is_our_handler(signal))
		kernel_action(signal, &dfl, NULL);
	else if (is_kept)
		return;
	sys_call(SYS_rt_tgsigqueueinfo, sys_call(SYS_getpid), sys_call(SYS_gettid), signal, info);
}

/* As far as the child of a fork can tell, its parent was changing a handler. */
NOPATCH void look_signal_forget_change(void)
{
	atomic_store(&settling, 0);
}

/* --- Giving back ------------------------------------------------------------------------ */

NOPATCH static bool note_pending(pid_t tid, void *arg)
{
	struct task_signals signals;
	uint64_t *pending = arg;
	/* One that cannot be read may have any. */
	if (task_signals(tid, &signals) < 0 && !task_has_ended(tid))
		signals.pending = ~UINT64_C(0);
	*pending |= signals.pending;
	return true;
}

NOPATCH void look_signal_give_back(void)
{
	uint64_t pending = 0;

	if (task_list(0, note_pending, &pending) < 0)
		pending = ~UINT64_C(0);
	for (int i = SIGNAL_MIN; i <= SIGNAL_MAX; i++) {
		struct kernel_action dfl = { .handler = (uintptr_t)SIG_DFL }, before;

		/* Only where ours is still the handler. */
		if (!(atomic_load(&taken) & ~pending & kernel_bit(i)) || !is_our_handler(i) ||
		    kernel_action(i, &dfl, &before) < 0)
			continue;
		if (before.handler != load_relaxed(&our_handler))
			put_back(i, &before, &dfl);
		atomic_fetch_and(&taken, ~kernel_bit(i));
	}
}
