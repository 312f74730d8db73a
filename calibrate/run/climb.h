/* SPDX-License-Identifier: MIT */
/* A calibration: slices on every rung of the ladder, shuffled, until the time is up. */
#ifndef CALIBRATE_RUN_CLIMB_H
#define CALIBRATE_RUN_CLIMB_H

#include "calibrate/plan/plan.h"
#include "calibrate/run/session.h"
#include "calibrate/statistics/estimate.h"

/*
 * climb - run the plan.
 *
 * 0 with the estimate of this run, whose sums are in *sums (the caller frees them, always).
 * -EINTR: asked to stop; -EIO with a message on stderr: the journal cannot be written; another
 * negative errno: no cell could be run any more. What is known until then is evidence all the
 * same, unless the estimate is blind.
 */
int climb(struct session *session, const struct plan *plan, struct sums *sums,
	  struct estimate *estimate);

#endif
