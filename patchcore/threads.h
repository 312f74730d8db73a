/* SPDX-License-Identifier: MIT */
/*
 * Interrupting every other thread of the process, by a signal. Private.
 *
 * The signal is the highest real-time signal, SIGRTMAX itself left out, that has
 * no handler at that moment. It is taken for the length of a call (of a stop, up
 * to the resume) and then given back: whatever of it is still pending is dropped
 * by the kernel and harms nobody. Nothing is allocated from the heap, and no lock
 * of the C library is taken, so a stopped thread may hold any.
 *
 * Who blocks the signal, is in the kernel without end, or is held by a debugger
 * does not answer. After THREADS_MS the call gives up, -ETIMEDOUT, and everybody
 * runs on.
 *
 * Not seen: a child between vfork() (or in posix_spawn()) and exec, which shares
 * the memory but is another process. System calls that signal(7) lists as never
 * restarted may fail with EINTR in the threads that were interrupted.
 */
#ifndef PATCHCORE_THREADS_H
#define PATCHCORE_THREADS_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#define THREADS_MS 1000 /* how long all of them may take to answer */

/*
 * Called in each other thread, in a signal handler with all signals blocked.
 * What it changes in the context is what the thread goes on with. The context of
 * a thread that was running a signal handler is the handler's; what that handler
 * has interrupted is not looked at.
 */
typedef void threads_fn(ucontext_t *context, void *arg);

/*
 * Called in the calling thread, for one that blocks the signal or waits for it
 * (sigwait) and sleeps in the kernel. pc, sp: where and with which stack it goes
 * on. True: that will do. False: it must answer, or be asked again.
 */
typedef bool threads_asleep_fn(uintptr_t pc, uintptr_t sp, void *arg);

/*
 * threads_look - every thread that there was when this was called, and is still
 * there when it returns, has called fn once, or asleep has said true for it.
 * asleep may be NULL: such threads must then answer themselves.
 *
 * -ETIMEDOUT: some have not, and none will any more. -EAGAIN: no signal is free.
 * -EACCES: /proc cannot be read. -ENOMEM. Not async-signal-safe; the calling
 * thread must not hold anything that its own handlers need.
 */
int threads_look(threads_fn *fn, threads_asleep_fn *asleep, void *arg);

/*
 * threads_stop - every other thread has called fn (may be NULL) and stands in
 * the handler. The caller may then take no lock and not use the heap. Errors as
 * threads_look(), and then nobody stands.
 */
int threads_stop(threads_fn *fn, void *arg);

/*
 * threads_resume - they run on, each after a serialising instruction. Returns
 * when all have left the handler.
 */
void threads_resume(void);

#endif
