/* SPDX-License-Identifier: MIT */
/*
 * What a calibration says to a person. The summary answers in this order: is this machine fine,
 * what does a change cost before and after, how sure is that, and what to do next. Its times are
 * microseconds; the details have ticks, as files do.
 */
#include "calibrate/verify/conf_write.h"

#include <inttypes.h>
#include <math.h>

#include "base/number.h"
#include "calibrate/statistics/bound.h"
#include "patchcore/machine/policy.h"
#include "results/figures/markup.h"

#define WORTH_TELLING 0.1 /* a bound above it says nothing */

/* A bound as pc_set_accept_p() is given it: rounded up to one digit. */
static double round_up(double p)
{
	double unit = pow(10, floor(log10(p)));

	return fmin(ceil(p / unit - 1e-9) * unit, 1);
}

/* "11000" of a bound of 8.9e-5: one change in so many, rounded down to two digits. */
static double one_in(double p)
{
	double unit = pow(10, floor(log10(1 / p)) - 1);

	return floor(1 / p / unit + 1e-9) * unit;
}

/* --- What a change costs ---------------------------------------------------------------------- */

/* 0: it is not known. */
#define COST(ticks, id) ((ticks) > 0 && (id)->tsc_khz ? TICKS(ticks, (id)->tsc_khz) : "?")

static void put_site(FILE *out, const char *where, double before, double now,
		     const struct identity *id)
{
	fprintf(out, "  %-18s%10s%10s   ", where, COST(before, id), COST(now, id));
}

/* What the same change costs by a level, and what that means. */
static void put_level(FILE *out, const struct level *level, int claim, const struct identity *id)
{
	fprintf(out, "%s, fewer than 1 in %s tears; two waits of %s", COST(level->ticks, id),
		NUMBER(one_in(level->claim[claim].upper_p)),
		WAITS_WORDS(&level->rung, id->tsc_khz));
}

/* A lower bound than any other level's, of sites at rest: the library waits what is missing. */
static void put_rested(FILE *out, const struct estimate *e, int claim, const struct identity *id)
{
	const struct level *rested = e->level + e->ladder.count;
	double p = 1;
	int best;

	for (unsigned i = 0; i < e->ladder.rested; i++)
		if (level_is_known(&rested[i]))
			p = fmin(p, rested[i].claim[claim].upper_p);
	p = p < 1 ? round_up(p) : 1;
	best = estimate_accepted(e, claim, p);
	if (best < 0 || best == estimate_best(e, claim, p) || p >= e->require_p)
		return;
	fprintf(out, "    rested %s, pc_set_accept_p(%s): ", TICKS(CELL_RESTED, id->tsc_khz),
		NUMBER(p));
	put_level(out, &e->level[best], claim, id);
	fputc('\n', out);
}

/* Sites that take three stores: they are kept apart by waits, or by membarrier. */
static void put_straddler(FILE *out, const struct estimate *e, int claim, const struct identity *id)
{
	const char *where = claim == CLAIM_LINE ? "across a line" : "across a page";
	int used = estimate_best(e, claim, PC_ACCEPT_P_DEFAULT);
	int good = estimate_best(e, claim, e->require_p);
	double barrier = e->membarrier_ticks > 0 ? e->membarrier_ticks : INFINITY, least = 1;
	bool passed = e->verdict == VERDICT_PASS;
	bool waits = passed && used >= 0 && e->level[used].ticks < barrier;

	for (unsigned i = 0; i < e->levels; i++)
		least = fmin(least, e->level[i].claim[claim].upper_p);
	put_site(out, where, e->membarrier_ticks,
		 waits ? e->level[used].ticks : e->membarrier_ticks, id);
	if (passed && good >= 0 && e->level[good].ticks < barrier)
		put_level(out, &e->level[good], claim, id);
	else if (passed && good >= 0)
		fputs("the same: no wait that is good enough is shorter", out);
	else if (e->verdict == VERDICT_FAIL)
		fputs("the same: no wait is good enough", out);
	else if (least <= WORTH_TELLING)
		fprintf(out, "not known yet: so far, fewer than 1 in %s tears",
			NUMBER(one_in(least)));
	else
		fputs("not known yet", out);
	fputc('\n', out);
	if (passed)
		put_rested(out, e, claim, id);
}

