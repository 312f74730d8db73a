/* SPDX-License-Identifier: MIT */
/*
 * The store of evidence: what every run on this machine has counted, in one file.
 *
 * A journal (results/journal/journal.h) to which each run appends one line "evidence" with its sums
 * and a checksum. Nothing in it is ever changed. A line that was cut or damaged is passed
 * over and counted, and the others stand. If it may have begun an epoch, it begins one.
 *
 * A run is known by the first cell that it counted, which it shares with every other run that
 * resumes a copy of its journal; older ones by their checksum. Its line may come any number of
 * times, and the first of them counts.
 *
 * Evidence of a machine that has changed is no evidence of what it is now. So runs belong to
 * epochs: a new one begins where the identity differs from the run before (CPU, microcode,
 * hypervisor, topology, kernel), and where a line "epoch" says so. That line is written when the
 * counts of two runs in a row, of different hours, differ from those before them by more than
 * chance does once in a thousand times, or when the user drops an epoch.
 */
#ifndef CALIBRATE_STATISTICS_EVIDENCE_H
#define CALIBRATE_STATISTICS_EVIDENCE_H

#include "calibrate/statistics/estimate.h"
#include "calibrate/statistics/sums.h"
#include "patchcore/machine/cpus.h"

#define CPUS_TEXT	 (CPUS_MAX * 3) /* at most every other one, with four digits and a comma */
#define EVIDENCE_CHANGED 1e-3 /* chance of runs so different on a machine that is the same */
#define EVIDENCE_PRINT	 17   /* bytes of a checksum as text */
#define EVIDENCE_KNOWN	 5    /* with fewer runs it is unknown how much they differ */

struct evidence_run {
	char date[32];		    /* UTC, when it ended */
	int64_t time;		    /* the same in seconds since 1970 */
	char boot[40];		    /* the kernel's id of the boot; "" if it is not known */
	int64_t up;		    /* seconds since that boot; -1: not known */
	char start[EVIDENCE_PRINT]; /* of its first cell; "": not known */
	char source[16];	    /* "quick", "default", "verify", "stress", ... */
	char print[EVIDENCE_PRINT]; /* of what it is known by, as read */
	struct identity identity;
	struct cpus cpus; /* that it was allowed to use: of others it says nothing */
	unsigned epoch;	  /* from 1 */
	struct sums sums;
};

struct evidence {
	struct evidence_run *run;
	size_t count;
	unsigned epoch; /* that a run of the same machine would belong to; 0: there is no run */
	size_t broken;	/* lines that were passed over */
};

/*
 * evidence_read - each run once, the first line of it. 0, also if there is no such file, or a
 * negative errno. The caller frees.
 */
int evidence_read(const char *path, struct evidence *evidence);
void evidence_free(struct evidence *evidence);

/*
 * evidence_check - may only this user and root write to the store? 0, also if there is none;
 * -EPERM after telling on stderr why not; or another negative errno.
 */
int evidence_check(const char *path);

enum evidence_line {
	EVIDENCE_BROKEN, /* a run: damaged, forged without care, or of a newer schema */
	EVIDENCE_LOST,	 /* cannot be read; a new epoch begins, as that may be what it said */
	EVIDENCE_RUN,
	EVIDENCE_EPOCH, /* a new one begins */
	EVIDENCE_OTHER, /* a sound line of something else */
};

/*
 * evidence_take_line - what a line of a store holds (text NULL: too long a line). The run's sums
 * are the caller's to free. other: the line, where it is EVIDENCE_OTHER, else NULL.
 */
enum evidence_line evidence_take_line(const char *text, size_t length, struct evidence_run *run,
				      json_t **other);

/*
 * evidence_append - add a run: one line, written at once and flushed to the file system;
 * several programs may do so. epoch is not looked at. 0, -EPERM as evidence_check(), or another
 * negative errno.
 */
int evidence_append(const char *path, const struct evidence_run *run);

/* evidence_begin_epoch - what comes from now on is another machine's. 0 or a negative errno. */
int evidence_begin_epoch(const char *path, const char *reason);

/* hash_text - FNV-1a; begins with HASH_START. */
#define HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t hash_text(uint64_t hash, const char *text);

/* evidence_start - what a run is known by whose first cell it is. */
void evidence_start(char start[EVIDENCE_PRINT], const struct cell_record *first);

/* evidence_stamp - date, time, boot, start and source of a run that ends now. first: or NULL. */
void evidence_stamp(struct evidence_run *run, const char *source, const struct identity *id,
		    const struct cpus *cpus, const struct cell_record *first);

/*
 * evidence_add - append what cells have counted, as a run that ends now. Cells that say nothing of
 * waits or windows, as those of a broken protocol, do not count; if none does, nothing is written.
 * 0 or a negative errno.
 */
int evidence_add(const char *path, const char *source, const struct identity *id,
		 const struct cpus *cpus, const struct cell_record *records, size_t count);

/* What is known of these CPUs of this machine, as it is now. */
struct knowledge {
	struct sums *runs; /* for estimate_make() */
	size_t count;
	size_t all;			   /* runs, before those of one hour became one */
	const struct evidence_run *latest; /* NULL: nothing is known */
};

/*
 * knowledge_of - from the runs of the present epoch, if that is this machine's. Runs that ended
 * in the same hour ran under the same conditions: they are added up to one. Within a boot the
 * seconds since it tell hours: the time may be set. 0 or -ENOMEM; the evidence must outlive it.
 */
int knowledge_of(struct knowledge *knowledge, const struct evidence *evidence,
		 const struct identity *here, const struct cpus *cpus);
void knowledge_free(struct knowledge *knowledge);

/*
 * evidence_strangeness - the chance that a run and the last one before it both differ so much from
 * all before them, to the same side, on a machine that has not changed. One alone may be a storm of
 * which the others met none. By the logarithms of each run's tears against those that the rates of
 * the others would give, and their spread between runs (Student's t). 1 if there are too few runs
 * to tell.
 */
double evidence_strangeness(const struct sums *before, size_t count, const struct sums *run);

#endif
