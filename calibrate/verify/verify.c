/* SPDX-License-Identifier: MIT */
/*
 * The rules:
 *
 *   broken        a store inside the window tore; or more tears than the config's
 *                 p allows even in a storm, in one cell or over all: their probability
 *                 is below VERIFY_ALPHA over the number of looks (Bonferroni); or a
 *                 promise of the processor was broken
 *   inconclusive  anything that keeps us from knowing; or a rate of VERIFY_TIMES p
 *                 is not excluded by what was seen
 *   holds         else
 *
 * Counted are exposed toggles, as p is per exposed toggle. Those under noise do not count towards
 * "holds"; tears under noise do. The level is the one in use, lines and pages by their own.
 */
#include "calibrate/verify/verify.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>

#include "base/exit_status.h"
#include "base/number.h"
#include "calibrate/statistics/bound.h"
#include "results/figures/markup.h"

#define TOGGLES_HUGE (UINT64_C(1) << 62)

double verify_in_storm(double p, double spread)
{
	return fmin(1, p * (1 + fmax(spread, VERIFY_SPREAD)));
}

/* Do so many tears contradict a rate, with an error of alpha? */
static bool is_exceeded(uint64_t tears, uint64_t toggles, double rate, double alpha)
{
	return bound_lower(tears, toggles, 1 - alpha) > rate;
}

uint64_t verify_missing(const struct count *seen, double spread, double p, double confidence)
{
	const double limit = VERIFY_TIMES * p;
	uint64_t low = seen->toggles, high = TOGGLES_HUGE;
	/* Toggles to come are as many to a slice as those that were. */
	double each = low ? count_units(seen) / (double)low : 1;

	if (limit >= 1)
		return low ? 0 : 1;
	if (bound_mixed(seen->tears, low, each * (double)low, spread, confidence) <= limit)
		return 0;
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (bound_mixed(seen->tears, middle, each * (double)middle, spread, confidence) <=
		    limit)
			high = middle;
		else
			low = middle;
	}
	return high - seen->toggles;
}

/* --- The levels ------------------------------------------------------------------------------- */

static enum machine_conf_sites sites_of(int claim)
{
	return claim == CLAIM_PAGE ? SITES_PAGE : SITES_LINE;
}

const struct machine_conf_level *verify_level(const struct verify *v, int claim)
{
	const struct machine_conf_level *level =
		machine_conf_accepted(&v->conf, sites_of(claim), v->accept_p);

	return level ? level : machine_conf_surest(&v->conf, sites_of(claim));
}

const struct machine_conf_bound *verify_bound(const struct machine_conf_level *level, int claim)
{
	return claim == CLAIM_PAGE ? &level->page : &level->line;
}

double verify_p(const struct verify *v, int claim)
{
	return verify_bound(verify_level(v, claim), claim)->upper_p;
}

double verify_spread(const struct verify *v, int claim)
{
	return claim == CLAIM_PAGE ? v->conf.spread_page : v->conf.spread_line;
}

/* --- The cells -------------------------------------------------------------------------------- */

uint64_t verify_tears(const struct verify_cell *cell)
{
	return cell->tears[TEAR_OLD_FRONT] + cell->tears[TEAR_NEW_FRONT] + cell->tears[TEAR_OTHER];
}

void verify_add(struct verify_cell *cell, const struct cell_record *record)
{
	const struct cell_result *r = &record->result;
	struct count seen = count_of_record(record), all = seen;

	/* Tears where it is unknown which toggles were exposed: all may have been. */
	if (all.tears && !all.toggles)
		all.toggles = r->toggles;
	if (verify_tears(cell) == 0)
		cell->cell = record->cell;
	for (unsigned i = 0; i < TEAR_KINDS; i++)
		cell->tears[i] += r->tears[i];
	for (unsigned i = 0; i < r->seating.executors; i++)
		cell->apart |= r->seating.executor[i] != r->seating.patcher;
	cell->runs++;
	cell->noisy += record->noisy;
	count_add(&cell->count, &all);
	cell->seconds += r->seconds;
	if (r->outcome != OUTCOME_DONE && r->outcome != OUTCOME_CRASH &&
	    r->outcome != OUTCOME_INTERRUPTED) {
		cell->failed++;
		snprintf(cell->reason, sizeof(cell->reason), "a run of it ended as '%s'",
			 outcome_name(r->outcome));
	} else if (!record->noisy) {
		count_add(&cell->quiet, &seen);
	}
}

