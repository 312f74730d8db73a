/* SPDX-License-Identifier: MIT */
/*
 * What /proc tells of the threads of this process. Private.
 *
 * By plain system calls: no heap, no lock, no cancellation point, no libc. All is NOPATCH.
 */
#ifndef PATCHCORE_SYSCALL_TASK_H
#define PATCHCORE_SYSCALL_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * task_list - call met for every thread of a process, 0: of this one, until it returns false. 0, or
 * what /proc could not be read with.
 */
typedef bool task_met_fn(pid_t tid, void *arg);
int task_list(pid_t process, task_met_fn *met, void *arg);

/* task_mount - a number of the mounted /proc, which no other mount ever has; 0: not to be had. */
uint64_t task_mount(void);

/*
 * task_ids_are_ours - is the mounted /proc of this process's pid namespace? Else its list has ids
 * that no system call takes. False also without /proc.
 */
bool task_ids_are_ours(void);

/*
 * task_state - the letter of its state, 0: not to be had. By the id that the task has in its own
 * pid namespace, which need not be the one of the mounted /proc. A task of this process, or of the
 * one whose child of vfork() asks. Takes a kilobyte of stack at most.
 */
char task_state(pid_t tid);

/* task_has_ended - it is gone, or a first thread that waits for the others to go. No /proc. */
bool task_has_ended(pid_t tid);

/* task_clock - now, on the clock of a thread's start: ticks of 10 ms. */
uint64_t task_clock(void);

struct task_stat {
	/*
	 * The kernel has made it, for io_uring or vhost: it is listed as a thread of the
	 * process, runs no code of the program and takes no signals.
	 */
	bool is_kernel_thread;
	bool has_memory;  /* else it is ending and runs no code any more */
	uint64_t started; /* see task_clock() */
};

/* task_stat - what its stat tells. 0, or what that could not be read with. */
int task_stat(pid_t tid, struct task_stat *stat);

/* The first real-time signal that no C library keeps to itself. */
#define TASK_REAL_TIME_MIN 35

/* Masks, the lowest bit for signal 1. */
struct task_signals {
	uint64_t pending; /* for the thread or the process */
	uint64_t blocked;
	uint64_t switches; /* away from the thread: as long as it sleeps there are no more */
	uint64_t sleeps;   /* those of them that it made itself */
};

/* task_signals - how it is with signals. 0, or what that could not be read with. */
int task_signals(pid_t tid, struct task_signals *signals);

struct task_call {
	bool sleeps;	 /* in the kernel */
	bool waits;	 /* in sigwait() */
	uint64_t waited; /* for: the kernel counts these as not blocked */
	bool masks;	 /* its mask may be another: sigsuspend(), ppoll(), sigreturn() */
	uintptr_t pc;	 /* where, and with which stack, a thread that sleeps goes on */
	uintptr_t sp;
};

/*
 * task_call - the system call in which a thread sleeps. 0, or what that could not be read with: no
 * thread's in a process that has changed its user or is otherwise not dumpable (prctl(2)).
 */
int task_call(pid_t tid, struct task_call *call);

/*
 * task_uses - the real-time signals that the thread has a use for: it blocks or awaits them one by
 * one, not along with most others. A pending signal does not count: the library may have sent it.
 */
uint64_t task_uses(uint64_t blocked, uint64_t waited);

#endif
