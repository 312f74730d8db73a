/* SPDX-License-Identifier: MIT */
/*
 * What the injected code and the tracer have in common: the code, and a letter that tells it where
 * functions of the process are, and what to load.
 */
#ifndef PROBES_INJECT_LETTER_H
#define PROBES_INJECT_LETTER_H

/* Offsets that the assembly of stub.c uses; it asserts them. */
#define LETTER_CREATE  0
#define LETTER_DETACH  8
#define LETTER_DLOPEN  16
#define LETTER_DLSYM   24
#define LETTER_DLERROR 32
#define LETTER_MUNMAP  40
#define LETTER_ERRNO   48
#define LETTER_THREAD  56
#define LETTER_START   64
#define LETTER_LEN     72
#define LETTER_PAUSE   80
#define LETTER_CREATED 96
#define LETTER_RESULT  100
#define LETTER_DONE    104
#define LETTER_READ    108
#define LETTER_ALONE   112
#define LETTER_ERROR   116
#define LETTER_ENTRY   368
#define LETTER_TEXT    432
#define LETTER_LIBRARY 2048

#include <stdint.h>

struct letter {
	uint64_t create, detach, dlopen, dlsym, dlerror, munmap, error_location;
	uint64_t thread;	/* out: of pthread_create() */
	uint64_t start, length; /* of the mapping that all this is in */
	uint64_t pause[2];	/* a struct timespec: between two looks whether it was read */
	int32_t created;	/* out: what pthread_create() returned */
	int32_t result;		/* out: of the entry function */
	int32_t done;		/* out: error and result are filled in */
	int32_t read;		/* in, later: the tracer has them */
	int32_t alone;		/* in: the process has one thread */
	char error[252];	/* out: of dlerror() */
	char entry[64];
	char text[1616]; /* the entry function's argument */
	char library[2048];
};

/* The code, which may stand anywhere. At stub_call with the letter in rbx, and a stack. */
extern const uint8_t stub_start[], stub_call[], stub_called[], stub_end[];

#endif