/* storm: its rate of tears in a storm. */
static void judge_cell(struct verify_cell *c, double storm, double alpha)
{
	const char *reason = NULL;

	if (c->skipped) {
		c->status = STATUS_SKIPPED;
		return;
	}
	if (c->check == CHECK_WAIT ? is_exceeded(c->count.tears, c->count.toggles, storm, alpha)
				   : c->check == CHECK_WINDOW && verify_tears(c)) {
		c->status = STATUS_BROKEN;
		snprintf(c->reason, sizeof(c->reason), "%" PRIu64 " %s in %s exposed toggles",
			 verify_tears(c), tears_word(verify_tears(c)), NUMBER(c->count.toggles));
		return;
	}
	if (c->failed)
		reason = c->reason;
	else if (c->count.toggles == 0)
		reason = "nothing ran";
	else if (c->check == CHECK_CONTROL && !verify_tears(c))
		reason = "did not tear, and must";
	else if (c->check == CHECK_WAIT && c->quiet.toggles == 0)
		reason = "too noisy in all of its runs";
	if (reason && !c->reason[0])
		snprintf(c->reason, sizeof(c->reason), "%s", reason);
	c->status = reason ? STATUS_UNCLEAR : STATUS_HELD;
}

static const struct verify_cell *first_of(const struct verify *v, enum verify_check check,
					  enum verify_status status)
{
	for (unsigned i = 0; i < v->cells; i++)
		if (v->cell[i].check == check && v->cell[i].status == status)
			return &v->cell[i];
	return NULL;
}

bool verify_conclude(struct verify *v, enum verify_verdict verdict, const char *format, ...)
{
	static const int status[] = {
		[VERIFY_HOLDS] = EXIT_PASS,
		[VERIFY_BROKEN] = EXIT_TEARS,
		[VERIFY_INCONCLUSIVE] = EXIT_INCONCLUSIVE,
		[VERIFY_NO_CONF] = EXIT_NO_CONF,
	};
	va_list args;

	v->verdict = verdict;
	v->status = status[verdict];
	va_start(args, format);
	vsnprintf(v->reason, sizeof(v->reason), format, args);
	va_end(args);
	return false;
}

/* Does any of the three parts lack an answer? */
static bool find_unclear(struct verify *v)
{
	static const char *const what[] = {
		[CHECK_CONTROL] = "the oracle sees nothing here",
		[CHECK_WINDOW] = "the window was not tested",
		[CHECK_WAIT] = "not all cells gave an answer",
	};

	for (int check = 0; check <= CHECK_WAIT; check++) {
		const struct verify_cell *c = first_of(v, (enum verify_check)check, STATUS_UNCLEAR);

		/* Only what the config names may be missing here. */
		if (!c && check != CHECK_WAIT)
			c = first_of(v, (enum verify_check)check, STATUS_SKIPPED);
		if (!c)
			continue;
		verify_conclude(v, VERIFY_INCONCLUSIVE, "%s: %s %s %s split %u: %s", what[check],
				protocol_name(c->cell.protocol), placement_name(c->cell.placement),
				crossing_name(c->cell.crossing), c->cell.split, c->reason);
		return true;
	}
	return false;
}

/* --- Since another config --------------------------------------------------------------------- */

/* What was counted of some waits. */
struct look {
	struct waits waits;
	uint64_t rest;
	int claim;
	uint64_t tears, toggles;
	bool pooled; /* with shorter waits, perhaps */
};

/* What an older config bounds them by, the worst of shorter waits if pooled; 1: it has none. */
static double bound_before(const struct machine_conf *before, const struct look *look)
{
	double worst = 0;

	for (unsigned i = 0; i < machine_conf_all_levels(before); i++) {
		const struct machine_conf_level *level = &before->level[i];
		bool is_same = waits_same(&level->waits, &look->waits);

		if (level->rest != look->rest)
			continue;
		if (is_same || (look->pooled && level->waits.stretch == look->waits.stretch))
			worst = fmax(worst, machine_conf_p(level, sites_of(look->claim)));
		if (is_same)
			return worst;
	}
	return 1;
}

