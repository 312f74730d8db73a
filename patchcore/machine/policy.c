/* SPDX-License-Identifier: MIT */
/* Safe first: a wait that was measured on another machine, or not well enough, is not used. */
#include "patchcore/machine/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patchcore/machine/rest.h"
#include "patchcore/machine/wait.h"

#define WINDOW_DEFAULT 8u /* AMD APM vol. 2, 7.6.1 */

/*
 * Waits that were measured on some CPUs say nothing of others, which may be further apart or of
 * another kind. CPUs that threads are allowed later are not seen.
 */
static const char *scope_problem(const struct machine_conf *conf, char *text, size_t size)
{
	struct cpus allowed, beyond;
	char list[48];

	if (cpus_allowed(&allowed) < 0)
		return "it cannot be told on which CPUs this program may run";
	if (!cpus_beyond(&allowed, &conf->cpus, &beyond))
		return NULL;
	if (cpus_print(&beyond, list, sizeof(list)) >= sizeof(list))
		strcpy(list + sizeof(list) - 4, "...");
	snprintf(text, size,
		 "it was not calibrated on CPU %s, where this program may run: calibrate there "
		 "too, or keep off",
		 list);
	return text;
}

const char *conf_problem(const struct machine_conf *conf, const struct identity *here, char *text,
			 size_t size)
{
	const char *field = identity_differs(&conf->identity, here), *problem;

	if (field) {
		snprintf(text, size, "it is of another machine: %s differs", field);
		return text;
	}
	if (!here->tsc_invariant)
		return "this machine has no invariant TSC to wait by";
	problem = tsc_problem(text, size);
	if (problem)
		return problem;
	if (!conf->usable)
		return "its calibration found no wait that is safe here";
	return scope_problem(conf, text, size);
}

static struct machine_conf assumed; /* without a level: none */

/* A bound of 1 is none. */
void policy_assume_waits(uint64_t first, uint64_t second, uint64_t stretch)
{
	assumed = (struct machine_conf){
		.levels = 1,
		.level = { {
			.waits = { first, second, stretch },
			.line.upper_p = 1,
			.page.upper_p = 1,
		} },
		.window = WINDOW_DEFAULT,
		.window_p = 1,
	};
}

void facts_accept_window(struct facts *facts, double accept_p)
{
	const struct machine_conf *conf = &facts->conf;
	const struct kind *kind = &facts->kind;
	double own = conf->window_runs >= WINDOW_RUNS ? conf->window_p : 1;
	bool have_kind = kind->runs >= WINDOW_RUNS && kind->hours >= WINDOW_HOURS;
	double others = have_kind ? 1 / (double)kind->one_in : 1;

	facts->window = WINDOW_DEFAULT;
	if (!facts->have_window)
		return;
	facts->window_p = own <= accept_p ? own : others;
	if (own <= accept_p)
		facts->window = conf->window;
	else if (others <= accept_p)
		facts->window = conf->window < kind->window ? conf->window : kind->window;
}

void facts_learn(struct facts *facts)
{
	const struct machine_conf *conf = &facts->conf;
	uint64_t start, ticks = 0;
	struct identity here;
	char why[160];
	const char *problem = why;
	int ret;

	*facts = (struct facts){ 0 };
	tsc_learn();
	ret = machine_conf_find(facts->conf_path, sizeof(facts->conf_path));
	if (ret < 0) {
		facts->conf_path[0] = '\0';
		snprintf(facts->conf_reason, sizeof(facts->conf_reason), "no machine.conf %s",
			 ret == -ENOENT ? "found" : "path fits");
	} else {
		ret = machine_conf_read(&facts->conf, facts->conf_path, why, sizeof(why));
		if (ret == 0 && identity_read(&here) < 0) {
			problem = "this machine cannot be identified";
		} else if (ret == 0) {
			/*
			 * The atomic window depends neither on the clock nor on waits, but on an
			 * oracle that sees tears.
			 */
			facts->have_window = conf->usable && !conf->fleet &&
					     !identity_differs(&conf->identity, &here) &&
					     !scope_problem(conf, why, sizeof(why));
			facts->kind = kind_read(&here);
			if (conf->window > facts->kind.widest)
				facts->conf.window = facts->kind.widest;
			problem = conf_problem(conf, &here, why, sizeof(why));
		}
		facts->have_conf = !problem;
		if (problem)
			snprintf(facts->conf_reason, sizeof(facts->conf_reason),
				 "machine.conf refused: %s", problem);
	}
	if (assumed.levels) {
		facts->have_conf = true;
		facts->have_window = false;
		facts->conf = assumed;
	}
	if (facts->have_conf)
		ticks = conf->membarrier_ticks;
	for (unsigned i = 0; i < SYNC_LEVELS; i++)
		sync_expect(i + 1, facts->have_conf ? conf->level[i].ticks : 0);
	facts->membarrier = membarrier_register() == 0;
	if (!facts->membarrier)
		return;
	/*
	 * The first patch needs to know what a pair of membarriers costs: what the calibration
	 * measured beside running threads, else two membarriers timed here, where few threads run
	 * yet.
	 */
	start = ticks_now();
	if (!ticks && membarrier_sync() == 0 && membarrier_sync() == 0)
		ticks = ticks_now() - start;
	sync_expect(SYNC_MEMBARRIER, ticks);
}

