/* SPDX-License-Identifier: MIT */
/*
 * Functions of which the compiler has put parts elsewhere (f and f.cold): code jumps from one part
 * into the middle of another. Bytes are not told apart from instructions: what may be such a jump
 * is taken for one.
 */
#ifndef PROBES_INSN_PARTS_H
#define PROBES_INSN_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/elf/elf.h"

/* Addresses in the middle of functions that other parts may jump to. */
struct part_entries {
	struct part_entry {
		uint64_t at;
		bool anywhere; /* and to any other address in the function */
	} * entry;	       /* sorted by at; free() it, also after an error */
	size_t n;
	bool open; /* some part may jump to any address in its function */
};

/* part_entries_read - of all functions of an object. -ENOMEM. */
int part_entries_read(struct part_entries *entries, const struct elf *elf,
		      const struct elf_symbols *symbols);

/* part_entries_from - the index of the first one at or behind an address. */
size_t part_entries_from(const struct part_entries *entries, uint64_t at);

#endif
