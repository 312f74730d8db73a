/* SPDX-License-Identifier: MIT */
/* The provider of static branches and static calls. They are no probes, and have no ids. */
#ifndef PROBES_PROVIDERS_BRANCH_H
#define PROBES_PROVIDERS_BRANCH_H

#include "probes/core/core.h"
#include "probes/elf/elf.h"

#define BRANCH_LEN     5
#define BRANCH_DAMAGED "its entry points outside the code"

/* Addresses are those of the file. The name is in the image. */
struct branch_entry {
	uint64_t site;
	uint64_t other;
	bool usual;
	const char *name;
};

/* A result other than 0 ends the reading and is returned. */
typedef int entry_fn(const struct branch_entry *entry, void *data);

/* entries_read - all entries of a section. What is behind a damaged one is not read. */
int entries_read(const struct elf *elf, const char *section, entry_fn *tell, void *data);

/* branch_refusal - why the site of an entry cannot be changed, or NULL. */
const char *branch_refusal(const struct object *object, const struct branch_entry *entry);

#endif
