/* SPDX-License-Identifier: MIT */
/*
 * Which functions have other parts, that were put elsewhere (f and f.cold): code jumps from one
 * into the middle of another. What may be such a jump is taken for one: bytes are not told apart
 * from instructions.
 */
#ifndef PROBES_CALLS_ENTERED_H
#define PROBES_CALLS_ENTERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/elf/elf.h"

struct entered {
	struct entered_place {
		uint64_t at;   /* in the function */
		bool anywhere; /* not only there: what is known of the part is too little */
	} * place;	       /* sorted by at; free() it, also after an error */
	size_t n, room;
	bool open; /* some part may lead anywhere in its function */
};

/*
 * entered_read - of all functions of an object. -ENOMEM.
 * @jumps: whether a function has an indirect jump, or does not come out as instructions
 */
int entered_read(struct entered *entered, const struct elf *elf, const struct elf_symbols *symbols,
		 bool (*jumps)(const struct elf_symbol *function, void *data), void *data);

/* entered_from - the index of the first place at or behind an address. */
size_t entered_from(const struct entered *entered, uint64_t at);

#endif
