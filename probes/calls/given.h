/* SPDX-License-Identifier: MIT */
#ifndef PROBES_CALLS_GIVEN_H
#define PROBES_CALLS_GIVEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A function whose calls are looked at. */
struct given {
	struct given_step *step;
	size_t n;
	uint16_t passes; /* registers by which calls are passed that may not return */
	uint16_t stays;	 /* and places that are entered by ways that are not seen */
	bool jumps;	 /* indirectly: to any place */
};

/* What a call is given as its first argument. */
struct given_value {
	enum {
		GIVEN_ADDRESS, /* where that is now */
		GIVEN_NUMBER,  /* as it is in the file */
		GIVEN_SLOT     /* where the loader puts it */
	} kind;
	uintptr_t at;
};

/*
 * given_open - decode a function, of which calls_starts() has shown that it comes out as
 * instructions. -ENOMEM, -ENOTSUP, -ENOEXEC. given_close() it, also after an error.
 * @pads: the object has handlers of exceptions
 */
int given_open(struct given *given, const uint8_t *code, size_t len, bool pads);
void given_close(struct given *given);

/* given_hook - the call at that byte always returns. */
void given_hook(struct given *given, size_t at);

/* given_entered - ways that are no branches of this function lead to that byte. */
void given_entered(struct given *given, size_t at);

/*
 * given_find - the constant that is in rdi at the call or jump at that byte. False: that is not
 * plain. Only for an argument that is the same however the call is come to.
 */
bool given_find(struct given *given, size_t at, struct given_value *value);

#endif
