/* SPDX-License-Identifier: MIT */
/*
 * What the files of this room tell each other. Ticks are those of the time stamp counter.
 */
#ifndef PROBES_PROFILE_EPOCHS_EPOCHS_H
#define PROBES_PROFILE_EPOCHS_EPOCHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "probes/include/fastinst.h"
#include "probes/profile/estimate/duration.h"
#include "probes/profile/estimate/estimate.h"
#include "probes/profile/estimate/pace.h"
#include "probes/profile/sample/clock.h"
#include "probes/profile/sample/sample.h"
#include "probes/profile/session/report.h"

/* --- profiling.c: what is known, and its lock: of the thread that changes which probes there are
 */

/* What is asked for. */
struct options {
	double before; /* CPU seconds of this thread, when its start began */
	double epoch;  /* seconds */
	double budget; /* share of CPU time */
	unsigned samples;
	bool by_count;	       /* windows are never closed by time */
	bool no_times;	       /* exits are left alone */
	bool visits;	       /* a process that runs: see probes/agent/pin.h */
	const char *functions; /* patterns, as text_word() reads them */
};

/* What is known of one probe. */
struct function_state {
	struct estimate estimate;
	struct duration duration; /* ticks */
	uint64_t start;		  /* of the epoch, by the program's clock */
	uint64_t window;
	struct epoch epoch; /* that waits for its length */
	bool opened;	    /* ever */
	bool watched;
	bool gone; /* with its object: watched when that comes again */
};

/* Of all probes together. */
struct account {
	uint64_t epochs, toggles, refused;
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
extern struct function_state function_states[]; /* by probe id */
extern uint8_t rest_epochs[];			/* epochs until a probe is looked at again */
extern uint32_t known_probes;			/* probes that were asked for */
extern struct account account;
extern struct pace pace;

/* Room for a list of probes to be turned on or off, for who holds the lock. */
extern uint32_t reopened[];

/* profiling_lock - recursive; -ETIMEDOUT after a second. profiling_wait_lock - without that. */
int profiling_lock(void);
int profiling_wait_lock(void);
void profiling_unlock(void);

/* --- clocks.c --------------------------------------------------------------------------------- */

/* clocks_measure - ticks per second, within a percent: only windows and epochs are chosen by it. */
double clocks_measure(void);

void clocks_sleep(uint64_t ticks);

/* clocks_learn_parallel - learn how many threads of the program run, of late. Once an epoch. */
void clocks_learn_parallel(void);

/*
 * clocks_since - from start to now, which are CPU time of the program, as wall time in which it
 * runs: windows are chosen in that, and epochs measured by the program's clock, which is faster
 * with several threads at work.
 */
uint64_t clocks_since(uint64_t start, uint64_t now);

/* --- clocks.c: what the profile costs, by its own measure ------------------------------------- */

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

/* --- windows.c: how long a probe is watched, what that has shown, and the next window --------- */

/*
 * windows_activate - turn n probes on that are off; each window by what is known of its probe. The
 * list is sorted out in place. The estimated calls of the epochs that end by that.
 */
double windows_activate(uint32_t *ids, size_t n);

/* windows_turn_exits_on - turn on what times these entries, before them. */
void windows_turn_exits_on(const uint32_t *ids, size_t n);

/*
 * windows_read - what the window of a probe in that state has seen until now. windows_learn - the
 * epoch that was read ends. Its calls, estimated. windows_continue - the same, and the next window
 * of a probe that is still on, so that no code has to be changed.
 */
void windows_read(uint32_t id, uint64_t state, uint64_t now);
double windows_learn(uint32_t id, uint64_t end);
double windows_continue(uint32_t id, uint64_t state, uint64_t now);

/* windows_set_affordable - what the epoch that begins may count in addition, while the profile is
 * new. */
void windows_set_affordable(void);

/* windows_set_rest - how many epochs pass until a probe that is hardly called is looked at again:
 * all its calls are counted anyway. */
void windows_set_rest(uint32_t id);

/* --- bursts.c: where the program spends its time, by one burst per epoch; with the lock ----- */

/* At an address, in ticks that the program would have taken without probes and with all its CPUs.
 */
struct burst_address {
	uint64_t at; /* 0: not known */
	double ticks[SHARE_GROUPS];
};

/* bursts_sample - one burst. Probes that were off stay on until bursts_settle(). */
void bursts_sample(void);

/* bursts_settle - probes that no window has turned on since are off again. */
void bursts_settle(void);

/* bursts_list - all addresses; those without ticks are free. bursts_forget - there was none. */
#define BURST_ADDRESSES 16384u
const struct burst_address *bursts_list(void);
void bursts_forget(void);

/* --- functions.c: which functions are watched, as objects come and go ------------------------- */

/* functions_watch - those among the first n probes that are new and asked for. */
void functions_watch(uint32_t n);

/* functions_scan - what came and went is noticed. functions_scan_if_loaded - if anything came. */
void functions_scan(void);
void functions_scan_if_loaded(void);

/* --- epochs.c: the thread that opens windows, once per epoch ---------------------------------- */

/* epochs_start_thread - in the place of an earlier one. Negative errno. */
int epochs_start_thread(void);

/* epochs_end_thread - it begins no other epoch. */
void epochs_end_thread(void);

/* epochs_run - what the thread runs. @number: of those that were started. */
void epochs_run(uintptr_t number);

/* --- profiling.c: a profile from its start to its end, and in a child; report.c --------------- */

/* profiling_start - finds probes, opens all windows, starts the thread. Negative errno. */
int profiling_start(const struct options *options);

/* profiling_is_on - whether this process is profiled, and not over. Changes with the lock held. */
bool profiling_is_on(void);

/* profiling_finish - the last epoch ends. -ETIMEDOUT: the lock is not to be had. */
int profiling_finish(void);

/* profiling_stop - nothing is probed any more; profiling_start() may come again. Negative errno. */
int profiling_stop(void);

/*
 * profiling_reset_in_child - in the child: nothing was counted, and there is a thread again, or
 * nothing is probed.
 */
void profiling_reset_in_child(bool again);

/* report_profile - what was learned. */
void report_profile(FILE *out);

#endif
