/* SPDX-License-Identifier: MIT */
/* Profiles of edges. */
#ifndef PROBES_PROFILE_COMMAND_EDGES_H
#define PROBES_PROFILE_COMMAND_EDGES_H

#include "probes/profile/command/gather.h"
#include "probes/profile/lines/lines.h"
#include "probes/profile/write/write.h"

/* edges_sort - the most first. Complains where there are blocks, and no edge was counted. */
void edges_sort(struct profile *profile);

/* edges_format - by name: one of these, or one that both kinds of profiles have; NULL. */
const struct profile_format *edges_format(const char *name);

/* edges_write_autofdo - what create_llvm_prof and create_gcov read with --profiler=text, of one
 * object. */
profile_writer edges_write_autofdo;

/* The blocks of one object by address, each with the function that it is in. */

struct site {
	uint64_t address, entry, end; /* of its function */
	const char *function;
	double count;
};

struct sites {
	const struct profile *profile;
	const char *object;
	struct image image;
	struct site *site; /* by address */
	size_t n;
};

/* sites_open - 0 or -ENOMEM; to be closed in any case. */
int sites_open(struct sites *sites, const struct profile *profile, const char *object);
void sites_close(struct sites *sites);

/* sites_have - whether a block of the profile is in the object. */
bool sites_have(const struct sites *sites, size_t block);

/* sites_at - that block, or NULL. sites_first - whether it is its function's first. */
const struct site *sites_at(const struct sites *sites, size_t block);
bool sites_first(const struct sites *sites, const struct site *site);

/* sites_end - where the next block begins, or the function ends. */
uint64_t sites_end(const struct sites *sites, const struct site *site);

/*
 * edges_calls - where calls of an object led, by the address of the call; free() it. Their names
 * are in the image. None, where fastinst was built without a decoder. 0 or -ENOMEM.
 */
int edges_calls(const struct sites *sites, struct target **target, size_t *n);

#endif
