/* SPDX-License-Identifier: MIT */
/* A cell: one point of measurement. What to run, and what came out. */
#ifndef STRESS_CELL_CELL_H
#define STRESS_CELL_CELL_H

#include <stdint.h>

#include "base/command_line.h"
#include "patchcore/machine/sync.h"
#include "stress/placement/placement.h"
#include "stress/protocol/protocol.h"

#define CELL_WAIT_MAX	 UINT64_C(1000000000) /* ticks */
#define CELL_TOGGLES_MAX UINT64_C(1000000000000)
#define CELL_STRETCH_MAX 64

/*
 * Ticks between toggles, in the mean: a hot site's, where most tears are seen in a second, and the
 * rest of a site that rests. Of the latter nearly every toggle is exposed, so that a second has
 * as many that are.
 */
#define CELL_HOT    UINT64_C(2000)
#define CELL_RESTED UINT64_C(20000)

/* How the site is changed. From PROTOCOL_NAIVE on by the steps of a file. */
enum protocol {
	PROTOCOL_WAIT,	     /* the library's word protocol with the cell's two waits */
	PROTOCOL_MEMBARRIER, /* the same with membarrier in place of the waits */
	PROTOCOL_ATOMIC,     /* one locked store: the atomic-window test */
	/* Broken on purpose, to prove that the oracle sees it. */
	PROTOCOL_NAIVE,	      /* one plain unaligned store */
	PROTOCOL_NO_INT3,     /* wait, back, wait, front, without the lock byte */
	PROTOCOL_FRONT_FIRST, /* INT3, wait, front, wait, back */
	PROTOCOL_COUNT,	      /* from here on others, in the order in which their names were met */
	PROTOCOL_NAMES = PROTOCOL_COUNT + 256
};

/* protocol_is_compiled - is it what the library does? Others prove nothing of the library. */
static inline bool protocol_is_compiled(enum protocol protocol)
{
	return protocol < PROTOCOL_NAIVE;
}

/* protocol_file - of one that is not compiled. 0, or as protocol_find(). */
int protocol_file(enum protocol protocol, const struct protocol_file **file, char *why);

/* What pulls the two fetches apart on purpose; stress/run/provoker.c does it. A set has bits. */
#define PROVOKERS(ROW)                                                                             \
	ROW(COLD_BACK, "cold-back", PROVOKER_COLD)                                                 \
	ROW(COLD_FRONT, "cold-front", PROVOKER_COLD)                                               \
	ROW(SHOOTDOWN, "shootdown", PROVOKER_SHARES)                                               \
	ROW(BANDWIDTH, "bandwidth", PROVOKER_SHARES)                                               \
	ROW(LOAD, "load", PROVOKER_SHARES)                                                         \
	ROW(SIBLING, "sibling", PROVOKER_SHARES)                                                   \
	ROW(WIDE, "wide", PROVOKER_CLOCKS)                                                         \
	ROW(CHAIN, "chain", 0)                                                                     \
	ROW(SITES, "sites", PROVOKER_SITED)

#define PROVOKER_MEMBER(id, name, traits) PROVOKER_##id,
#define PROVOKER_WORD(id, name, traits)	  name ", "
#define PROVOKER_HELP			  "names joined by +: " PROVOKERS(PROVOKER_WORD) "or none (none)"

enum provoker {
	PROVOKERS(PROVOKER_MEMBER) PROVOKER_COUNT
};

enum provoker_trait {
	PROVOKER_SHARES = 1, /* its threads may have to share the cell's CPUs */
	PROVOKER_CLOCKS = 2, /* it changes the clock rate of the CPUs */
	PROVOKER_SITED = 4,  /* it takes more than the one site of a gap run */
	PROVOKER_COLD = 8,   /* it makes tears rarer: executors wait for the line, too */
};

#define PROVOKERS_ALL ((1u << PROVOKER_COUNT) - 1)
#define PROVOKERS_MAX sizeof(PROVOKER_HELP) /* bytes that hold the names of any set */
#define CELL_LOOP_MAX 4096

enum oracle {
	ORACLE_COUNT, /* every mix lands where it is counted */
	ORACLE_CRASH, /* the paper's: mixes kill the child */
	ORACLE_KINDS
};

