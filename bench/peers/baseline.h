/* SPDX-License-Identifier: MIT */
/*
 * Other ways to change running code, to measure pc_patch() against.
 *
 * BASELINES, NOT FOR PRODUCTION, and not in the installed library. They stop
 * every other thread of the process for each change. A thread that a signal has
 * interrupted in the middle of the site, and that is still in the handler, is
 * not seen by either.
 *
 * The patch functions have the signature of pc_patch() and its errors, after
 * each of which the code is as it was: -EINVAL, -EFAULT, -EACCES, -ENOMEM,
 * -EAGAIN (the first byte is INT3), and here also
 *
 *   -EBUSY      a thread stands inside the site, behind its start: try again;
 *   -ETIMEDOUT  some thread could not be stopped within a second.
 *
 * They need no machine.conf, policy or SIGTRAP, and take any place and length up
 * to PC_PATCH_MAX, whole instructions or not. On return no thread runs the old
 * code any more. By one thread at a time; not to be mixed with pc_patch() at one
 * site at one time.
 */
#ifndef BENCH_PEERS_BASELINE_H
#define BENCH_PEERS_BASELINE_H

#include <stddef.h>

/*
 * baseline_stop_patch - stop the world by a signal to every thread, write,
 * resume. A thread that blocks all signals, or is in sigwait(), makes it fail
 * with -ETIMEDOUT. -EAGAIN also if no real-time signal is free.
 */
int baseline_stop_patch(void *addr, const void *bytes, size_t len);

/*
 * baseline_ptrace_open - start the patcher process, which ends with the calling
 * thread. -EPERM: it may not trace this one (Yama, seccomp, a container, or a
 * debugger is attached); another negative errno of socketpair() or clone().
 * -EALREADY: it runs.
 */
int baseline_ptrace_open(void);

/*
 * baseline_ptrace_patch - let the patcher process stop every thread, also the
 * caller, and write. Works on pages that are not writable, and leaves their
 * protection alone. -ESHUTDOWN: not open, as also after -ETIMEDOUT.
 */
int baseline_ptrace_patch(void *addr, const void *bytes, size_t len);

/* baseline_ptrace_close - end it, if it runs. */
void baseline_ptrace_close(void);

#endif