static void put_window(FILE *out, const struct estimate *e, const struct identity *id)
{
	const struct window *w = &e->window;
	struct facts facts = {
		.have_window = e->verdict == VERDICT_PASS,
		.conf = { .window = w->bytes, .window_runs = w->runs, .window_p = w->upper_p },
		.kind = kind_read(id),
	};
	double barrier = e->membarrier_ticks, ticks = w->ticks;
	bool is_used;
	char where[24];

	if (w->word_tore)
		return;
	facts_accept_window(&facts, PC_ACCEPT_WINDOW_P_DEFAULT);
	is_used = w->bytes == 8 || facts.window > 8;
	snprintf(where, sizeof(where), "inside %u bytes", is_used ? facts.window : w->bytes);
	/* A store that took longer than a membarrier was timed while its CPU was taken away. */
	if (barrier > 0 && ticks >= barrier)
		ticks = 0;
	put_site(out, where, w->bytes == 8 ? ticks : barrier, is_used ? ticks : barrier, id);
	if (is_used)
		fputs("the same: one store", out);
	else if (w->runs >= WINDOW_RUNS)
		fprintf(out, "one store after pc_set_accept_window_p(%s)",
			NUMBER(round_up(w->upper_p)));
	else
		fprintf(out, "one store, maybe, after runs like this one in %s more hours",
			NUMBER(WINDOW_RUNS - w->runs));
	fputc('\n', out);
	if (w->torn)
		fprintf(out,
			"  across %u bytes    as across a line: single stores tear %s (%s of %s "
			"did)\n",
			w->torn, w->stored.tears ? "here" : "on such processors",
			NUMBER(w->stored.tears), NUMBER(w->stored.toggles));
}

/* --- How sure --------------------------------------------------------------------------------- */

/* A run that saw only one of two states says so. */
static void put_certainty(FILE *out, const struct estimate *e, const struct provenance *from)
{
	unsigned left = from->plan->untested_placements;

	if (e->long_run)
		fprintf(out,
			"Sure:    %.0f %% for the long run, from %u runs.\n"
			"Missed:  bad times that are rarer than %.2g %% of all; no number here "
			"knows of them.",
			100 * CONFIDENCE, e->runs, 100 * bound_missed(e->wait_runs));
	else
		fprintf(out,
			"Sure:    %.0f %%, for the time that was measured only: the long run "
			"takes runs in %d hours (so far %u).%s",
			100 * CONFIDENCE, LONG_RUN, e->runs,
			e->slices && e->slices_at[DISTANCE_NEAR] == e->slices
				? " Its CPUs were never far apart."
				: "");
	if (left)
		fprintf(out, " %u placement%s not covered (--verbose).", left,
			left == 1 ? " is" : "s are");
	fputc('\n', out);
	if (from->cells)
		fprintf(out,
			"Noise:   other work disturbed %zu of %zu measurements; they count all "
			"the same.%s\n",
			from->noisy, from->cells,
			2 * from->noisy > from->cells ? " A quiet machine would tell more." : "");
}

static void put_next(FILE *out, const struct estimate *e)
{
	double kept = estimate_kept(e, e->require_p);

	fputs("Next:    ", out);
	if (e->window.word_tore)
		fputs("do not change running code on this machine, and tell its vendor.\n", out);
	else if (e->verdict == VERDICT_FAIL)
		fputs("nothing: the library uses membarrier, and no wait can replace it.\n", out);
	else if (e->verdict == VERDICT_INCONCLUSIVE || kept > e->require_p)
		fputs("run it again, longer or on a quiet machine: all runs add up. Until then the "
		      "library uses membarrier.\n",
		      out);
	else
		fprintf(out,
			"nothing, unless a program can bear tears: then pc_set_accept_p(%s), fewer "
			"than %.2g an hour at one change a second.\n",
			NUMBER(e->require_p), 3600 * kept);
}

void summary_print(FILE *out, const struct estimate *e, const struct provenance *from)
{
	const struct identity *id = from->identity;

	fprintf(out, "Machine: %s, microcode %s, hypervisor %s, %u CPU%s\n", id->brand,
		id->microcode, id->hypervisor, id->cpus, S(id->cpus));
	fputs("Verdict: ", out);
	put_verdict(out, verdict_name(e->verdict), (int)e->verdict);
	fprintf(out, ": %s\n", e->reason);
	fputs("Tears:   if a change tears, a thread runs half of the old and half of the new "
	      "instruction, and may crash.\n",
	      out);
	fprintf(out, "A change of code        before       now   after pc_set_accept_p(%s)\n",
		NUMBER(e->require_p));
	put_window(out, e, id);
	for (int claim = 0; claim < CLAIMS; claim++)
		put_straddler(out, e, claim, id);
	put_certainty(out, e, from);
	put_next(out, e);
}

