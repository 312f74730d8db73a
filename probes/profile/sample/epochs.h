/* SPDX-License-Identifier: MIT */
/*
 * The thread that opens windows, once per epoch, and what it has learned.
 *
 * Its lock is held by the thread that changes which probes there are.
 */
#ifndef PROBES_PROFILE_SAMPLE_EPOCHS_H
#define PROBES_PROFILE_SAMPLE_EPOCHS_H

#include <stdbool.h>
#include <stdint.h>

#include "probes/profile/estimate/duration.h"
#include "probes/profile/estimate/estimate.h"

struct options {
	double before; /* CPU seconds of this thread, when its start began */
	double epoch;  /* seconds */
	double budget; /* share of CPU time */
	unsigned samples;
	unsigned limit;
	bool by_count;	       /* windows are never closed by time */
	bool no_times;	       /* exits are left alone */
	bool visits;	       /* a process that runs: see probes/agent/pin.h */
	const char *functions; /* patterns of fi_find(), separated by blanks */
};

/* What is known of one probe. */
struct book {
	struct estimate estimate;
	struct duration duration; /* ticks */
	uint64_t start;		  /* of the epoch, by the program's clock */
	uint64_t window;
	uint64_t base;
	struct epoch epoch; /* that waits for its length */
	uint64_t limit;	    /* of calls in a window */
	bool opened;	    /* ever */
	bool watched;
};

struct moment {
	double start, length; /* ticks from the start */
	double calls, cost;   /* estimated; ticks */
};

#define MOMENTS 512u

struct account {
	uint64_t epochs, toggles, lost, refused;
	uint64_t with_exits;  /* functions */
	uint64_t began;	      /* ticks */
	uint64_t last;	      /* epoch's end; 0: there was none */
	double began_at;      /* seconds */
	double spent, used;   /* ticks */
	double start;	      /* of them, until the first epoch began */
	double used_at_start; /* of the process, before it was profiled */
	double turning_on;    /* of them */
	struct moment moment[MOMENTS];
	unsigned moments, merged; /* each is of so many epochs */
};

/* epochs_start - finds probes, opens all windows, starts the thread. Negative errno. */
int epochs_start(const struct options *options);

/* epochs_stop - nothing is probed any more; epochs_start() may come again. Negative errno. */
int epochs_stop(void);

/* epochs_count_out - in a child: threads of the parent are not there. Before epochs_forked(). */
void epochs_count_out(void);

/* epochs_forked - in the child: nothing was counted, and there is a thread again, or nothing is
 * probed. */
void epochs_forked(bool again);

/* epochs_lock, epochs_unlock - the thread waits meanwhile. Recursive. -ETIMEDOUT after a second. */
int epochs_lock(void);
void epochs_unlock(void);

/* epochs_scan - what came and went is noticed. The lock is held. */
void epochs_scan(void);

/* epochs_finish - the last epoch ends. The lock is held. */
void epochs_finish(void);

struct book *epochs_book(uint32_t id);
struct account *epochs_account(void);

/* epochs_cost - share of the CPU time of the program that the profile took, by its own measure. */
double epochs_cost(void);

/* epochs_toggling - of that, what turning probes on and off took. */
double epochs_toggling(void);
const struct options *epochs_options(void);

#endif
