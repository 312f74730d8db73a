/* SPDX-License-Identifier: MIT */
/*
 * A day in the life of a program that is patched: what its files share.
 *
 * Workers do one thing after the other, at random: they change code in every way
 * that the library has, and they do what programs do besides. Executors run the
 * code meanwhile, and each execution is judged. All that is counted lies in memory
 * that children share, and a monitor, a process of its own, looks at it.
 */
#ifndef PATCHCORE_TESTS_DAY_DAY_H
#define PATCHCORE_TESTS_DAY_DAY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "patchcore/call.h"
#include "patchcore/patchcore.h"

#define DAY_LEN	      8u /* bytes of a site, at most */
#define DAY_SITES_MAX 80u
#define DAY_PAGES     20u
#define DAY_WORKERS   8u /* at most */
#define DAY_EXECUTORS 2u
#define DAY_SLOTS     (DAY_WORKERS + DAY_EXECUTORS)
#define DAY_ACTIONS   32u /* at most */

/* What a site is. */
enum day_shape {
	DAY_LOAD, /* mov eax, number; the new one: mov ecx, another */
	DAY_CALL, /* of a function that does so; may be off */
	DAY_PAIR, /* two instructions: mov al, number; mov r32, number */
	DAY_NOPS, /* five 1-byte NOPs; the new one: mov ecx, number */
	DAY_SHAPES
};

enum day_mapping {
	DAY_PROTECT,
	DAY_OPEN,
	DAY_ALIAS
};

struct day_site {
	uint8_t *at;
	size_t len;
	enum day_shape shape;
	unsigned split; /* bytes before a boundary, 0: it crosses none */
	uint8_t code[2][DAY_LEN];
	struct pc_call call;
};

/* What was seen and done. */
struct day_seen {
	uint64_t executions; /* of sites */
	uint64_t ran[3];     /* old, new, off */
	uint64_t between;    /* of pairs: one instruction old, the other new */
	uint64_t torn;
	uint64_t changes;
	uint64_t refused; /* -EAGAIN and the like */
	uint64_t handled; /* signals */
};

/* What a worker or an executor is about; read by the monitor. */
struct day_slot {
	_Atomic(uint64_t) progress; /* counts actions */
	_Atomic(const char *) doing;
	_Atomic(const char *) step;	  /* of it */
	_Atomic(const char *) child_step; /* of its child */
	_Atomic(int) tid;		  /* 0: there is none */
	_Atomic(int) victim;		  /* a child that others may kill, or 0 */
	_Atomic(bool) killed;		  /* they did */
};

/* Shared with all processes of the day. */
struct day_shared {
	struct day_seen seen; /* by atomic additions */
	_Atomic(uint64_t) done[DAY_ACTIONS];
	_Atomic(uint64_t) errors;  /* what must not be */
	_Atomic(uint64_t) control; /* rounds of a process without the library */
	_Atomic(bool) stop;
	_Atomic(unsigned) focus; /* the site that most are at */
	_Atomic(pid_t) pid;	 /* of the process whose day it is */
	_Atomic(const char *) phase;
	struct day_slot main; /* the thread that made the others */
	struct day_slot slot[DAY_SLOTS];
};

struct day_options {
	double seconds;
	uint64_t seed;
	enum pc_policy policy;
	enum day_mapping mapping;
	unsigned workers;
	unsigned hang; /* seconds without progress */
	bool broken;   /* changes are made by bare stores */
	bool keep;     /* leave what hangs to a debugger */
	const char *library;
};

struct day_worker {
	unsigned index;
	uint64_t random;
	struct day_slot *slot;
	struct day_seen seen;
	bool child;	/* in a process of its own, with no other thread */
	uint8_t *page;	/* this worker's own, with straddlers */
	uint8_t *stack; /* alternate, behind a page that must not be touched */
	size_t stack_size;
	uint8_t *clone_stack;
	char path[64]; /* its library */
	pthread_t thread;
};

