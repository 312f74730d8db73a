/* SPDX-License-Identifier: MIT */
/*
 * The life of a process met with the steps of the protocols: what the parts of
 * test_life_matrix share. All of it runs in a process of its own for each visit.
 *
 * A patcher, a thread of its own, runs one operation of a protocol. At one step of it, which
 * a survey of the same operation has found, something happens: to the patcher, in the handler
 * of a signal; or by the main thread, while the patcher stands there.
 */
#ifndef PATCHCORE_LIFE_TESTS_LIFE_H
#define PATCHCORE_LIFE_TESTS_LIFE_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "patchcore/tests/child.h"

/* --- Steps: life_point.c --------------------------------------------------------------------- */

/* Where in an operation. */
struct point {
	unsigned call; /* system calls that it has made */
	int step;      /* instructions since then; 0: it is about to make the last of them */
	bool own;      /* in the library's own code, so no lock of libc is held */
	bool blocked;  /* the library has all signals blocked */
	bool only_own; /* to go to: the first such step from there on */
	bool only_unblocked;
	uint64_t state;
};

#define POINTS_MAX 4096
#define CALLS_MAX  1024

/* What a survey finds. */
struct survey {
	struct point point[POINTS_MAX]; /* each state that differs from the one before it */
	unsigned count;
	unsigned calls;
	int steps[CALLS_MAX];	       /* behind each call, as far as they were taken */
	uint64_t state[CALLS_MAX + 1]; /* before each, from the first on; and at the end */
	long number[CALLS_MAX];	       /* of each */
};

/* Called in a signal handler of the patcher, with SIGTRAP let through. */
typedef void point_fn(void);

/* point_install - take SIGTRAP and SIGSYS. Before pc_init(). */
void point_install(void);

/* Are they still ours? */
bool point_is_installed(void);

/* point_arm - call at() when the calling thread is at that point. point_disarm - no more. */
void point_arm(const struct point *point, point_fn *at);
void point_disarm(void);

/*
 * point_survey - add to a survey what state() gives behind the call-th system call of what runs
 * until point_disarm(), for so many steps. CALLS_MAX: what it gives before each call.
 */
void point_survey(struct survey *survey, unsigned call, int steps, uint64_t (*state)(void));

/* --- Columns: life_protocol.c ---------------------------------------------------------------- */

#define LIFE_SITES 3

/* A function that returns a number. */
struct life_site {
	uint8_t *at;	      /* the first byte that changes */
	const uint8_t *entry; /* called */
	uint32_t old, new;
	uint32_t between; /* what it also returns on the way; old, if there is none */
};

struct life {
	struct life_site site[LIFE_SITES];
	unsigned sites;
	uint8_t *pages;
	size_t len;
	int prot; /* of the pages, before and after the operation */
};

extern struct life life;

struct protocol {
	const char *name;
	const char *what;
	/* The library is initialised, and the sites are old. */
	void (*prepare)(void);
	/* Make all sites new. 0 or the first error. */
	int (*operate)(void);
	/* The same for one of them, or the reverse. */
	int (*change)(unsigned site, bool to_new);
	int steps;   /* of a survey behind each system call */
	bool ready;  /* the pages are open, or have an alias, all the time */
	bool single; /* one change: if it fails, nothing has changed */
	bool alias;
};

extern const struct protocol protocols[];
extern const unsigned protocol_count;

uint64_t life_state(void);
uint32_t life_run(unsigned site);

/* life_is_owned - does a thread write it just now? life_bytes - the first of them. */
bool life_is_owned(unsigned site);
uint64_t life_bytes(unsigned site);

/* --- Rows: life_event.c, life_fork.c --------------------------------------------------------- */

struct event {
	const char *name;
	const char *what;
	void (*before)(void);  /* there is no library yet, and no other thread */
	void (*prepare)(void); /* before the operation */
	void (*to_it)(void);   /* by the patcher at the point, in a signal handler */
	void (*beside)(void);  /* by the main thread meanwhile */
	void (*after)(void);   /* the operation is over, or the patcher is */
	bool libc;	       /* to_it takes locks of libc, or goes on in a copy of it */
	bool ends;	       /* the patcher does not come back */
	bool replaces;	       /* nor does the process */
	bool forbids;	       /* what it forbids stays forbidden */
	bool starves;	       /* the address sanitizer, too */
	const char *outcome;   /* for the table; NULL: the operation completes */
	int wait_ms; /* that the patcher leaves to the main thread, see await_answer(); 0: none */
};

extern const struct event other_events[], fork_events[];
extern const unsigned other_event_count, fork_event_count;

static inline unsigned life_events(void)
{
	return fork_event_count + other_event_count;
}

static inline const struct event *life_event(unsigned i)
{
	return i < fork_event_count ? &fork_events[i] : &other_events[i - fork_event_count];
}

/* What a visit tells, in memory that its children share. */
struct seen {
	atomic_bool met, returned;
	_Atomic(int) ret;
	_Atomic(int) children;	/* that came to be */
	_Atomic(int) refused;	/* of which a patch was refused with -EACCES */
	_Atomic(int) child_ret; /* the worst that else an operation in a child returned */
};

extern struct seen *seen;

/* --- A visit: life_visit.c
 * -------------------------------------------------------------------------- */

struct visit {
	const struct protocol *protocol;
	const struct event *event;
	struct point point;
	unsigned turn;
};

/* life_visit - in a process of its own; its status as waitpid() tells it, -1 if it hung. */
int life_visit(const struct visit *visit);

/* life_survey - all of an operation. False: it failed. */
bool life_survey(const struct protocol *protocol, struct survey *survey);

/* In a child that goes on with the operation, and in one that came without handlers. */
extern bool life_in_child, life_raw_child;

extern pthread_t life_patcher;
extern pid_t life_patcher_tid;
extern atomic_bool life_patcher_stands; /* at the point, for the main thread */

/* The place to go back to from a handler, and how to tell visits apart. */
extern sigjmp_buf life_out;
extern unsigned life_turn;
extern unsigned life_child_cpu; /* seconds that a child of fork() may compute, 0: any */

/* Each site is old or new, now. */
void life_must_be_whole(void);

/* life_change - one site, to new or old. 0 or a negative errno. */
int life_change(unsigned site, bool to_new);

/* All can be changed again, and the library be shut down. */
void life_must_work(bool forbidden);

/* life_child - a child is there. Its parent must see it end well. */
void life_child(pid_t pid);
void life_await_children(void);

#endif
