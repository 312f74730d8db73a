/* SPDX-License-Identifier: MIT */
#ifndef PROBES_CALLS_JUMPS_H
#define PROBES_CALLS_JUMPS_H

#include <stdint.h>

#include "probes/calls/entered.h"
#include "probes/elf/elf.h"

struct jumps {
	const struct elf *elf;
	const struct elf_symbols *symbols;
	const struct entered *entered;
};

/*
 * jumps_follow - where the indirect jumps of a function lead: 1: to these addresses, and to no
 * others; 0: that is not proven. -ENOMEM.
 * @to: free() it where there are any
 */
int jumps_follow(const struct jumps *jumps, const struct elf_symbol *function, const uint8_t *code,
		 uint64_t **to, uint32_t *n);

#endif
