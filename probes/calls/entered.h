/* SPDX-License-Identifier: MIT */
/*
 * Where functions may be entered in their middle, by what their own branches do not show: tables of
 * `switch` and of computed goto, and jumps between the parts that a compiler made of one function
 * (f and f.cold). What may be such a way is taken for one: bytes are not told apart from
 * instructions, and how long a table is, only by what it leads to, or where another one begins.
 */
#ifndef PROBES_CALLS_ENTERED_H
#define PROBES_CALLS_ENTERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/elf/elf.h"

struct entered {
	struct entered_place {
		uint64_t at;
		bool other; /* also by code of another function: both are parts of one */
	} * place;	    /* sorted by at; free() it, also after an error */
	size_t n, room;
};

/*
 * entered_read - of all functions of an object. -ENOMEM.
 * @values: words that the loader makes addresses
 */
int entered_read(struct entered *entered, const struct elf *elf, const struct elf_symbols *symbols,
		 const struct elf_values *values);

/* entered_from - the index of the first place at or behind an address. */
size_t entered_from(const struct entered *entered, uint64_t at);

#endif
