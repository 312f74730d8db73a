/* SPDX-License-Identifier: MIT */
/*
 * What a fleet says of this machine: a line of the table that export_prior() writes.
 */
#ifndef FLEET_EXPORT_PRIOR_H
#define FLEET_EXPORT_PRIOR_H

#include "calibrate/statistics/estimate.h"
#include "patchcore/machine/identity.h"

struct prior {
	struct estimate estimate; /* its levels, window and cost of a membarrier; no verdict yet */
	double confidence;	  /* of the bounds */
	uint64_t machines;
	int64_t measured; /* when the latest of the runs behind it ended */
	bool placed[PLACEMENT_COUNT];
};

/*
 * prior_read - the line of the kind of this machine. 0; or with one line in why: -ENODATA: the
 * table has none for it, -EINVAL: it is none of ours or claims more than its machines exclude,
 * -ENOMEM, or what reading failed with.
 */
int prior_read(const char *path, const struct identity *here, struct prior *prior, char *why,
	       size_t size);

/* prior_decide - the verdict and its reason: does some level keep that probability? */
void prior_decide(struct prior *prior, double require_p);

#endif
