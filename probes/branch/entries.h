/* SPDX-License-Identifier: MIT */
/*
 * The sections fi_branch_sites and fi_call_sites: entries of any length, each
 *
 *	u32	its length
 *	i32	the site, or the jump of a call, from here
 *	i32	its other side, or the slot of a call, from here
 *	u32	the usual side; 0 of a call
 *	text	the name, with its 0; filled up to a multiple of four
 */
#ifndef PROBES_BRANCH_ENTRIES_H
#define PROBES_BRANCH_ENTRIES_H

#include <stdbool.h>
#include <stdint.h>

#include "probes/elf/elf.h"

/* Addresses are those of the file. The name is in the image. */
struct entry {
	uint64_t site;
	uint64_t other;
	bool usual;
	const char *name;
};

/* What is not 0 ends the reading and is returned. */
typedef int entry_fn(const struct entry *entry, void *data);

/* entries_read - all entries of a section. What is behind a damaged one is not read. */
int entries_read(const struct elf *elf, const char *section, entry_fn *tell, void *data);

#endif
