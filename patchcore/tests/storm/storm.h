/* SPDX-License-Identifier: MIT */
/*
 * Storms: code that is patched and run by many at once, while other things go
 * on, with every execution counted by what it ran.
 *
 * A place is a chain of instructions, its sites, that loads numbers. Old and new
 * code of a site differ in every byte and load different registers, so an executor that runs a
 * mix of the two leaves behind what neither of them does. All that is no code of a place is an
 * invalid opcode.
 *
 * For a child of the test, see child.h; what is not expected at all ends it.
 */
#ifndef PATCHCORE_TESTS_STORM_STORM_H
#define PATCHCORE_TESTS_STORM_STORM_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "patchcore/call.h"
#include "patchcore/patchcore.h"

#define STORM_SITES  3u	 /* of a place, at most */
#define STORM_PLACES 11u /* the first is for the children alone */
#define STORM_LEN    8u	 /* bytes of a site, at most */
#define STORM_PAGES  7u
#define STORM_TARGET 64u /* bytes from one target of a call to the next */

/* What the sites of a place are. */
enum storm_shape {
	STORM_LOADS, /* three: mov r32, number */
	STORM_CALLS, /* three: calls of functions that load a number, which may be off */
	STORM_PAIRS, /* one: two instructions, mov r8, number; mov r32, number */
};

enum storm_mapping {
	STORM_OPEN,   /* held writable */
	STORM_CLOSED, /* made writable for each change */
	STORM_ALIAS,  /* written elsewhere */
};

/* What else goes on. */
enum storm_noise {
	STORM_NEIGHBOURS = 1 << 0, /* a patcher for each site of a place */
	STORM_CONTENTION = 1 << 1, /* two */
	STORM_LOAD = 1 << 2,	   /* more threads than CPUs */
	STORM_SIGNALS = 1 << 3,	   /* 1000 a second, to patchers and executors; the handler
				      runs the sites */
	STORM_FORKS = 1 << 4,	   /* children that run the sites and patch them */
	STORM_DLOPEN = 1 << 5,	   /* an unrelated object comes and goes */
	STORM_THREADS = 1 << 6,	   /* threads that run the sites, patch them, and end */
	STORM_FOREIGN = 1 << 7,	   /* INT3 that are none of the library's */
};

struct storm_site {
	uint8_t *at;
	unsigned column;
	size_t len;
	uint8_t code[2][STORM_LEN]; /* old, new; not for calls */
	struct pc_call call;
};

struct storm_place {
	uint8_t *at;
	unsigned split; /* bytes of the first site before the boundary */
	bool page;	/* that of a page; else of a line */
	struct storm_site site[STORM_SITES];
};

/* A way to change sites. */
struct storm_way {
	const char *name;
	enum storm_shape shape;
	bool many;  /* changes its site of all places at once */
	bool syncs; /* is as safe as the syncs of the policy */
	bool lasts; /* what was written stands when it returns, if no other patcher writes there */
	/* To code 0 (old), 1 (new) or, of calls, 2 (off). 0, -EAGAIN or what went wrong. */
	int (*change)(struct storm_site *const *sites, size_t n, unsigned code);
};

/* The sound ones; the last has no name. */
extern const struct storm_way storm_ways[];

const struct storm_way *storm_way_find(const char *name);

struct storm {
	const struct storm_way *way;
	enum pc_policy policy; /* of the library */
	enum storm_mapping mapping;
	unsigned noise;
	unsigned ms; /* for all places together */
	/* For what is broken on purpose. */
	bool raw;	     /* the pages stay writable, and the library does not know */
	bool tight;	     /* one patcher, one executor, each its CPU, boundaries of pages */
	uint64_t stop_tears; /* end when so many were seen */
	void (*begun)(void); /* when the library has SIGTRAP */
};

/* What was counted. */
struct storm_result {
	uint64_t executions; /* of sites */
	uint64_t ran[3];     /* old, new, off */
	uint64_t between;    /* of pairs: one instruction old, the other new */
	uint64_t torn[2];    /* front of the old code, of the new */
	uint64_t toggles;    /* changes that were made */
	uint64_t refused;    /* -EAGAIN */
	uint64_t lost;	     /* changes that did not stand */
	uint64_t foreign[2]; /* foreign INT3 that were run, and that reached their owner */
	uint64_t stray;	     /* of ours, that reached it */
	uint64_t signals, forks, loads, threads;
};

/* storm_run - in a child; the library is not yet initialised there. */
void storm_run(const struct storm *storm, struct storm_result *result);

/* storm_torn - executions of what is neither code. */
uint64_t storm_torn(const struct storm_result *result);

/*
 * storm_tears_allowed - what a policy may tear in so many toggles. None but
 * under wait, where what was seen here is up to 1e-6 per toggle (facts of the
 * calibration; INT3 and wait, boundary of a page, a busy machine): what more
 * would come by chance at twice that in one of 1e8 runs.
 */
uint64_t storm_tears_allowed(const struct storm *storm, uint64_t toggles);

/* --- Between the files of the storm ------------------------------------------------------ */

/* The code. */
struct storm_arena {
	uint8_t *code;	    /* STORM_PAGES that are patched */
	uint8_t *elsewhere; /* two pages: targets of calls, and a foreign INT3 */
	uint8_t *foreign;   /* INT3; ret */
	int prot;	    /* of the code */
	uint8_t *original;  /* copy of the code */
	struct storm_place place[STORM_PLACES];
};

extern struct storm_arena storm_arena;

void storm_arena_build(const struct storm *storm);

/* storm_arena_check - nothing is changed but sites, and they are whole. */
void storm_arena_check(const struct storm *storm);

/* storm_place_is_original - does a place have its first code, never changed? */
bool storm_place_is_original(const struct storm_place *place);

/* storm_holds - does a site hold that code? */
bool storm_holds(const struct storm_site *site, enum storm_shape shape, unsigned code);

/* The columns that a shape has. */
unsigned storm_columns(enum storm_shape shape);

/* storm_execute - run a place so often, and add what was seen. Async-signal-safe. */
void storm_execute(const struct storm_place *place, enum storm_shape shape, unsigned times,
		   struct storm_result *seen);

/* What is shared while it blows. */
struct storm_now {
	const struct storm *storm;
	struct storm_result *total; /* by atomic additions */
	_Atomic(unsigned) place;    /* that is run and patched */
	atomic_bool stop;
};

extern struct storm_now storm_now;

/* storm_own_trap - the handler of SIGTRAP that was there before the library's. */
struct sigaction storm_own_trap(void);

/* storm_add - async-signal-safe. */
void storm_add(const struct storm_result *some);

/* storm_random - xorshift32; *state is not 0. */
uint32_t storm_random(uint32_t *state);

/* Begin and end all the noise that is asked for. */
void storm_noise_begin(void);
void storm_noise_end(void);

/* storm_thread_begin, storm_thread_end - by threads that are to get signals. */
void storm_thread_begin(void);
void storm_thread_end(void);

/*
 * storm_change - change the site of that column at the place that is run, or at
 * all places, to that code, and see that it stands if no other patcher writes there.
 */
void storm_change(unsigned column, unsigned code, struct storm_result *seen);

#endif