struct cell {
	enum placement placement;
	enum crossing crossing;
	enum code_pair pair;
	enum protocol protocol;
	enum oracle oracle;
	unsigned split; /* bytes of the site before the boundary, from 1 on */
	unsigned executors;
	bool swap;	/* the patcher sits where the first executor would, and it there */
	uint64_t place; /* picks where site and patcher are: see struct site_place */
	struct waits waits;
	uint64_t rest; /* mean ticks between toggles, drawn from half to one and a half of it */
	unsigned provokers;  /* set of 1u << enum provoker */
	unsigned loop;	     /* filler instructions in the executors' loop beside the site */
	uint64_t toggles;    /* stop after so many */
	double seconds;	     /* or after so long; 0 is no limit */
	uint64_t stop_tears; /* or after so many tears; 0 is no limit */
	uint64_t seed;
};

enum tear_kind {
	TEAR_OLD_FRONT, /* old front + new back: the first wait was too short */
	TEAR_NEW_FRONT, /* new front + old back: the second wait was too short */
	TEAR_OTHER,	/* no known mix, one that cannot be told apart, or one that killed */
	TEAR_KINDS
};

enum outcome {
	OUTCOME_DONE,
	OUTCOME_CRASH,	     /* the child died of SIGILL, SIGSEGV, SIGBUS or SIGTRAP */
	OUTCOME_KILLED,	     /* by another signal */
	OUTCOME_HANG,	     /* made no progress, and was ended */
	OUTCOME_INTERRUPTED, /* the run was asked to stop */
	OUTCOME_ERROR,	     /* could not be set up: error says why */
	OUTCOME_COUNT
};

/* Noise around a cell, over its run; WITNESS_UNKNOWN, or a negative measure: not known here. */
#define WITNESS_UNKNOWN UINT64_MAX

struct witness {
	uint64_t voluntary; /* context switches of patcher and executors */
	uint64_t involuntary;
	uint64_t minor_faults;
	uint64_t major_faults;
	uint64_t interrupts;   /* on the CPUs used, /proc/interrupts */
	uint64_t smis;	       /* MSR 0x34 of the patcher's CPU (Intel) */
	uint64_t throttles;    /* thermal_throttle counts of the CPUs used */
	uint64_t tsc_jumps;    /* steps of a waiting patcher over 10,000 ticks, or backwards */
	uint64_t longest_step; /* ticks, the longest of them */
	int64_t offset;	       /* TSC of the first executor's CPU minus the patcher's, ticks */
	uint64_t offset_error; /* ticks; the true offset is within */
	uint64_t error_after;  /* the same, measured anew at the end */
	double clock[2];       /* core cycles per tick, before and after; of the patcher's CPU */
	double steal;	       /* steal time over the CPUs used, share of wall time, 0 to 1 */
	double load;	       /* runnable tasks at the end, /proc/loadavg */
};

/* How far apart patcher and first executor are, by offset_error: it changes as CPUs are moved. */
enum distance {
	DISTANCE_NEAR,
	DISTANCE_FAR, /* DISTANCE_TICKS or more, at either end of a cell */
	DISTANCES,    /* as many are known; as a distance: it is not known */
};

#define DISTANCE_TICKS 300

/* A tear and what the patcher was doing. All in ticks. */
struct tear_event {
	uint64_t toggle;     /* number of the toggle that it is taken to belong to */
	enum tear_kind kind; /* TEAR_OTHER where it cannot be told */
	uint64_t tsc;	     /* when the executor counted it */
	int64_t after_int3;  /* from the lock byte's visibility to that moment */
	int64_t after_front; /* from the end of the patch; negative: still under way */
	uint64_t latency[3]; /* of the stores of INT3, back and front */
	uint64_t waited[2];
	uint64_t step[2]; /* longest between two readings of the clock in each wait */
	unsigned executor;
};

#define TEAR_EVENTS_MAX 16 /* kept per cell: the first ones */

/* Latency of the patcher's INT3 store: how far the lines have to travel. */
struct latency {
	uint64_t median; /* ticks, 0 where nothing was measured */
	uint64_t p99;
	uint64_t max;
};

#define CELL_UNKNOWN UINT64_MAX
#define CELL_INSIDE  3 /* sites of crossing inside: across 8, 16 and 32 bytes */

