/* SPDX-License-Identifier: MIT */
/*
 * Running the arms of the tail's experiment in turn, and the table of what came of
 * them.
 */
#ifndef CALIBRATE_EXPERIMENT_TAIL_RUN_H
#define CALIBRATE_EXPERIMENT_TAIL_RUN_H

#include "calibrate/experiment/tail_plan.h"
#include "calibrate/session/session.h"

/*
 * tail_fifo - run this process and all it starts under SCHED_FIFO. 0, or a negative
 * errno: -EPERM where that is not permitted.
 */
int tail_fifo(void);

/*
 * tail_run - run arms in turn on that seat until the session's budget is spent.
 *
 * An arm that this machine cannot run is taken out of the plan, with the reason on
 * stderr. 0; -EINTR; -EIO after a complaint; or -ENOENT: no arm is left.
 */
int tail_run(struct session *session, struct tail_plan *plan, const struct seat *seat);

/* tail_tell - the arms' table, the tears one by one, and the gaps, on stdout. */
void tail_tell(const struct tail_plan *plan, const struct journal_data *data);

#endif
