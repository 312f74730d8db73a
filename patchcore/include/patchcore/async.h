/* SPDX-License-Identifier: MIT */
/*
 * Changes that are started now and finished later ("Living on the Edge", sec. 5.1): the caller does
 * not stand through the waits, and one thread may have thousands of changes in flight. See
 * pc_async(3).
 *
 * Executors stand at an INT3 meanwhile, but not for ever: one that has waited some 10,000 ticks
 * makes the steps that are due itself. fork() finishes what is in flight first. Changes inside the
 * atomic window are made at once. All functions are thread-safe.
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
 * Arguments and errors as pc_patch(). 0: the change will be made, unless the kernel takes
 * membarrier away meanwhile (a seccomp filter): then it is taken back. The bytes are copied. A
 * second change of a site in flight is refused with -EAGAIN. The pages stay writable until the
 * change is finished.
 *
 * Under PC_POLICY_AUTO it may wait for longer than a membarrier takes (a long level,
 * machine.conf(5)): no caller stands waiting, and a membarrier interrupts every executor.
 *
 * Async-signal-safe where the pages are held open and the site was patched before. Paper: figure 6.
 */
int pc_start_patch(void *addr, const void *bytes, size_t len);

/*
 * pc_finish_patch - make the next step at addr, if it is due; never waits under policy wait, and
 * for one membarrier under that.
 *
 * By any thread, as often as one likes. Returns an enum pc_progress, or -ECANCELED: the last change
 * of the site was taken back. -ENOMEM. Paper: figure 7.
 */
int pc_finish_patch(void *addr);

/*
 * pc_drain - finish every change that was started before the call; one pair of syncs does for up to
 * 256. -ENOMEM, by membarrier(2): the rest is still in flight. -ECANCELED: of what was started
 * since the last drain, some was taken back.
 */
int pc_drain(void);

__END_DECLS
#endif
