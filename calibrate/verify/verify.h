/* SPDX-License-Identifier: MIT */
/*
 * What a verification runs (verify_run.c), what it has seen and what that says of the config
 * (verify.c, which is pure), and telling it (verify_print.c).
 */
#ifndef CALIBRATE_VERIFY_VERIFY_H
#define CALIBRATE_VERIFY_VERIFY_H

#include <stdio.h>

#include "calibrate/plan/plan.h"
#include "calibrate/session/session.h"
#include "patchcore/machine/machine_conf.h"

#define VERIFY_ALPHA	  0.001 /* chance that a config that holds is called broken */
#define VERIFY_TIMES	  10.0	/* a rate so many times the config's p must be excluded */
#define VERIFY_CONFIDENCE 0.95	/* with this */
#define VERIFY_SPREAD	  9.0 /* of storms that take a tenth of the time: none is taken for less */
#define VERIFY_CELLS_MAX  (2 * PLAN_SEATS_MAX + 2 + 4 * 4)
#define VERIFY_PROMISES	  16

/* What a cell is run for. */
enum verify_check {
	CHECK_CONTROL, /* a broken protocol: must tear, or the oracle is blind */
	CHECK_WINDOW,  /* one store inside the config's window: must not */
	CHECK_WAIT     /* the config's waits: no more than its p allows */
};

enum verify_status {
	STATUS_HELD,
	STATUS_BROKEN,
	STATUS_SKIPPED, /* cannot be run here */
	STATUS_UNCLEAR	/* ran, and gave no answer */
};

enum verify_verdict {
	VERIFY_HOLDS,
	VERIFY_BROKEN,
	VERIFY_INCONCLUSIVE,
	VERIFY_NO_CONF /* there is none that applies */
};

/* One cell over all its runs. */
struct verify_cell {
	enum verify_check check;
	struct cell cell; /* the first run that tore, else the last one */
	unsigned runs, noisy;
	unsigned failed;    /* runs that hung, were killed or in error */
	bool apart;	    /* an executor had a CPU that was not the patcher's */
	struct count count; /* exposed toggles and their tears, of all runs */
	struct count quiet; /* of the runs that were quiet and complete */
	uint64_t tears[TEAR_KINDS];
	double seconds;
	bool skipped;
	char reason[200]; /* why it was skipped, or gave no answer */
	enum verify_status status;
};

/* What processor and kernel promise, config or not. */
struct verify_promise {
	const char *name;
	enum verify_status status;
	uint64_t trials, failures;
	double seconds;
	char reason[200];  /* in a line: what came of it */
	char command[320]; /* that runs its first failure again; "" without one */
};

struct verify {
	char config[4096];	   /* its path, fit to print; "" if none was found */
	bool have_conf, have_here; /* these were read: */
	struct machine_conf conf;
	struct identity here;
	double accept_p; /* by it the library would choose the levels that are tried */
	uint64_t seed;
	double budget, seconds; /* seconds: taken */
	char date[32];		/* UTC, when it ended */
	int cut_short;		/* 0, or the exit status that says why */
	struct verify_cell cell[VERIFY_CELLS_MAX];
	unsigned cells;
	struct verify_promise promise[VERIFY_PROMISES];
	unsigned promises;

	/* From verify_judge(), or verify_conclude(). */
	uint64_t toggles, quiet, tears; /* exposed toggles at the config's waits */
	double upper_p;			/* what the quiet toggles alone say */
	uint64_t missing;
	enum verify_verdict verdict;
	int status; /* exit status */
	char reason[400];
};

/*
 * verify_level - the level that is tried at sites of a claim: that by which the library changes
 * them for the accepted probability. verify_bound - what a level says of them. verify_p - the bound
 * of the level that is tried. verify_spread - how much the rate differed between slices when that
 * was measured.
 */
const struct machine_conf_level *verify_level(const struct verify *v, int claim);
const struct machine_conf_bound *verify_bound(const struct machine_conf_level *level, int claim);
double verify_p(const struct verify *v, int claim);
double verify_spread(const struct verify *v, int claim);

/*
 * verify_in_storm - the rate of a storm where p is the mean. If a share of the time is storms, and
 * all tears are in them, the spread is (1 - share) / share, and a storm has 1 / share times the
 * mean. A run may be shorter than one storm, so no more tears than in a storm break nothing. A
 * calibration that saw few tears knows little of the spread: VERIFY_SPREAD at least.
 */
double verify_in_storm(double p, double spread);

/*
 * verify_missing - how many more toggles without a tear it takes until a rate of VERIFY_TIMES p is
 * excluded with that confidence. 0: it is already.
 */
uint64_t verify_missing(const struct count *seen, double spread, double p, double confidence);

/* verify_add - one more run of a cell. */
void verify_add(struct verify_cell *cell, const struct cell_record *record);
uint64_t verify_tears(const struct verify_cell *cell);

/*
 * verify_since - one more promise: no wait tears more often than an older config bounds it. Looked
 * at are what the config in force has counted of each wait that both have, and the cells.
 */
void verify_since(struct verify *v, const struct machine_conf *before);

/* verify_has_seen - did every control tear? If not, the other counts are no evidence. */
bool verify_has_seen(const struct verify *v);

/* verify_judge - from what was counted to cell statuses, verdict and reason. */
void verify_judge(struct verify *v);

/* verify_conclude - with its exit status, and the reason in words. False, for a caller that refuses
 * a config. */
bool verify_conclude(struct verify *v, enum verify_verdict verdict, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

const char *verify_check_name(enum verify_check check);	      /* "control", ... */
const char *verify_status_name(enum verify_status status);    /* "held", ... */
const char *verify_verdict_name(enum verify_verdict verdict); /* "holds", ... */

/*
 * verify_plan - what to run: the controls, the window as wide as the config has it, and in each
 * placement of the topology a site across a line and one across a page, at the config's waits.
 */
void verify_plan(struct verify *v, hwloc_topology_t topology);

/*
 * verify_run - run them within the session's budget, but for the last `reserve` seconds. Sets
 * v->cut_short if it must end early.
 */
void verify_run(struct verify *v, struct session *session, double reserve);

enum verify_format {
	VERIFY_TEXT,
	VERIFY_JUNIT,
	VERIFY_JSON
};

/* verify_format_parse - "text", "junit" or "json"; -EINVAL. */
int verify_format_parse(const char *name);
void verify_print(FILE *f, const struct verify *v, enum verify_format format);

#endif