/* The reason is of the look with the most tears against its bound. */
static void take_look(struct verify_promise *p, const struct machine_conf *before, struct look look,
		      double alpha, double *worst)
{
	double spread = look.claim == CLAIM_PAGE ? before->spread_page : before->spread_line;
	double bound = bound_before(before, &look);
	double times =
		bound_lower(look.tears, look.toggles, 1 - alpha) / verify_in_storm(bound, spread);

	if (bound >= 1 || !look.toggles)
		return;
	p->failures += times > 1;
	if (p->trials++ && times <= *worst)
		return;
	*worst = times;
	snprintf(p->reason, sizeof(p->reason),
		 "%" PRIu64 " %s in %s exposed toggles at waits of %s across a %s, where the older "
		 "config bounds %s",
		 look.tears, tears_word(look.tears), NUMBER(look.toggles),
		 WAITS_WORDS(&look.waits, before->identity.tsc_khz), claim_name(look.claim),
		 NUMBER(bound));
}

void verify_since(struct verify *v, const struct machine_conf *before)
{
	struct verify_promise *p = &v->promise[v->promises++];
	double alpha = VERIFY_ALPHA / (v->cells + CLAIMS * v->conf.levels), worst = 0;

	*p = (struct verify_promise){ .name = "ladder",
				      .reason = "the older config has none of these waits" };
	for (const struct verify_cell *c = v->cell; c < v->cell + v->cells; c++)
		if (c->check == CHECK_WAIT)
			take_look(p, before,
				  (struct look){ c->cell.waits,
						 c->cell.rest > CELL_HOT ? c->cell.rest : 0,
						 claim_of(c->cell.crossing), c->count.tears,
						 c->count.toggles, false },
				  alpha, &worst);
	for (unsigned i = 0; i < CLAIMS * v->conf.levels; i++) {
		const struct machine_conf_level *level = &v->conf.level[i / CLAIMS];
		int claim = (int)(i % CLAIMS);
		const struct machine_conf_bound *seen = verify_bound(level, claim);

		take_look(p, before,
			  (struct look){ level->waits, 0, claim, seen->tears, seen->toggles, true },
			  alpha, &worst);
	}
	p->status = p->failures ? STATUS_BROKEN : p->trials ? STATUS_HELD : STATUS_SKIPPED;
}

bool verify_has_seen(const struct verify *v)
{
	bool has_seen = v->cells > 0;

	for (const struct verify_cell *c = v->cell; c < v->cell + v->cells; c++)
		has_seen &= c->check != CHECK_CONTROL || verify_tears(c);
	return has_seen;
}

/* Over all cells: what was counted, and what the quiet ones of each claim say. */
static bool count_all(struct verify *v, double *expected)
{
	const double each = bound_confidence_each(VERIFY_CONFIDENCE, CLAIMS);
	struct count quiet[CLAIMS] = { 0 };
	bool apart = false, tried[CLAIMS] = { false };

	*expected = 0;
	v->toggles = v->quiet = v->tears = v->missing = 0;
	v->upper_p = 0;
	for (const struct verify_cell *c = v->cell; c < v->cell + v->cells; c++) {
		int claim = claim_of(c->cell.crossing);

		if (c->check != CHECK_WAIT)
			continue;
		*expected += (double)c->count.toggles *
			     verify_in_storm(verify_p(v, claim), verify_spread(v, claim));
		v->toggles += c->count.toggles;
		v->tears += c->count.tears;
		v->quiet += c->quiet.toggles;
		count_add(&quiet[claim], &c->quiet);
		tried[claim] = true;
		apart |= c->apart;
	}
	for (int c = 0; c < CLAIMS; c++) {
		double spread = verify_spread(v, c);

		if (!tried[c])
			continue;
		v->missing += verify_missing(&quiet[c], spread, verify_p(v, c), each);
		v->upper_p = fmax(v->upper_p, bound_mixed(quiet[c].tears, quiet[c].toggles,
							  count_units(&quiet[c]), spread, each));
	}
	return apart;
}

