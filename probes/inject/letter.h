/* SPDX-License-Identifier: MIT */
/*
 * What the injected code and the tracer have in common: the code, and a letter that tells it where
 * functions of the process are, and what to load.
 */
#ifndef PROBES_INJECT_LETTER_H
#define PROBES_INJECT_LETTER_H

#include <stdint.h>

/* What the thread gets back when the tracer does not do it, because it was killed. */
struct letter_back {
	uint64_t flags, rbx, rsp; /* in the order in which they are popped */
	uint64_t cave;		  /* goes on there */
};

/* Functions of the C library, where they are in the process. */
struct letter_calls {
	uint64_t create, detach, dlopen, dlsym, dlerror, dlclose, munmap, error_location;
};

struct letter {
	struct letter_calls call;
	uint64_t thread;	/* out: of pthread_create() */
	uint64_t start, length; /* of the mapping that all this is in */
	uint64_t pause[2];	/* a struct timespec: between two looks whether it was read */
	uint64_t give_up[2];	/* another: how long the stopped thread waits for the tracer */
	struct letter_back back;
	int32_t created; /* out: what pthread_create() returned */
	int32_t called;	 /* out: it has returned */
	int32_t result;	 /* out: of the entry function */
	int32_t done;	 /* out: error and result are filled in */
	int32_t read;	 /* in, later: LETTER_END or LETTER_AGAIN */
	int32_t closes;	 /* in, later: how often the library is to be closed */
	char error[252]; /* out: of dlerror() */
	char entry[64];
	char text[1556]; /* the entry function's argument */
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
