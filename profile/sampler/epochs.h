/* SPDX-License-Identifier: MIT */
/* What the files of this room share. Ticks are those of the time stamp counter. */
#ifndef PROFILE_SAMPLER_EPOCHS_H
#define PROFILE_SAMPLER_EPOCHS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/clock.h"
#include "probes/include/fastinst.h"
#include "profile/sample/sample.h"
#include "profile/sampler/session_report.h"
#include "profile/statistics/duration.h"
#include "profile/statistics/estimate.h"
#include "profile/statistics/pace.h"

/* --- agent.c: what is known, and its lock ---------------------------------------------------- */

/* What the command asks for. */
struct options {
	double before; /* CPU seconds of this thread, when the start began */
	double epoch;  /* seconds */
	double budget; /* share of CPU time */
	unsigned samples;
	bool no_times;	       /* no exit is turned on */
	bool visits;	       /* the process was running before: see agent/counts/base.h */
	const char *functions; /* patterns, as text_word() reads them */
};

/* What is known of one function, by the probe of its entry. */
struct function_state {
	struct estimate estimate;
	struct duration duration; /* ticks */
	uint64_t start;		  /* of the epoch, by the program's clock */
	uint64_t window;
	struct epoch epoch; /* the last one, whose length is not known yet */
	bool opened;	    /* ever */
	bool watched;
	bool gone; /* its object was unloaded: watched when that comes again */
};

/* Sums over all probes. */
struct account {
	uint64_t epochs, toggles, refused;
	uint64_t with_exits;   /* functions */
	uint64_t frequent;     /* functions called too often for all calls to be counted */
	uint64_t began;	       /* ticks */
	uint64_t last;	       /* end of the last epoch; 0: there was none */
	double began_at;       /* seconds */
	double spent, used;    /* ticks */
	double start;	       /* ticks spent before the first epoch began */
	double used_at_start;  /* of the process, before it was profiled */
	double turning_on;     /* ticks spent in turning probes on and off, but by executors */
	uint64_t run_at_start; /* calls of the probe functions */
	struct moments moments;
};

extern struct options asked;
extern struct function_state function_states[]; /* by probe id */
extern uint8_t rest_epochs[]; /* epochs until the window of a probe is read again */
extern uint32_t known_probes; /* probes with ids below that were looked at */
extern struct account account;
extern struct pace pace;

/* Recursive. Of the thread that changes which probes there are, or are on. */
extern pthread_mutex_t profile_lock;

/* Room for a list of probes to be turned on or off. Of the thread that holds the lock. */
extern uint32_t reopened[];

/* --- clocks.c -------------------------------------------------------------------------------- */

/* clocks_measure - ticks per second, within a percent: it chooses windows and epochs only. */
double clocks_measure(void);

void clocks_sleep(double seconds);

/* clocks_learn_parallel - learn how many threads of the program run, of late. Once an epoch. */
void clocks_learn_parallel(void);

/*
 * clocks_since - from start to now, which are CPU time of the program, as wall time in which it
 * runs: windows are chosen in that, and epochs measured by the program's clock, which is faster
 * with several threads at work.
 */
uint64_t clocks_since(uint64_t start, uint64_t now);

/* --- clocks.c: what the profile costs, by its own measure ------------------------------------ */

/*
 * cost_of_all - ticks: the thread of epochs, what turned probes off, calls of the probe function.
 * cost_of_toggling - of them, what turning probes on and off took.
 */
double cost_of_all(void);
double cost_of_toggling(void);

/* cost_add_toggling - CPU seconds of this thread, since which it has turned probes on or off. */
void cost_add_toggling(double since);

/* cost_settle - note what was spent and used until now, also behind the last epoch. */
void cost_settle(void);

/* --- windows.c: how long a probe is watched, what that has shown, and the next window -------- */

/*
 * windows_activate - end an epoch of n probes that are off, and turn them on for their next
 * windows. The list is changed. Returns the estimated calls of these epochs.
 */
double windows_activate(uint32_t *ids, size_t n);

/*
 * windows_read - note what the window of a probe in that state has seen until now.
 * windows_learn - end the epoch that was read; its estimated calls.
 * windows_continue - the same, and open the next window of a probe that is still on, without a
 * change of code.
 */
void windows_read(uint32_t id, uint64_t state, uint64_t now);
double windows_learn(uint32_t id, uint64_t end);
double windows_continue(uint32_t id, uint64_t state, uint64_t now);

/*
 * windows_set_affordable - set how many calls the next epoch may count in addition, while the
 * profile is new.
 */
void windows_set_affordable(void);

/* --- bursts.c: where the program spends its time, by one burst per epoch; with the lock ------ */

/* Time at an address, in ticks, as it would be without probes. */
struct burst_address {
	uint64_t at; /* 0: not known */
	double ticks[SHARE_GROUPS];
};

/* bursts_sample - take one burst. Probes that were off stay on until bursts_settle(). */
void bursts_sample(void);

/* bursts_settle - turn probes off again that no window has turned on since. */
void bursts_settle(void);

/* bursts_list - all addresses; those without ticks are free. bursts_forget - drop all bursts. */
#define BURST_ADDRESSES 16384u
const struct burst_address *bursts_list(void);
void bursts_forget(void);

/* --- functions.c: which functions are watched, as objects come and go ------------------------ */

/* functions_watch - open windows of those among the first n probes that are new and asked for. */
void functions_watch(uint32_t n);

/* functions_scan - follow objects that came or went. functions_scan_if_loaded - if any came. */
void functions_scan(void);
void functions_scan_if_loaded(void);

/* --- epochs.c: the thread that opens windows, once per epoch --------------------------------- */

/* epochs_start_thread - start the thread of epochs; an earlier one ends. Negative errno. */
int epochs_start_thread(void);

/* epochs_end_thread - have the thread begin no other epoch. */
void epochs_end_thread(void);

/* epochs_run - the function of the thread. @number: how many were started */
void epochs_run(uintptr_t number);

/* --- report.c -------------------------------------------------------------------------------- */

/* report_profile - write the lines of this process. */
void report_profile(FILE *out);

#endif
