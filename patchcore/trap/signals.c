/* SPDX-License-Identifier: MIT */
/*
 * Would a thread that meets an INT3 of ours survive it?
 */
#include "patchcore/signals.h"

#include <errno.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <time.h>

#include "patchcore/kernel/kernel_signal.h"
#include "patchcore/kernel/task.h"
#include "patchcore/merge/others.h"
#include "patchcore/patchcore.h"
#include "patchcore/site/lock.h"
#include "patchcore/trap/trap.h"

#define MOMENTS 3 /* milliseconds */

/* The frame that the kernel writes where it does not tell: AVX-512 and a margin. */
#define FRAME_DEFAULT 4096u

/* What is asked for every thread. */
struct look {
	struct pc_signals *report;
	int error; /* the first */
};

/* False: it could not be told of this one, which ends the list. */
static bool meet_thread(pid_t tid, void *arg)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	struct look *look = arg;
	struct task_signals signals;
	struct task_stat stat;
	bool blocking;
	int ret;

	/* libc blocks all signals for a moment in threads that start and end. */
	for (int i = 0;; i++) {
		ret = task_signals(tid, &signals);
		blocking = ret == 0 && (signals.blocked & kernel_bit(SIGTRAP));
		if (!blocking || i == MOMENTS)
			break;
		nanosleep(&moment, NULL);
	}
	if (ret == 0)
		ret = task_stat(tid, &stat);
	/* Does it run code of the program, or will it again? */
	if (ret == 0 && stat.has_memory && !stat.is_kernels) {
		look->report->threads++;
		if (blocking && look->report->threads_blocking++ == 0)
			look->report->first_thread = tid;
	}
	/* It has ended, or is ending, meanwhile. */
	if (ret == -ENOENT || ret == -ESRCH)
		ret = 0;
	look->error = ret;
	return ret == 0;
}

static bool is_handler(const struct sigaction *action)
{
	return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/* The deadly first. */
static void advise_signals(struct pc_signals *report)
{
	static const char *const owners[] = {
		[PC_TRAP_OTHER] = "has another handler, installed after pc_init()",
		[PC_TRAP_DEFAULT] = "has its default action",
		[PC_TRAP_IGNORED] = "is ignored",
	};
	char *text = report->advice;
	size_t size = sizeof(report->advice);

	if (report->owner != PC_TRAP_OURS)
		snprintf(text, size, "SIGTRAP %s: call pc_init(), last, or use libpatchcore_guard",
			 owners[report->owner]);
	else if (report->threads_blocking)
		snprintf(text, size,
			 "thread %d has SIGTRAP blocked: unblock it, or use libpatchcore_guard",
			 (int)report->first_thread);
	else if (report->handlers_blocking)
		snprintf(text, size,
			 "the handler of signal %d runs with SIGTRAP blocked: take it out of "
			 "sa_mask if it may run patched code",
			 report->first_signal);
	else if (report->alternate_size && report->alternate_size < report->stack_need)
		snprintf(
			text, size,
			"the alternate stack has %zu bytes and a signal of the library's needs %zu",
			report->alternate_size, report->stack_need);
}

int pc_check_signals(struct pc_signals *report)
{
	size_t frame = getauxval(AT_MINSIGSTKSZ);
	struct look look = { .report = report };
	struct sigaction now;
	stack_t stack;
	int ret, cancel;

	if (!report)
		return -EINVAL;
	ret = trap_now(&now);
	*report = (struct pc_signals){ .guarded = trap_is_guarded() };
	if (ret < 0)
		return ret;
	if (ret > 0)
		report->owner = PC_TRAP_OURS;
	else if (is_handler(&now))
		report->owner = PC_TRAP_OTHER;
	else
		report->owner = now.sa_handler == SIG_IGN ? PC_TRAP_IGNORED : PC_TRAP_DEFAULT;
	cancel = cancel_hold();
	ret = task_list(0, meet_thread, &look);
	cancel_let(cancel);
	if (ret < 0 || look.error < 0)
		return ret < 0 ? ret : look.error;
	/* That of SIGTRAP itself is the owner's business. libc keeps two of its own to itself. */
	for (int signal = 1; signal < NSIG; signal++) {
		struct sigaction action;

		if (signal == SIGTRAP || trap_see(signal, &action) < 0 || !is_handler(&action) ||
		    sigismember(&action.sa_mask, SIGTRAP) != 1)
			continue;
		if (report->handlers_blocking++ == 0)
			report->first_signal = signal;
	}
	/* Of the larger of two handlers: each blocks the other's signal. */
	report->stack_need = frame ? frame : FRAME_DEFAULT;
	report->stack_need += TRAP_STACK > OTHERS_STACK ? TRAP_STACK : OTHERS_STACK;
	if (sigaltstack(NULL, &stack) == 0 && !(stack.ss_flags & SS_DISABLE))
		report->alternate_size = stack.ss_size;
	advise_signals(report);
	return report->owner != PC_TRAP_OURS || report->threads_blocking ? -EBUSY : 0;
}