void verify_judge(struct verify *v)
{
	const struct verify_promise *broken = v->promise, *end = broken + v->promises;
	const struct verify_cell *skipped;
	unsigned looks = 1; /* over all */
	double alpha, expected;
	bool apart = count_all(v, &expected);
	char p[80];

	for (unsigned i = 0; i < v->cells; i++)
		looks += v->cell[i].check == CHECK_WAIT && v->cell[i].count.toggles > 0;
	alpha = VERIFY_ALPHA / looks;
	for (struct verify_cell *c = v->cell; c < v->cell + v->cells; c++) {
		int claim = c->check == CHECK_WAIT ? claim_of(c->cell.crossing) : CLAIM_LINE;

		judge_cell(c, verify_in_storm(verify_p(v, claim), verify_spread(v, claim)), alpha);
	}
	snprintf(p, sizeof(p), "%s", NUMBER(verify_p(v, CLAIM_LINE)));
	if (verify_p(v, CLAIM_LINE) != verify_p(v, CLAIM_PAGE))
		snprintf(p, sizeof(p), "%s across a line, %s across a page",
			 NUMBER(verify_p(v, CLAIM_LINE)), NUMBER(verify_p(v, CLAIM_PAGE)));
	skipped = first_of(v, CHECK_WAIT, STATUS_SKIPPED);
	while (broken < end && broken->status != STATUS_BROKEN)
		broken++;

	/* What was seen stays seen, however the run ended. */
	if (first_of(v, CHECK_WINDOW, STATUS_BROKEN)) {
		verify_conclude(v, VERIFY_BROKEN, "a store inside the window of %u bytes tore",
				v->conf.window);
	} else if (is_exceeded(v->tears, v->toggles, expected / (double)v->toggles, alpha) ||
		   first_of(v, CHECK_WAIT, STATUS_BROKEN)) {
		verify_conclude(v, VERIFY_BROKEN,
				"%" PRIu64 " %s in %s exposed toggles: more than p = %s allows",
				v->tears, tears_word(v->tears), NUMBER(v->toggles), p);
	} else if (broken < end) {
		verify_conclude(v, VERIFY_BROKEN, "the machine breaks the promise '%s': %s",
				broken->name, broken->reason);
	} else if (v->cut_short) {
		verify_conclude(v, VERIFY_INCONCLUSIVE, "%s",
				v->cut_short == EXIT_INTERRUPTED
					? "interrupted"
					: "broken off: the journal cannot be written");
		v->status = v->cut_short;
	} else if (find_unclear(v)) {
		return;
	} else if (v->quiet == 0) {
		verify_conclude(v, VERIFY_INCONCLUSIVE, "nothing ran at the config's waits%s%s",
				skipped ? ": " : "", skipped ? skipped->reason : "");
	} else if (!apart) {
		verify_conclude(v, VERIFY_INCONCLUSIVE,
				"only one CPU was used: nothing ran at the same time");
	} else if (v->missing > 0) {
		verify_conclude(v, VERIFY_INCONCLUSIVE,
				"%" PRIu64
				" %s in %s exposed toggles: a rate of %s times p is not excluded, "
				"%s more are needed",
				v->tears, tears_word(v->tears), NUMBER(v->quiet),
				NUMBER(VERIFY_TIMES), NUMBER(v->missing));
	} else {
		verify_conclude(v, VERIFY_HOLDS,
				"%" PRIu64 " %s in %s exposed toggles: within p = %s%s", v->tears,
				tears_word(v->tears), NUMBER(v->toggles), p,
				skipped ? "; some cells were skipped" : "");
	}
}

const char *verify_check_name(enum verify_check check)
{
	return (const char *const[]){ "control", "window", "wait" }[check];
}

const char *verify_status_name(enum verify_status status)
{
	return (const char *const[]){ "held", "broken", "skipped", "no answer" }[status];
}

const char *verify_verdict_name(enum verify_verdict verdict)
{
	return (const char *const[]){ "holds", "broken", "inconclusive", "no config" }[verdict];
}
