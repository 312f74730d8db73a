/* SPDX-License-Identifier: MIT */
/*
 * What is known of each probe and of the profile as a whole, and the lock of all that: it is held
 * by the thread that changes which probes there are.
 */
#ifndef PROBES_PROFILE_EPOCHS_BOOKS_H
#define PROBES_PROFILE_EPOCHS_BOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "probes/profile/estimate/duration.h"
#include "probes/profile/estimate/estimate.h"
#include "probes/profile/estimate/pace.h"
#include "probes/profile/session/report.h"

/* What is asked for. */
struct options {
	double before; /* CPU seconds of this thread, when its start began */
	double epoch;  /* seconds */
	double budget; /* share of CPU time */
	unsigned samples;
	unsigned limit;
	bool by_count;	       /* windows are never closed by time */
	bool no_times;	       /* exits are left alone */
	bool visits;	       /* a process that runs: see probes/agent/pin.h */
	const char *functions; /* patterns, as text_word() reads them */
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

/* Of all probes together. */
struct account {
	uint64_t epochs, toggles, lost, refused;
	uint64_t with_exits;   /* functions */
	uint64_t frequent;     /* of them those called too often for all calls to be counted */
	uint64_t began;	       /* ticks */
	uint64_t last;	       /* epoch's end; 0: there was none */
	double began_at;       /* seconds */
	double spent, used;    /* ticks */
	double start;	       /* of them, until the first epoch began */
	double used_at_start;  /* of the process, before it was profiled */
	double turning_on;     /* of them */
	uint64_t run_at_start; /* calls of the probe functions */
	struct moments moments;
};

extern struct options asked;
extern struct book *books;   /* by probe id; NULL: nothing was profiled yet */
extern uint8_t book_rests[]; /* epochs until a probe is looked at again */
extern uint32_t books_known; /* probes that were asked for */
extern struct account account;
extern struct pace pace;

/* books_make - 0 or -ENOMEM. */
int books_make(void);

/* books_lock_start - make it, and free: at first, and in a child, where its owner is no thread. */
void books_lock_start(void);

/* books_lock, books_unlock - the thread waits meanwhile. Recursive. -ETIMEDOUT after a second. */
int books_lock(void);
void books_unlock(void);

/* books_wait - as long as it takes. Negative errno. */
int books_wait(void);

#endif
