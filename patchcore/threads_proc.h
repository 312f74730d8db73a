/* SPDX-License-Identifier: MIT */
/*
 * What /proc tells of the threads of this process. Private.
 *
 * By plain system calls: no heap, no lock, no cancellation point.
 */
#ifndef PATCHCORE_THREADS_PROC_H
#define PATCHCORE_THREADS_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* False: enough. */
typedef bool thread_met_fn(pid_t tid, void *arg);

/* thread_list - call met for every thread. -EACCES: /proc cannot be read. */
int thread_list(thread_met_fn *met, void *arg);

/* thread_has_ended - it is gone, or a first thread that waits for the others to go. */
bool thread_has_ended(pid_t tid);

/* thread_clock - now, on the clock of thread_started(): ticks of 10 ms. */
uint64_t thread_clock(void);

/* thread_started - when it was made; 0 if it is gone. */
uint64_t thread_started(pid_t tid);

/* thread_takes - would a signal of that number run its handler in the thread? */
bool thread_takes(pid_t tid, int number);

/* thread_sleeps - is it asleep in the kernel? pc, sp: where, and with which stack, it goes on. */
bool thread_sleeps(pid_t tid, uintptr_t *pc, uintptr_t *sp);

#endif