/* --- The details ------------------------------------------------------------------------------ */

static void put_sections(FILE *out, const struct level *level, unsigned count)
{
	fprintf(out, "  %-10s %-4s %-14s", "waits", "at", "placement");
	fields_put_row(out, section_fields, NULL);
	for (unsigned i = 0; i < count; i++)
		for (unsigned k = 0; k < CLAIMS * PLACEMENT_COUNT; k++) {
			const struct claim *claim = &level[i].claim[k / PLACEMENT_COUNT];
			const struct section *s = &claim->section[k % PLACEMENT_COUNT];

			if (k % PLACEMENT_COUNT >= claim->sections || !s->count.toggles)
				continue;
			fprintf(out, "  %-10s %-4s %-14s", WAITS(&level[i].rung),
				claim_name((int)(k / PLACEMENT_COUNT)),
				placement_name(s->placement));
			fields_put_row(out, section_fields, s);
		}
}

static void put_distances(FILE *out, const struct estimate *e)
{
	uint64_t near = e->slices_at[DISTANCE_NEAR], far = e->slices_at[DISTANCE_FAR];

	if (near + far == 0) {
		fprintf(out, "How far apart the CPUs were is not known.\n");
		return;
	}
	fprintf(out,
		"Near and far: half a round trip of a cache line took %d ticks or more in %.3g %% "
		"of %s slices",
		DISTANCE_TICKS, 100 * (double)far / (double)(near + far), NUMBER(near + far));
	if (near + far < e->slices)
		fprintf(out, "; of %s it is not known", NUMBER(e->slices - near - far));
	fputs(".\n", out);
	if (!near || !far) {
		fprintf(out, "  What was counted says nothing of a time when they are %s.\n",
			far ? "near each other" : "far apart");
		return;
	}
	fprintf(out,
		"  Bounds if it were always so, all sections of a rung near and far at once:\n"
		"  %-10s",
		"waits");
	fields_put_row(out, level_fields, NULL);
	for (const struct level *level = e->level; level < e->level + e->levels; level++) {
		fprintf(out, "  %-10s", WAITS(&level->rung));
		fields_put_row(out, level_fields, level);
	}
}

void summary_details(FILE *out, const struct estimate *e, const struct provenance *from)
{
	const struct kind kind = kind_read(from->identity);

	fprintf(out, "\nEvery rung (bounds with %.0f %%, all sections of a rung at once):\n",
		100 * CONFIDENCE);
	put_sections(out, e->level, e->ladder.count);
	fprintf(out, "Sites that rest %s ticks between two changes:\n", NUMBER(CELL_RESTED));
	put_sections(out, e->level + e->ladder.count, e->ladder.rested);
	put_distances(out, e);
	fprintf(out, "Long waits, by gaps of fetches; stores and gaps are told as toggles and "
		     "tears:\n");
	for (int claim = 0; claim < CLAIMS; claim++)
		if (e->factor[claim] > 0)
			fprintf(out,
				"  across a %s: at most %s times as many tears per toggle as gaps "
				"per "
				"store, at %" PRIu64 " ticks\n",
				claim_name(claim), NUMBER(e->factor[claim]), e->factor_wait[claim]);
		else
			fprintf(out,
				"  across a %s: how many tears a gap stands for is unknown, since "
				"no wait had enough of both; so no bound\n",
				claim_name(claim));
	put_sections(out, e->long_level, LONG_WAITS);
	fprintf(out,
		"Stores inside a line: %s runs in different hours here, and %u runs in %u hours on "
		"machines of this kind; the\nlibrary asks for %d, or for %d in %d hours.\n",
		NUMBER(e->window.runs), kind.runs, kind.hours, WINDOW_RUNS, WINDOW_RUNS,
		WINDOW_HOURS);
	if (e->paper.known && e->paper.found)
		fprintf(out,
			"The paper's T_max: of its constant waits %" PRIu64
			" ticks is the lowest without a tear%s.\n",
			e->paper.wait, e->paper.stays ? "" : ", but longer ones tore");
	for (unsigned i = 0; i < from->plan->untesteds; i++) {
		const struct untested *u = &from->plan->untested[i];

		fprintf(out, "  %-14s not %s: %s\n", untested_name(u),
			u->is_provoker ? "provoked" : "tested", u->reason);
	}
}
