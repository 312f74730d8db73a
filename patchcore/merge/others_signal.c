/* SPDX-License-Identifier: MIT */
/*
 * Handlers are set by exchange, since the program may set one at any moment: what was displaced
 * tells whether the signal was free, and is put back if not.
 */
#include "patchcore/merge/others_signal.h"

#include <errno.h>
#include <stdatomic.h>

#include "patchcore/kernel/clock.h"
#include "patchcore/kernel/kernel_signal.h"
#include "patchcore/kernel/task.h"
#include "patchcore/merge/others.h"

/* The signals that may be taken: not SIGRTMAX, which programs take first. */
#define SIGNAL_MIN TASK_REAL_TIME_MIN
#define SIGNAL_MAX (KERNEL_SIGNALS - 1)

/* The kernel takes these two out of every mask that it keeps. */
#define ALL_SIGNALS (~(kernel_bit(SIGKILL) | kernel_bit(SIGSTOP)))

int others_signal;

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

NOPATCH static bool stands(int signal)
{
	return signal && handler_of(signal) == (uintptr_t)on_look_signal;
}

NOPATCH static long set_default(int signal, struct kernel_action *before)
{
	struct kernel_action dfl = { .handler = (uintptr_t)SIG_DFL };

	return kernel_action(signal, &dfl, before);
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
	struct kernel_action ours = { .handler = (uintptr_t)on_look_signal,
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
	struct task_signals signals = { .blocked = blocked };
	uint64_t used = task_uses(&signals);

	if (used & ~atomic_load_explicit(&known_used, memory_order_relaxed))
		atomic_fetch_or(&known_used, used);
}

NOPATCH bool signal_will_do(void)
{
	return stands(others_signal) && !(atomic_load(&known_used) & kernel_bit(others_signal));
}

/* The one of the last round if that will still do. */
NOPATCH static int choose_from(uint64_t used, uint64_t pending)
{
	if (stands(others_signal) && !(used & kernel_bit(others_signal)))
		return 0;
	for (int i = SIGNAL_MAX; i >= SIGNAL_MIN; i--) {
		if (used & kernel_bit(i))
			continue;
		/* What is pending is the library's own where its handler stands, else another's. */
		if (stands(i) || (!(pending & kernel_bit(i)) &&
				  handler_of(i) == (uintptr_t)SIG_DFL && take_signal(i))) {
			others_signal = i;
			return 0;
		}
	}
	return -EAGAIN;
}

NOPATCH void signal_forked(void)
{
	atomic_store(&settling, 0);
}

/* Rather one that was in use once than none. */
NOPATCH int signal_choose(const struct signal_use *now)
{
	uint64_t known = atomic_fetch_or(&known_used, now->used) | now->used;
	int ret = choose_from(known, now->pending);

	return ret == -EAGAIN ? choose_from(now->used, now->pending) : ret;
}

/*
 * It is sent again, to this thread, for what the program has set: its handler, which is back at
 * its place, or the default, which is the end. Where a handler that was installed on top of ours
 * has called it, as what was there before, the signal has been dealt with.
 */
NOPATCH void signal_pass_on(int signal, siginfo_t *info)
{
	int64_t deadline = clock_ns() + OTHERS_MS * CLOCK_MS;
	bool is_kept;

	while (atomic_load(&settling) == signal && clock_ns() < deadline)
		clock_sleep(CLOCK_MS / 20);
	is_kept = atomic_load(&taken) & kernel_bit(signal);
	if (stands(signal))
		set_default(signal, NULL);
	else if (is_kept)
		return;
	sys_call(SYS_rt_tgsigqueueinfo, sys_call(SYS_getpid), sys_call(SYS_gettid), signal, info);
}

NOPATCH void signal_give_back_all(uint64_t pending)
{
	struct kernel_action dfl = { .handler = (uintptr_t)SIG_DFL }, before;

	for (int i = SIGNAL_MIN; i <= SIGNAL_MAX; i++) {
		/* Only where ours is still the handler. */
		if (!(atomic_load(&taken) & ~pending & kernel_bit(i)) || !stands(i) ||
		    set_default(i, &before) < 0)
			continue;
		if (before.handler != (uintptr_t)on_look_signal)
			put_back(i, &before, &dfl);
		atomic_fetch_and(&taken, ~kernel_bit(i));
	}
}
