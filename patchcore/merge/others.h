/* SPDX-License-Identifier: MIT */
/*
 * Interrupting every other thread of the process, by a real-time signal for which the program has
 * no use: "The signal" in pc_merge(3) says how it is chosen, and what becomes of one that another
 * sends. Private.
 *
 * All that runs from the choice of the signal to the end of a call is NOPATCH: no
 * libc, no heap, no lock of the C library, so a stopped thread may hold any.
 *
 * A thread that blocks the signal, is in the kernel without end, or is held by a
 * debugger does not answer. Threads that the kernel has made (io_uring) are passed over. A child
 * between vfork() and exec, which shares the memory, is another process and not seen.
 *
 * A thread that is in the kernel's execve() takes what is pending into the new program, where the
 * handler is gone and a real-time signal is the end. So the signal says that a timer has sent it
 * (SI_TIMER): the kernel drops these with the timers of the old program, once no other thread is
 * left to send more (begin_new_exec() in its fs/exec.c; flush_itimer_signals(), since
 * Linux 2.6.26).
 */
#ifndef PATCHCORE_MERGE_OTHERS_H
#define PATCHCORE_MERGE_OTHERS_H

#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

#include "patchcore/syscall/sys.h"
#include "patchcore/syscall/task.h"

#define OTHERS_MS 1000 /* how long one call may take to have all its answers */

/*
 * What the handler takes of the stack below the kernel's frame, bytes, if fn takes no
 * more than OTHERS_FN_STACK. Measured by test_trap_stack. A look knows by it who is in the handler.
 */
#define OTHERS_STACK	1024
#define OTHERS_FN_STACK 768

/*
 * The si_code of a signal of ours. A program's own timers do not carry the value below, and 0 for
 * si_errno, which is not 0 here: pc_merge(3) tells programs of both.
 */
#define OTHERS_CODE SI_TIMER

/* The upper half of the value that a signal of ours carries; the lower is a slot's number. */
#define OTHERS_MAGIC UINT64_C(0x74504d78)

/* others_is_ours - by its si_code and value. */
NOPATCH_INLINE bool others_is_ours(int code, uint64_t value)
{
	return code == OTHERS_CODE && value >> 32 == OTHERS_MAGIC;
}

/* Memory that fn may use instead of its stack. Its own for every thread. */
struct others_room {
	_Alignas(16) char bytes[3584];
};

/*
 * Called in each other thread, in a signal handler with all signals blocked. What it changes in the
 * context is what the thread goes on with; errno it leaves alone. The context of a thread that was
 * running a signal handler is the handler's; what that handler has interrupted is not looked at.
 */
typedef void others_fn(ucontext_t *context, struct others_room *room, void *arg);

/*
 * Called in the calling thread, for one that sleeps in the kernel, in that call, with these signals
 * blocked, sigwait() and the like apart; all, if they cannot be told. True: that will do, if it has
 * slept all the while. False: it must answer. takes: the signal, and so it can.
 */
typedef bool others_asleep_fn(pid_t tid, const struct task_call *call, uint64_t blocked, bool takes,
			      struct others_room *room, void *arg);

/*
 * others_keep_off - the calling thread blocked these before it blocked all: leave them to it.
 * It says so before it waits for another thread, since /proc then shows only that it blocks all.
 */
void others_keep_off(uint64_t blocked);

/*
 * others_restart_call - for fn: a system call that the signal has ended begins anew, and the
 * program does not notice. EINTR has taken the place of its number, which the code still has.
 */
void others_restart_call(greg_t *gregs);

/*
 * others_may_look - 0, or -EACCES: /proc is not there, or of another pid namespace, or does not
 * tell in which system calls threads sleep (task_call()). To be asked before a look.
 */
int others_may_look(void);

/*
 * others_look - every thread that there was when this was called, and is still
 * there when it returns, has called fn once, or asleep has said true for it.
 * asleep may be NULL: such threads must then answer themselves.
 *
 * -ETIMEDOUT: some have not, and none will any more; OTHERS_MS are over, and the time that it
 * takes to send each thread a signal. -EAGAIN: no signal is free. -EACCES: some of /proc cannot be
 * read. -ENOMEM. Not async-signal-safe; the calling thread must not hold anything that its own
 * handlers need.
 */
int others_look(others_fn *fn, others_asleep_fn *asleep, void *arg);

/*
 * others_give_back - the signals that were taken get their default action again, but for
 * one that is pending: its handler stays, since the default is the end of the process.
 */
void others_give_back(void);

#endif