/* --- Choosing --------------------------------------------------------------------------------- */

/* The number of a level, from 1; 0: of none. */
static unsigned number_of(const struct facts *facts, const struct machine_conf_level *level)
{
	return level ? (unsigned)(level - facts->conf.level) + 1 : 0;
}

static bool is_wait(enum pc_policy asked)
{
	return asked == PC_POLICY_WAIT || asked == PC_POLICY_QUIET;
}

/* Of sites of one kind: the level to wait by, from 1, or 0. */
static unsigned choose_level(const struct facts *facts, enum pc_policy asked,
			     enum machine_conf_sites sites, double accept_p)
{
	const struct machine_conf *conf = &facts->conf;
	const struct machine_conf_level *level;

	if (!facts->have_conf || !conf->levels || asked == PC_POLICY_MEMBARRIER ||
	    (asked == PC_POLICY_AUTO && facts->limited && !facts->membarrier))
		return 0;
	/* Where a site has not rested, a patch makes up for that. */
	level = asked == PC_POLICY_AUTO
			? machine_conf_accepted(conf, sites, accept_p)
			: machine_conf_cheapest(conf->level, conf->levels, sites, accept_p);
	/* By name, the caller owns the risk of the surest level there is. */
	if (is_wait(asked) && !level)
		level = machine_conf_surest(conf, sites);
	return number_of(facts, level);
}

/* Of straddlers of one kind: the sync, and those that it points to. */
static void choose_sync(const struct facts *facts, enum pc_policy asked,
			enum machine_conf_sites sites, double accept_p, struct sync *sync,
			struct sync *other, struct sync *later)
{
	const struct machine_conf *conf = &facts->conf;
	unsigned level;

	sync->policy = PC_POLICY_AUTO;
	sync->window = is_wait(asked) && facts->have_conf ? conf->window : facts->window;
	sync->quiet = asked == PC_POLICY_QUIET;
	if (!facts->trap)
		return;
	level = choose_level(facts, asked, sites, accept_p);
	if (level) {
		sync->policy = PC_POLICY_WAIT;
		sync->level = level;
		sync->waits = conf->level[level - 1].waits;
		sync->upper_p = machine_conf_p(&conf->level[level - 1], sites);
		sync->rest = conf->level[level - 1].rest;
	} else if (!is_wait(asked) && facts->membarrier) {
		sync->policy = PC_POLICY_MEMBARRIER;
	}
	if (asked != PC_POLICY_AUTO || !facts->membarrier)
		return;
	if (level) {
		/* Both are safe enough for the caller: each patch takes the cheaper. */
		*other = (struct sync){ .policy = PC_POLICY_MEMBARRIER,
					.window = sync->window,
					.other = sync };
		sync->other = sync->instead = other;
		return;
	}
	/* A started change waits, if need be for long, rather than interrupt every executor. */
	if (facts->have_conf)
		level = number_of(facts, machine_conf_cheapest(conf->level + conf->levels,
							       conf->long_levels, sites, accept_p));
	if (level) {
		*later = (struct sync){ .policy = PC_POLICY_WAIT,
					.level = level,
					.waits = conf->level[level - 1].waits,
					.window = sync->window,
					.upper_p = machine_conf_p(&conf->level[level - 1], sites),
					.instead = sync };
		sync->later = later;
	}
}

/* --- Telling why ------------------------------------------------------------------------------ */

