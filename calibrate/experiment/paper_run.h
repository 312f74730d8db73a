/* SPDX-License-Identifier: MIT */
/*
 * Running the paper's experiment, and telling what its journals hold.
 */
#ifndef CALIBRATE_EXPERIMENT_PAPER_RUN_H
#define CALIBRATE_EXPERIMENT_PAPER_RUN_H

#include "calibrate/experiment/paper.h"
#include "calibrate/experiment/shard.h"
#include "calibrate/session/session.h"

/*
 * paper_run - tell how long it will take, then run a shard of the grid.
 *
 * Cells that the session knows are not run again. 0: all of the shard has an
 * answer; 1: some cell hung or was killed; -EINTR; -EIO after a complaint; or what
 * a cell failed with.
 */
int paper_run(struct session *session, const struct paper *paper, const struct shard *shard);

/*
 * paper_tell - what is there and what is missing, and what came of it, on stdout.
 * 0 if the whole grid is there, 1 if not, -ENOMEM.
 */
int paper_tell(const struct paper *paper, const struct journal_data *data);

/* paper_duration - "3 d 4 h", "2 h 5 min", "40 s". Returns buf. */
char *paper_duration(double seconds, char *buf, size_t size);

#endif
