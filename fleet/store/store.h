/* SPDX-License-Identifier: MIT */
/*
 * The evidence of many machines in one SQLite database: results/schema/fleet.sql.
 *
 * Machines are judged by kind: vendor, family, model, stepping, microcode, hypervisor and topology.
 * A run is known by its print (calibrate/statistics/evidence.h), so that a file may be merged as
 * often as one likes, under any name, and a journal before or behind the evidence of its run.
 */
#ifndef FLEET_STORE_STORE_H
#define FLEET_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrate/statistics/evidence.h"

#define FLEET_NAME 256 /* bytes of a machine's name */

struct fleet; /* an open database */

/*
 * fleet_open - open a database; create: make it if there is none. All that is written until
 * fleet_close() is one transaction. 0, -ENOENT, -EPROTO: no database of ours, or of another
 * version, or another negative errno.
 */
int fleet_open(struct fleet **fleet, const char *path, bool create);

/* fleet_close - keep: write what was added, else forget it. 0 or a negative errno. */
int fleet_close(struct fleet *fleet, bool keep);

/*
 * fleet_add_run - 1: added; 0: it was there; or a negative errno. machine: gets the name under
 * which the run or its boot is known: a machine has one. id: of the run.
 */
int fleet_add_run(struct fleet *fleet, char machine[FLEET_NAME], const struct evidence_run *run,
		  int64_t *id);

/* A protocol's steps where its file claims that they hold: in a run, or in all runs of a kind. */
struct fleet_protocol {
	char name[128];
	uint64_t changes, tears; /* that could tear, that did */
	uint64_t died;		 /* sites where executors died; of runs the sum */
	uint64_t machines;	 /* only read */
};

/* fleet_add_protocol - of a run that was added. 0 or a negative errno. */
int fleet_add_protocol(struct fleet *fleet, int64_t run, const struct fleet_protocol *protocol);

/* fleet_drop_run - it counts no more. 0 or a negative errno. */
int fleet_drop_run(struct fleet *fleet, int64_t id);

/*
 * fleet_begin_file - before what a file holds is added. fleet_end_file - behind it; unless it is
 * kept it is as if it had not been added. 0 or a negative errno.
 */
int fleet_begin_file(struct fleet *fleet);
int fleet_end_file(struct fleet *fleet, bool keep);

/* fleet_set_aside - a line that is no evidence. 1: added; 0: it was there; or a negative errno. */
int fleet_set_aside(struct fleet *fleet, const char *file, size_t line, const char *text,
		    const char *reason);

/* --- Reading ---------------------------------------------------------------------------------- */

extern const struct field kind_fields[]; /* of struct identity: what makes a kind, and the brand */

struct fleet_kind {
	int64_t id;
	struct identity identity; /* the fields that make a kind, and the brand */
	uint64_t machines, runs;
	int64_t from, to; /* when the first and the last of its runs ended */
	uint64_t khz[2];  /* lowest and highest rate of their TSCs; 0: unknown */
};

/* A machine as its latest run has it. */
struct fleet_host {
	int64_t machine, kind;
	char name[FLEET_NAME];
	char kernel[72];
	int64_t time;
	uint64_t runs; /* of all kinds that it has been */
	uint64_t khz;
};

struct fleet_run {
	int64_t id;
	int64_t machine; /* runs of one machine follow each other, by time */
	char name[FLEET_NAME];
	char kernel[72];
	int64_t time;
	struct sums sums;
};

/* fleet_kinds - all, those of most machines first. The caller frees. */
int fleet_kinds(struct fleet *fleet, struct fleet_kind **kinds, size_t *count);

/* fleet_runs - the runs of a kind that count. 0 or a negative errno. */
int fleet_runs(struct fleet *fleet, int64_t kind, struct fleet_run **runs, size_t *count);
void fleet_runs_free(struct fleet_run *runs, size_t count);

/* fleet_protocols - first those that died, then those that tore. The caller frees. */
int fleet_protocols(struct fleet *fleet, int64_t kind, struct fleet_protocol **protocols,
		    size_t *count);

/* What a kind's runs have counted by the hour of a machine: those in one hour share its storms. */
struct hours {
	struct sums *sums;		/* of each hour, */
	const struct fleet_run **first; /* and its first run */
	size_t count;
};

/* hours_of - of these runs; by_machine: all of a machine is one hour. 0 or -ENOMEM; free it then,
 * too. */
int hours_of(struct hours *hours, const struct fleet_run *runs, size_t count, bool by_machine);
void hours_free(struct hours *hours);

/* fleet_hosts - all machines, by number. The caller frees. 0 or a negative errno. */
int fleet_hosts(struct fleet *fleet, struct fleet_host **hosts, size_t *count);

#endif
