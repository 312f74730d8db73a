/* SPDX-License-Identifier: MIT */
/*
 * The search for T_max.
 */
#ifndef CALIBRATE_SEARCH_H
#define CALIBRATE_SEARCH_H

#include "calibrate/estimate.h"
#include "calibrate/plan.h"
#include "calibrate/session.h"

/*
 * search_run - run all stages of a plan.
 *
 * 0 with the estimate complete; -EINTR with what is known so far; other
 * negative errno when nothing could be concluded.
 */
int search_run(struct session *session, const struct plan *plan, struct estimate *estimate);

#endif
