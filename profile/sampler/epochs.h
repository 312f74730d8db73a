/* SPDX-License-Identifier: MIT */
/* What the files of this room share. Ticks are those of the time stamp counter. */
#ifndef PROFILE_SAMPLER_EPOCHS_H
#define PROFILE_SAMPLER_EPOCHS_H

#include <pthread.h>

#include "base/clock.h"
#include "probes/include/fastinst.h"
#include "profile/estimate/estimate.h"
#include "profile/sample/sample.h"
#include "profile/sampler/session.h"

/* --- agent.c: what is known, and its lock --------------------------------------------------- */

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
	struct call_estimate estimate;
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
	struct quality sum;  /* but what is only known at the report */
	uint64_t frequent;   /* functions called too often for all calls to be counted */
	uint64_t began;	     /* ticks */
	uint64_t last;	     /* end of the last epoch; 0: there was none */
	double began_at;     /* seconds */
	double spent, used;  /* ticks */
	double start;	     /* ticks spent before the first epoch began */
	double turning_on;   /* ticks spent in turning probes on and off, but by executors */
	double used_before;  /* ticks used by the process before it was profiled */
	uint64_t run_before; /* calls of the probe functions */
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

/* --- windows.c: how long a probe is watched, what that has shown, and the next window ------- */

/*
 * windows_activate - end an epoch of probes that are off, and turn them on for their next windows;
 * the list changes. Returns the estimated calls of these epochs.
 */
double windows_activate(uint32_t *ids, size_t n);

/*
 * windows_read - note what a probe in that state has seen. windows_learn - end that epoch; its
 * estimated calls. windows_continue - the same, and open the next window, without a change of
 * code.
 */
void windows_read(uint32_t id, uint64_t state, uint64_t now);
double windows_learn(uint32_t id, uint64_t end);
double windows_continue(uint32_t id, uint64_t state, uint64_t now);

/* windows_learn_parallel - learn how many threads of the program run, of late. Once an epoch. */
void windows_learn_parallel(void);

/* windows_set_affordable - how many calls more the next epoch of a new profile may count. */
void windows_set_affordable(void);

/*
 * toggles_on - turn entries on. toggles_note - note the CPU seconds of this thread since which it
 * has turned probes on or off, and whether that was refused. toggles_cost - ticks of all of it.
 */
void toggles_on(uint32_t *ids, size_t n);
void toggles_note(double since, bool refused);
double toggles_cost(void);

/* --- bursts.c: where the program spends its time, by one burst per epoch; with the lock ----- */

/* bursts_sample - take one burst. Probes that were off stay on until bursts_settle(). */
void bursts_sample(void);

/* bursts_settle - turn probes off again that no window has turned on since. */
void bursts_settle(void);

/* bursts_report - of a process that used so many CPU seconds. bursts_forget - all of them. */
void bursts_report(FILE *out, double cpu);
void bursts_forget(void);

/* --- epochs.c: which functions are profiled, and the thread that opens windows --------------- */

/*
 * functions_watch - of probes with ids below n, take those that patterns name. functions_scan -
 * follow objects that came or went.
 */
void functions_watch(uint32_t n);
void functions_scan(void);

/* epochs_start_thread - start the thread of epochs; an earlier one ends. Negative errno. */
int epochs_start_thread(void);

/* epochs_end_thread - have the thread begin no other epoch. */
void epochs_end_thread(void);

/* cost_settle - note what was spent and used until now, also behind the last epoch. */
void cost_settle(void);

#endif
