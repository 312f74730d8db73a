/* SPDX-License-Identifier: MIT */
/* What has to be known of a process before something is put into it, from /proc. */
#ifndef AGENT_LAUNCH_TARGET_H
#define AGENT_LAUNCH_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/user.h>

#define RESTORERS_MAX 8

/* Functions of the C library, where they are in the process. */
struct letter_calls {
	uint64_t create, detach, dlopen, dlsym, dlerror, dlclose, munmap, error_location;
};

/* A mapping of memory. */
struct target_mapping {
	uint64_t start, end;
	bool executable;
	bool writable;
	bool own;	   /* private, of a file: a write does not reach the file */
	bool agent;	   /* code of the agent, or stubs that it made */
	bool is_lock_free; /* code outside of the C library and allocators: no lock of theirs is
			      held */
};

struct target {
	pid_t pid;
	struct target_mapping *mappings;
	size_t n;
	struct letter_calls call;
	uint64_t restorer[RESTORERS_MAX]; /* where signal handlers return to */
	size_t restorers;
	uint64_t loader; /* its struct r_debug */
	int memory;	 /* as a file */
	const char *library;
	char *why; /* after an error: one line, of the caller's TARGET_WHY bytes */
};

/* say_why - fills in why, and returns the error. */
#define TARGET_WHY 512
__attribute__((format(printf, 3, 4))) int say_why(const struct target *target, int error,
						  const char *format, ...);

/*
 * target_look - 0, or a negative errno and why: the process cannot be given a library at all.
 * @library: that is to be put there
 */
int target_look(struct target *target, pid_t pid, const char *library, char why[TARGET_WHY]);
void target_free(struct target *target);

/* target_denied - why ptrace(2) said -EPERM; -EPERM. */
int target_denied(struct target *target);

/* target_file - opens a file of the process in /proc; NULL: there is none. */
FILE *target_file(pid_t pid, const char *name);

/*
 * target_read, target_write - len bytes of its memory, of any protection; false: they are not
 * mapped.
 */
bool target_read(const struct target *target, uint64_t at, void *to, size_t len);
bool target_write(const struct target *target, uint64_t at, const void *from, size_t len);

/* target_loads - its loader is at work, or cannot be asked. */
bool target_loads(const struct target *target);

/* target_cave - the address of so many unused bytes at the end of a page of code; 0: there are
 * none. */
uint64_t target_cave(const struct target *target, size_t len);

/*
 * target_sleeps - rank of a thread by the system call that it is in: 0, can be interrupted best, to
 * 2; -1: leave it alone.
 */
int target_sleeps(const struct target *target, pid_t thread);

/* target_trapped - a thread has met an INT3 that is gone; the agent has to deal with it. */
bool target_trapped(const struct target *target, pid_t thread);

/* target_waits - the interrupted system call is one of those that target_sleeps() ranks. */
bool target_waits(const struct user_regs_struct *regs);

/*
 * target_safe - NULL, or why a thread with these registers must not be made to call functions of
 * its C library; or, with @unloads, must not be stopped while the agent goes. It is stopped.
 */
const char *target_safe(const struct target *target, const struct user_regs_struct *regs,
			bool unloads);

/* --- The code that is injected (stub.c), and a letter that tells it what to do --- */

/* What the thread gets back when the tracer does not do it, because it was killed. */
struct letter_back {
	uint64_t flags, rbx, rsp; /* in the order in which they are popped */
	uint64_t cave;		  /* goes on there */
};

struct letter {
	struct letter_calls call;
	uint64_t thread;	/* out: of pthread_create() */
	uint64_t start, length; /* of the mapping that all this is in */
	uint64_t pause[2];	/* a struct timespec: between two looks whether it was read */
	uint64_t give_up[2];	/* another: how long the stopped thread waits for the tracer */
	struct letter_back back;
	uint64_t error;	 /* out: where dlerror()'s text is; 0: the library was loaded */
	int32_t created; /* out: what pthread_create() returned */
	int32_t called;	 /* out: it has returned */
	int32_t result;	 /* out: of the entry function */
	int32_t done;	 /* out: error and result are filled in */
	int32_t read;	 /* in, later: LETTER_END or LETTER_AGAIN */
	int32_t closes;	 /* in, later: how often the library is to be closed */
	char entry[64];
	char text[1800]; /* the entry function's argument */
	char library[2048];
};

enum letter_read {
	LETTER_END = 1,
	LETTER_AGAIN = 2, /* the entry function is to be called with another text */
};

/*
 * The code, which may stand anywhere. At stub_call with the letter in rbx, behind which is room for
 * the vectors of the thread, and a stack.
 */
extern const uint8_t stub_start[], stub_call[], stub_end[];

/*
 * One instruction SYSCALL, and what gives a thread back the mask and the registers that it changes:
 * the rest of CAVE_MASK on, in this order.
 */
#define CAVE_MASK 128
#define CAVE_SIZE 256
struct cave_state {
	uint64_t mask, rax, rdi, rsi, rdx, rcx, r8, r9, r10, r11, rip;
};
extern const uint8_t cave_start[], cave_back[], cave_end[];

#endif