struct cell_result {
	enum outcome outcome;
	int signal;	  /* that ended the child, 0 if none */
	int error;	  /* negative errno, 0 if none */
	uint64_t toggles; /* done */
	/*
	 * Of these, before which an executor had run what they replaced: no other can tear. The
	 * executor that saw most, and the site that was seen least: rather too few. Or
	 * CELL_UNKNOWN.
	 */
	uint64_t exposed;
	uint64_t executions;	    /* over all executors */
	uint64_t old_new[2];	    /* executions of the first code, of the others */
	uint64_t tears[TEAR_KINDS]; /* executions of a mix, with the one that ended in a crash */
	/*
	 * Toggles of which a mix was run, or CELL_UNKNOWN. Rather too many: a mix that is counted
	 * late, or whose mark was lost, may count one more.
	 */
	uint64_t torn;
	uint64_t torn_inside[CELL_INSIDE]; /* of crossing inside: the same of each site */
	struct tear_event event[TEAR_EVENTS_MAX];
	unsigned events;
	struct latency latency;
	uint64_t traps;	  /* executors that met INT3 */
	uint64_t retries; /* pc_patch said -EAGAIN */
	uint64_t ticks;	  /* TSC over the run */
	double seconds;
	uint64_t frame[2]; /* physical pages of the site's front and back, 0: not known */
	struct witness witness;
	struct seating seating;
};

/* cell_defaults - line crossing, call-call, split 3, one executor, 1e6 toggles. */
void cell_defaults(struct cell *cell);

/* cell_check - is this a cell that can be run at all? 0, or -EINVAL with the reason in words. */
int cell_check(const struct cell *cell, char *reason, size_t size);

/* The names of each choice as the command line and the journal spell them. */
const char *protocol_name(enum protocol p); /* NULL: its name was not met */
const char *oracle_name(enum oracle o);
const char *outcome_name(enum outcome o);
int protocol_parse(const char *name); /* of a file, whether there is one or not */
int oracle_parse(const char *name);
int outcome_parse(const char *name);
const char *tear_kind_name(enum tear_kind k); /* "old-front", "new-front", "other" */
int tear_kind_parse(const char *name);
const char *provoker_name(enum provoker p);
bool provokers_have(unsigned provokers, unsigned traits); /* any of them */

/* provokers_name - "none", or names joined by "+", into buf. provokers_parse - or -EINVAL. */
char *provokers_name(unsigned provokers, char *buf);
int provokers_parse(const char *names);

/* cell_command - "tmax stress ..." that runs this cell again. Length as snprintf. */
int cell_command(const struct cell *cell, char *buf, size_t size);

/* cell_seat - placement_seat for this cell: swapped if it says so. */
int cell_seat(const struct cell *cell, hwloc_topology_t topology, struct seating *seating,
	      char *reason, size_t size);

/* waits_text, WAITS - "1600 x4", "300+900". waits_parse - "300,900" or "300,900,4", or -EINVAL. */
#define WAITS_TEXT 64
char *waits_text(const struct waits *waits, char buf[WAITS_TEXT]);
#define WAITS(waits) waits_text((waits), (char[WAITS_TEXT]){ 0 })
int waits_parse(const char *text, struct waits *waits);
bool waits_same(const struct waits *a, const struct waits *b);

/* tears_word - what so many are called. */
static inline const char *tears_word(uint64_t tears)
{
	return tears == 1 ? "tear" : "tears";
}

/* Sums stay at the top instead of starting over: journals may claim anything. */
static inline void sum_add(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

static inline uint64_t cell_result_tears(const struct cell_result *r)
{
	uint64_t sum = 0;

	for (int kind = 0; kind < TEAR_KINDS; kind++)
		sum_add(&sum, r->tears[kind]);
	return sum;
}

/* --- cell_options.c ------------------------------------------------------------------------- */

#define PLACEMENT_HELP                                                                             \
	"where the executors sit: same-core, same-l2, same-l3, same-socket, cross-socket, "        \
	"kind-up, kind-down, spread or oversubscribed (spread); see tmax info"

/* All of them. Their request begins with a struct cell. */
extern const struct option_row cell_options[];

/* In a row of another table: the option takes what that of a cell takes. */
#define OPTION_OF_CELL .take = option_like, .like = cell_options

/*
 * cell_read - a command line of "tmax stress", or another, up to # or ; into the cell, which has
 * its defaults. 0; -ENOMEM, or -EINVAL with the reason in why, OPTION_WHY bytes.
 */
int cell_read(const char *text, const char *command, struct cell *cell, char *why);

#endif