static void explain_policy(const struct facts *facts, enum pc_policy asked, double accept_p,
			   const struct syncs *syncs, char *reason, size_t size)
{
	static const char no_membarrier[] = "the kernel has no membarrier SYNC_CORE";
	const struct sync *page = &syncs->page;
	const struct machine_conf_level *level = facts->conf.level;
	const char *conf = facts->conf.fleet ? "machine.conf, by a fleet," : "machine.conf";
	bool is_membarrier = page->policy == PC_POLICY_MEMBARRIER;
	const char *comma = is_membarrier ? "; " : ", and ";
	const char *instead = is_membarrier ? "so membarrier" : no_membarrier, *why = NULL;
	char lines[64] = "";

	if (!facts->trap)
		why = facts->trap_reason;
	else if (is_wait(asked) && !facts->have_conf)
		why = facts->conf_reason;
	else if (is_wait(asked))
		why = asked == PC_POLICY_WAIT ? "wait: asked for by name"
					      : "quiet: waits, and interrupts no other CPU";
	else if (asked == PC_POLICY_MEMBARRIER)
		why = facts->membarrier ? "membarrier: asked for by name" : no_membarrier;
	if (why)
		snprintf(reason, size, "%s", why);
	else if (page->policy == PC_POLICY_WAIT)
		snprintf(reason, size, "auto: %s bounds tears by %.2g per toggle%s", conf,
			 level[page->level - 1].page.upper_p,
			 page->rest ? " of a site at rest" : "");
	else if (!facts->have_conf)
		snprintf(reason, size, "auto: %s%s%s", facts->conf_reason, comma, instead);
	else {
		if (page->line && page->line->level)
			snprintf(lines, sizeof(lines), "; inside a page by %.2g: there wait",
				 level[page->line->level - 1].line.upper_p);
		snprintf(reason, size,
			 "auto: %s bounds tears only by %.2g per toggle, above %.2g%s%s%s", conf,
			 machine_conf_surest(&facts->conf, SITES_PAGE)->page.upper_p, accept_p,
			 comma, instead, lines);
	}
}

/* --- Both ------------------------------------------------------------------------------------- */

void policy_choose(const struct facts *facts, enum pc_policy asked, double accept_p,
		   struct syncs *syncs, char *reason, size_t size)
{
	*syncs = (struct syncs){ 0 };
	choose_sync(facts, asked, SITES_PAGE, accept_p, &syncs->page, &syncs->page_other,
		    &syncs->page_later);
	choose_sync(facts, asked, SITES_LINE, accept_p, &syncs->line, &syncs->line_other,
		    &syncs->line_later);
	if (syncs->line.policy != syncs->page.policy || syncs->line.level != syncs->page.level ||
	    syncs->line_later.level != syncs->page_later.level)
		syncs->page.line = &syncs->line;
	explain_policy(facts, asked, accept_p, syncs, reason, size);
}

/* --- Choices ---------------------------------------------------------------------------------- */

/* Kept for ever, as changes in flight point to their syncs; so none is there twice. */
static struct choice {
	struct choice *next;
	struct syncs syncs;
} * choices;

_Atomic(const struct syncs *) choice_current;

/* Where they point to follows from the rest. */
static bool syncs_same(const struct syncs *a, const struct syncs *b)
{
	const struct sync *one = &a->page, *other = &b->page;

	_Static_assert(sizeof(*a) == 6 * sizeof(*one), "syncs and nothing else");
	for (int i = 0; i < 6; i++)
		if (one[i].policy != other[i].policy || one[i].level != other[i].level ||
		    one[i].window != other[i].window || one[i].quiet != other[i].quiet ||
		    one[i].upper_p != other[i].upper_p ||
		    memcmp(&one[i].waits, &other[i].waits, sizeof(one[i].waits)) != 0)
			return false;
	return true;
}

const struct syncs *choice_get(const struct facts *facts, enum pc_policy policy, double accept_p,
			       char *reason, size_t size)
{
	struct choice *made = malloc(sizeof(*made)), *choice = choices;

	if (!made)
		return NULL;
	policy_choose(facts, policy, accept_p, &made->syncs, reason, size);
	if (made->syncs.page.rest || made->syncs.line.rest)
		rest_begin();
	while (choice && !syncs_same(&choice->syncs, &made->syncs))
		choice = choice->next;
	if (choice) {
		free(made);
		return &choice->syncs;
	}
	made->next = choices;
	choices = made;
	return &made->syncs;
}
