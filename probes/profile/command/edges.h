/* SPDX-License-Identifier: MIT */
/* Profiles of edges. */
#ifndef PROBES_PROFILE_COMMAND_EDGES_H
#define PROBES_PROFILE_COMMAND_EDGES_H

#include "probes/profile/command/gather.h"
#include "probes/profile/lines/lines.h"
#include "probes/profile/write/write.h"

/*
 * edges_sort - edges with most runs first. Complains where there are blocks, and no edge was
 * counted.
 */
void edges_sort(struct profile *profile);

/* edges_format - the format of that name for profiles of edges, or NULL. */
const struct profile_format *edges_format(const char *name);

/* What was run of one object, and which functions the calls in its blocks led to. */
struct sites {
	const struct profile *profile;
	struct image image;
	struct executed run;
};

/*
 * sites_open - 0 or -ENOMEM; close it in any case. Names of functions are in the image. Without a
 * decoder in fastinst there are no targets of calls.
 */
int sites_open(struct sites *sites, const struct profile *profile, const char *object);
void sites_close(struct sites *sites);

/* sites_at - that block of the profile; NULL: it is in another object. */
const struct block *sites_at(const struct sites *sites, size_t block);

/* sites_is_first - whether it is the first block of a function. */
bool sites_is_first(const struct sites *sites, const struct block *block);

/* sites_end - where the next block begins, or the function ends. */
uint64_t sites_end(const struct sites *sites, const struct block *block);

#endif
