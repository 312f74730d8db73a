/* SPDX-License-Identifier: MIT */
/*
 * Sites at which the compiler has put a call of a function of its own choice, or as the last thing
 * of a function a jump: to the function, to the PLT, or with -fno-plt through the slot where the
 * loader puts the address of the function.
 */
#ifndef PROBES_PROVIDERS_CALLS_H
#define PROBES_PROVIDERS_CALLS_H

#include <stdbool.h>
#include <stddef.h>

#include "probes/core/provider.h"
#include "probes/elf/elf.h"

#define CALLS_MAX 13 /* functions of one provider, and an empty one behind them */

/* A function that calls lead to. */
struct called {
	const char *function;
	enum fi_kind kind; /* of the probes there */
	uintptr_t extra;   /* of these probes */
	const void *own;   /* this library's; NULL: only calls through the PLT are sites */
	const void *bound; /* to which the loader binds calls of this library */
};

struct calls {
	const struct provider *provider;
	struct called to[CALLS_MAX];
	bool do_nothing;  /* the bound functions do nothing, though they are libc's */
	bool by_argument; /* probes are named after the function whose address is the first
			   * argument, if it is known; else FUNCTION+OFFSET */
};

struct call_site {
	uint8_t *at;
	uint8_t len; /* 5 or 6 */
	bool tail;   /* a jump */
	const struct called *to;
	const struct elf_symbol *function; /* that it lies in */
	const char *name;		   /* of it, or of the first argument; in the image */
	bool own;			   /* it is named after that function, not an inlined one */
	const char *reason;		   /* why it is refused, or NULL */
};

/* Refusals: another provider has a site of the kind in the function; */
#define CALLS_TWICE "the compiler also left room for a probe of this function, which is taken"

/* the called function is not known to do nothing. */
#define CALLS_OWN "the program, or a library, has such a function of its own"

struct call_sites {
	struct call_site *site; /* by address */
	size_t n;
	struct elf_symbols symbols; /* of the object, where it may have any */
};

/*
 * calls_find - the calls of an object. Its code is read where it is: in the process, or a copy of
 * it that is laid out as the loader does. 0 or -ENOMEM. calls_free() in any case.
 */
int calls_find(const struct calls *calls, const struct object *object, const struct elf *elf,
	       struct call_sites *sites);
void calls_free(struct call_sites *sites);

#endif
