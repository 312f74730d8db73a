/* SPDX-License-Identifier: MIT */
/* Which sync this machine allows, what callers have chosen, and what follows from that. Private. */
#ifndef PATCHCORE_MACHINE_POLICY_H
#define PATCHCORE_MACHINE_POLICY_H

#include "patchcore/machine/kinds.h"
#include "patchcore/machine/machine_conf.h"
#include "patchcore/machine/sync.h"
#include "patchcore/patchcore.h"
#include "patchcore/syscall/sys.h"

/*
 * What is known about the machine, after start-up never changed but by facts_accept_window(), and
 * for `limited`.
 */
struct facts {
	bool have_window; /* a usable config of this machine and these CPUs: its window counts */
	bool have_conf;	  /* and the clock can be trusted, so its levels count too */
	bool membarrier;  /* SYNC_CORE registered */
	bool trap;	  /* SIGTRAP is ours, and INT3 raises it */
	bool limited;	  /* by pc_set_accept_rate(): AUTO waits only where it could do without */
	struct machine_conf conf;
	struct kind kind; /* what other machines say of the window */
	unsigned window;  /* in use but for policy wait: see facts_accept_window() */
	double window_p;  /* the bound of more than 8 bytes */
	char conf_path[256];
	char conf_reason[200]; /* why there is no config to wait by */
	char trap_reason[200]; /* why there is no trap to use */
};

/*
 * The syncs of one choice. They point to each other: not to be copied. page is the one to begin
 * with; see word_sync() and sync_pick().
 */
struct syncs {
	struct sync page;
	struct sync line;	/* page.line, where that is another one */
	struct sync page_other; /* membarrier, where that may be cheaper: page.other */
	struct sync line_other;
	struct sync page_later; /* a long wait, where page is membarrier: page.later */
	struct sync line_later;
};

/*
 * tsc_problem - why a wait by the TSC may be shorter here than it should be. NULL if
 * nothing speaks for that, else one line, in text or static.
 *
 * CPUID's word that the TSC is invariant is not enough. The kernel watches it against other clocks
 * and takes it out of its clock sources when they differ (or is told to, by tsc=unstable): then the
 * TSCs of two CPUs need not agree, nor run at one rate. And RDTSCP must tell the CPU that was read.
 */
const char *tsc_problem(char *text, size_t size);

/* tsc_problem_of - the same for a recorded machine, of whose RDTSCP only CPUID tells. */
const char *tsc_problem_of(const struct identity_source *src, char *text, size_t size);

/* tsc_learn - before the first change: is there an RDTSCP for moment_now()? */
void tsc_learn(void);

/*
 * conf_problem - why may the waits of a config that was read not be used here? NULL if they
 * may, else one line, in text or static.
 */
const char *conf_problem(const struct machine_conf *conf, const struct identity *here, char *text,
			 size_t size);

/*
 * policy_assume_waits - policy wait uses these waits (ticks; stretch as in pc_status) in place of
 * those of machine.conf, which need not exist. For benchmarks: nothing is claimed about tears.
 * Before pc_init(), and not while another thread is in it.
 */
void policy_assume_waits(uint64_t first, uint64_t second, uint64_t stretch);

/* facts_learn - find and check the config, register membarrier. */
void facts_learn(struct facts *facts);

/*
 * facts_accept_window - for policy_choose(), the widest window for a caller who accepts so many
 * tears per store: what the machine's own run saw whole, if many runs bound it so, of this machine
 * or of its kind. Who accepts 1 takes what that run saw.
 */
#define WINDOW_RUNS  30
#define WINDOW_HOURS 10
void facts_accept_window(struct facts *facts, double accept_p);

/*
 * policy_choose - the syncs to use for what the caller asked. The policy of one is AUTO when none
 * is safe. reason says why in one line.
 */
void policy_choose(const struct facts *facts, enum pc_policy asked, double accept_p,
		   struct syncs *syncs, char *reason, size_t size);

/* --- Choices ---------------------------------------------------------------------------------- */

/*
 * choice_get - policy_choose(), kept for ever: changes in flight point to a sync. The same again
 * where it comes to the same. NULL: no memory. Callers exclude each other.
 */
const struct syncs *choice_get(const struct facts *facts, enum pc_policy policy, double accept_p,
			       char *reason, size_t size);

/* The process's own. NULL before pc_init() and after pc_fini(). */
extern _Atomic(const struct syncs *) choice_current __attribute__((visibility("hidden")));

/*
 * choice_sync - how straddlers are patched now, and the atomic window. Lock-free and
 * async-signal-safe. NULL: entry points return -ESHUTDOWN then.
 */
static inline const struct sync *choice_sync(void)
{
	const struct syncs *own = load_acquire(&choice_current);

	return own ? &own->page : NULL;
}

/* choice_is_quiet - may no other CPU be interrupted now? Async-signal-safe. */
static inline bool choice_is_quiet(void)
{
	const struct sync *sync = choice_sync();

	return sync && sync->quiet;
}

#endif
