/* SPDX-License-Identifier: MIT */
/*
 * Other ways to change running code, to measure pc_patch() against.
 *
 * BASELINES, NOT FOR PRODUCTION, and not in the installed library. They stop
 * every other thread of the process for each change. A thread that a signal has
 * interrupted in the middle of the site, and that is still in the handler, is
 * not seen by either.
 *
 * They need no machine.conf, policy or SIGTRAP, and take any place and length up to
 * PC_PATCH_MAX, whole instructions or not. On return no thread runs the old code any more. By one
 * thread at a time; not to be mixed with pc_patch() at one site at one time. 0, or, with the code
 * as it was, a negative errno: -EBUSY: a thread stands inside the site, behind its start: try
 * again; -ETIMEDOUT: some thread could not be stopped within a second.
 */
#ifndef BENCH_PEERS_BASELINE_H
#define BENCH_PEERS_BASELINE_H

#include <stddef.h>

/* baseline_stop_patch - stop the world by a signal to every thread, write, resume. */
int baseline_stop_patch(void *addr, const void *bytes, size_t len);

/*
 * baseline_ptrace_open - start the patcher process, which ends with the calling thread. -EPERM: it
 * may not trace this one (Yama, seccomp, a container, or a debugger is attached).
 * baseline_ptrace_patch - let it stop every thread, also the caller, and write, whatever the
 * protection of the page. -ESHUTDOWN: not open, as also after -ETIMEDOUT.
 * baseline_ptrace_close - end it, if it runs.
 */
int baseline_ptrace_open(void);
int baseline_ptrace_patch(void *addr, const void *bytes, size_t len);
void baseline_ptrace_close(void);

#endif
