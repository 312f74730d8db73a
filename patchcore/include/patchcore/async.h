/* SPDX-License-Identifier: MIT */
/*
 * Changes that are started now and finished later ("Living on the Edge", sec. 5.1): the caller does
 * not stand through the waits, and one thread may have thousands of changes in flight.
 *
 * While a straddler is in flight its executors stand at an INT3, but not for ever: one that has
 * waited some 10,000 ticks makes the steps that are due itself. So a change that the caller never
 * finishes is made by the first executor that runs into it. Its pages then stay writable until a
 * thread changes that site again, asks how far it is, or drains; unless they were held open
 * (pc_text_open()) anyway.
 *
 * fork() finishes what is in flight first: parent and child have the new code.
 *
 * If membarrier is forbidden (a seccomp filter) after a change was started under it, the change
 * is taken back: executors run the old code, and -ECANCELED tells of it.
 *
 * Changes inside the atomic window are made at once. All functions are thread-safe.
 */
#ifndef PATCHCORE_ASYNC_H
#define PATCHCORE_ASYNC_H

#include <stddef.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* How far a change is. */
enum pc_progress {
	PC_FINISHED = 0,    /* the new code is in memory, or there was no change in flight */
	PC_FIRST_WAIT = 1,  /* the INT3 is there */
	PC_SECOND_WAIT = 2, /* the back part is there too */
};

/*
 * pc_start_patch - begin to replace len bytes of code at addr.
 *
 * Arguments and errors as pc_patch(); what was refused left the code as it was. 0: the change will
 * be made, but for what is said of membarrier above. The bytes are copied. A second change of a
 * site in flight, by this function or any other, is refused with -EAGAIN; rarely also one right
 * after its end, while an executor that came to help is preempted there. The pages stay writable
 * until the change is finished.
 *
 * Under PC_POLICY_AUTO the change waits where the config has a wait that the caller accepts,
 * also one that is longer than a membarrier takes (a long level, machine.conf(5)): no caller
 * stands waiting, and a membarrier interrupts every executor. An executor that comes to the
 * site meanwhile does stand: both waits at most.
 *
 * Async-signal-safe where the pages are held open and the site was patched before. Paper: figure 6.
 */
int pc_start_patch(void *addr, const void *bytes, size_t len);

/*
 * pc_finish_patch - make the next step at addr, if it is due; never waits under
 * policy wait, and for one membarrier under that.
 *
 * By any thread, as often as one likes. Returns an enum pc_progress. -ECANCELED: the last change of
 * the site was taken back. -ENOMEM. -ESHUTDOWN. On another CPU than the one the last step was made
 * on, a wait counts from the first call there, since two TSC need not agree. Paper: figure 7.
 */
int pc_finish_patch(void *addr);

/*
 * pc_drain - finish every change that was started before the call.
 *
 * One pair of syncs does for up to 256 changes. Changes that other threads start meanwhile may or
 * may not be among them. 0, or what membarrier(2) failed with for want of memory, -ENOMEM: then the
 * rest is still in flight. -ECANCELED: of what was started since the last drain, some was taken
 * back: by this call, an executor, a fork, or pc_text_close().
 */
int pc_drain(void);

__END_DECLS
#endif
