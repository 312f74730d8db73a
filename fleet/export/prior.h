/* SPDX-License-Identifier: MIT */
/* What a fleet says of this machine: a line of the table that export_prior() writes. */
#ifndef FLEET_EXPORT_PRIOR_H
#define FLEET_EXPORT_PRIOR_H

#include "fleet/judge/ladder_of.h"

struct prior {
	struct fleet_kind kind;	  /* that it is of, without its number */
	struct estimate estimate; /* its levels, window and cost of a membarrier; no verdict yet */
	struct behind behind;	  /* only to be written */
	double confidence;	  /* of the bounds */
	bool placed[PLACEMENT_COUNT]; /* read: placements that were tested */
};

/* prior_to_json - the body of its line. NULL: no memory. */
json_t *prior_to_json(const struct prior *prior);

/*
 * prior_read - the line of the kind of this machine. 0; or with one line in why: -ENODATA: the
 * table has none for it, -EINVAL: it is none of ours or claims more than its machines exclude,
 * -ENOMEM, or what reading failed with.
 */
int prior_read(const char *path, const struct identity *here, struct prior *prior, char *why,
	       size_t size);

#endif
