/* SPDX-License-Identifier: MIT */
/*
 * Plans that answer a question instead of finding waits. They never touch
 * machine.conf.
 */
#ifndef CALIBRATE_EXPERIMENT_EXPERIMENT_H
#define CALIBRATE_EXPERIMENT_EXPERIMENT_H

#include "calibrate/experiment/paper.h"
#include "calibrate/experiment/shard.h"
#include "calibrate/experiment/tail_plan.h"
#include "calibrate/session/session.h"

enum experiment_kind {
	EXPERIMENT_NONE, /* a calibration */
	EXPERIMENT_PAPER,
	EXPERIMENT_TAIL,
	EXPERIMENT_KINDS
};

struct experiment {
	enum experiment_kind kind;
	struct paper paper;
	struct shard shard;
	struct tail_plan tail;
	bool fifo;
	const char *journal;
	const char *figure; /* prefix, or NULL */
};

/* experiment_find - by the name of a plan. EXPERIMENT_NONE if it is none of them. */
enum experiment_kind experiment_find(const char *plan);

/* experiment_name - for the journal: "paper", "tail", "tail-fifo". */
const char *experiment_name(const struct experiment *e);

/*
 * experiment_prepare - choose seats and arms for this machine and budget. EXIT_PASS,
 * or another exit status after a complaint.
 */
int experiment_prepare(struct experiment *e, hwloc_topology_t topology, double budget);

/*
 * experiment_run - run it in a session whose journal is open; what the whole journal
 * holds of it is told on stdout. plan says where a single pair of threads can sit.
 * Returns an exit status.
 */
int experiment_run(struct experiment *e, struct session *session, const struct plan *plan);

/* experiment_merge - run nothing; tell what these journals hold together. */
int experiment_merge(struct experiment *e, char *const *journals, int count);

#endif