/* Something that a worker does. */
struct day_action {
	const char *name;
	unsigned weight; /* how often, beside the others */
	void (*fn)(struct day_worker *w);
	bool left_out;
};

extern struct day_shared *day;
extern struct day_options day_options;
extern struct day_site day_sites[DAY_SITES_MAX];
extern unsigned day_site_count;
extern struct day_worker day_workers[DAY_SLOTS];
extern struct day_action day_change_actions[], day_life_actions[]; /* end with no name */

/* --- Any file ------------------------------------------------------------------------------- */

/* day_error - tell of, and count, what must not be. Async-signal-safe but for its dprintf(). */
__attribute__((format(printf, 2, 3))) void day_error(struct day_worker *w, const char *format, ...);

#define DAY_MUST(w, condition)                                                                     \
	do {                                                                                       \
		if (!(condition))                                                                  \
			day_error((w), "%s:%d: %s", __FILE__, __LINE__, #condition);               \
	} while (0)

static inline bool day_stopped(void)
{
	return atomic_load_explicit(&day->stop, memory_order_relaxed);
}

/* day_step - what the worker does now, for the report of a worker that hangs. */
static inline void day_step(struct day_worker *w, const char *step)
{
	atomic_store_explicit(w->child ? &w->slot->child_step : &w->slot->step, step,
			      memory_order_relaxed);
}

/* xorshift64 */
static inline uint64_t day_random(struct day_worker *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random >> 11;
}

static inline unsigned day_below(struct day_worker *w, unsigned n)
{
	return (unsigned)(day_random(w) % n);
}

/* Add what was seen to what all have seen, and begin again. Async-signal-safe. */
void day_add(struct day_seen *seen);

/* day_sleep - at most that long, microseconds. */
void day_sleep(unsigned us);

/* --- day_code.c ----------------------------------------------------------------------------- */

void day_code_build(void);

/* day_code_begin - get the library ready for it: pages, calls. false: not to be had. */
bool day_code_begin(void);

/* day_code_check - sites are whole, the rest is as it was, and so is the protection. */
void day_code_check(struct day_worker *w);

void day_code_end(struct day_worker *w);

/* day_code_tell - which sites are in no good state, to stdout; of another process. */
void day_code_tell(pid_t pid);

/* day_run - execute a site so often and judge. Async-signal-safe, in a child of vfork() too. */
void day_run(const struct day_site *site, unsigned times, struct day_seen *seen);

/* day_run_load - the same of a DAY_LOAD that is none of day_sites. */
void day_run_load(const uint8_t *at, unsigned times, struct day_seen *seen);

/* day_pick - a site: that in focus, or any of the shape. */
struct day_site *day_pick(struct day_worker *w, enum day_shape shape);

/* day_pick_any - of any shape. */
struct day_site *day_pick_any(struct day_worker *w);

/* day_load - the bytes of a DAY_LOAD, old or new. */
const uint8_t *day_load(unsigned code);

/* day_target - of calls. */
void *day_target(unsigned code);

/* Pages with straddlers of DAY_LOAD, of that protection. */
uint8_t *day_map(size_t pages, int prot);
uint8_t *day_straddler(uint8_t *page, unsigned n);

/* --- day_change.c --------------------------------------------------------------------------- */

/* day_change_any - something that needs nothing but the library. */
void day_change_any(struct day_worker *w);

/* day_change_load - change some DAY_LOAD with pc_patch(), or as the options say. */
int day_change_load(struct day_worker *w, const struct day_site *site, unsigned code);

/* day_change_in_handler - async-signal-safe. */
void day_change_in_handler(unsigned random, struct day_seen *seen);

/* --- day_life.c ----------------------------------------------------------------------------- */

/* day_life_begin - once, before there are threads. day_life_ready - each worker. */
void day_life_begin(void);
void day_life_ready(struct day_worker *w);
void day_life_end(void);

/* day_libraries_run - the sites of libraries that are loaded just now. */
void day_libraries_run(struct day_seen *seen);

#endif
