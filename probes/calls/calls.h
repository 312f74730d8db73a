/* SPDX-License-Identifier: MIT */
/*
 * Sites at which the compiler has put a call of a function of its own choice: an E8, or as the last
 * thing of a function an E9, that leads to the function, or to the PLT: a jump through the slot
 * where the loader puts the address of the function.
 */
#ifndef PROBES_CALLS_CALLS_H
#define PROBES_CALLS_CALLS_H

#include <stdbool.h>
#include <stddef.h>

#include "probes/core/provider.h"
#include "probes/elf/elf.h"

#define CALLS_MAX 2 /* functions of one provider */

struct calls {
	const struct provider *provider;
	size_t n;
	struct {
		const char *function; /* that is called */
		enum fi_kind kind;    /* of the probes there */
	} to[CALLS_MAX];
	const void *direct; /* where to[0] is in this library; NULL: calls by the PLT only */
	bool offsets;	    /* probes are named FUNCTION+OFFSET */
	/* Why calls of the function must be left alone, or NULL. @slot: NULL for direct ones */
	const char *(*refuse)(const struct object *object, const struct elf_symbols *symbols,
			      const char *function, const void *slot);
};

/* calls_discover - turn the calls of an object off, all in one batch, and add a probe for each. */
int calls_discover(const struct calls *calls, struct object *object, const void *image,
		   size_t size);

/* calls_arm - arm() for them. */
int calls_arm(struct probe *probe);

#endif
