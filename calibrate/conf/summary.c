/* SPDX-License-Identifier: MIT */
#include "calibrate/conf/summary.h"

#include <inttypes.h>
#include <math.h>

#include "calibrate/program/colour.h"
#include "calibrate/statistics/bound.h"
#include "calibrate/statistics/factors.h"
#include "patchcore/patchcore.h"
#include "stress/base/number.h"

#define DECADES_MAX 4 /* rows of the ladder */

#define WORTH_TELLING 0.1 /* a bound above it says nothing */

static double microseconds(double ticks, const struct identity *id)
{
	return id->tsc_khz ? ticks * 1000.0 / (double)id->tsc_khz : 0;
}

/* --- The ladder, a row for each decade -------------------------------------------------------- */

static void put_cell(FILE *out, const struct estimate *e, int claim, double p,
		     const struct identity *id)
{
	int best = estimate_best(e, claim, p);

	if (best < 0)
		fprintf(out, "  %-24s", "not shown");
	else
		fprintf(out, "  %-10s (%7.2f us) ", WAITS(&e->level[best].rung),
			microseconds(e->level[best].ticks, id));
}

static double least_bound(const struct estimate *e)
{
	double p = 1;

	for (unsigned i = 0; i < e->levels; i++)
		for (int c = 0; c < CLAIMS; c++)
			p = fmin(p, e->level[i].claim[c].upper_p);
	return p;
}

static void put_ladder(FILE *out, const struct estimate *e, const struct identity *id)
{
	int least = (int)ceil(log10(least_bound(e)) - 1e-9), first = -3;

	if (least > -1) {
		fprintf(out, "No wait keeps tears below 0.1 per toggle, as far as was seen.\n");
		return;
	}
	if (first < least)
		first = least;
	if (first - least >= DECADES_MAX)
		first = least + DECADES_MAX - 1;
	fprintf(out, "Tears of a toggle  at sites across a line    across a page"
		     "   (two waits, and what a change costs)\n");
	for (int decade = first; decade >= least; decade--) {
		double p = pow(10, decade);

		fprintf(out, "  below 1e%d      ", decade);
		put_cell(out, e, CLAIM_LINE, p, id);
		put_cell(out, e, CLAIM_PAGE, p, id);
		fputc('\n', out);
	}
}

/* --- What the library will do ----------------------------------------------------------------- */

static void put_policy(FILE *out, const struct estimate *e, const struct identity *id)
{
	int by_default = estimate_best(e, -1, PC_ACCEPT_P_DEFAULT), best;
	double barrier = microseconds(e->membarrier_ticks, id), accept;

	if (by_default >= 0 && e->level[by_default].ticks < e->membarrier_ticks) {
		fprintf(out, "Policy auto waits %s: it keeps the default, %s.\n",
			WAITS(&e->level[by_default].rung), NUMBER(PC_ACCEPT_P_DEFAULT));
		return;
	}
	best = estimate_best(e, -1, e->require_p);
	if (best < 0 || e->verdict != VERDICT_PASS) {
		fprintf(out,
			"Policy auto uses membarrier (%.1f us a change): no wait is good enough.\n",
			barrier);
		return;
	}
	accept = pow(10, ceil(log10(e->level[best].upper_p) - 1e-9));
	fprintf(out,
		"Policy auto uses membarrier (%.1f us a change); after pc_set_accept_p(%s) it "
		"waits "
		"%s (%.2f us).\n",
		barrier, NUMBER(accept), WAITS(&e->level[best].rung),
		microseconds(e->level[best].ticks, id));
}

/* The shortest of the long waits with the best bound. */
static void put_long(FILE *out, const struct estimate *e, const struct identity *id)
{
	const struct level *best = &e->long_level[0];

	for (unsigned i = 1; i < LONG_WAITS; i++)
		if (e->long_level[i].upper_p < best->upper_p)
			best = &e->long_level[i];
	if (best->upper_p > WORTH_TELLING)
		return;
	fprintf(out,
		"Started changes: two waits of %" PRIu64
		" (%.0f us, no executor interrupted) keep them "
		"below %s; auto %s.\n",
		best->rung.first, microseconds(best->ticks, id), NUMBER(best->upper_p),
		best->upper_p <= PC_ACCEPT_P_DEFAULT
			? "does so"
			: "does so below 1e-9, or if told to accept it");
}

static void put_window(FILE *out, const struct window *w)
{
	if (w->word_tore)
		return;
	if (w->upper_p > WORTH_TELLING) {
		fprintf(out, "Sites inside a window: too few stores were seen to tell a bound.\n");
		return;
	}
	fprintf(out,
		"Sites inside %u bytes: one store, 0 tears in %s, so below %s; auto does so "
		"%s.\n",
		w->bytes, NUMBER(w->toggles), NUMBER(w->upper_p),
		w->bytes == 8 || w->upper_p <= PC_ACCEPT_P_DEFAULT
			? "already"
			: "below 1e-9, or if told to accept it");
}

void summary_print(FILE *out, const struct estimate *e, const struct provenance *from)
{
	const struct identity *id = from->identity;

	fprintf(out, "Machine: %s, microcode %s, hypervisor %s, %u CPUs\n", id->brand,
		id->microcode, id->hypervisor, id->cpus);
	fputs("Verdict: ", out);
	put_verdict(out, verdict_name(e->verdict), (int)e->verdict);
	fprintf(out, ": %s\n", e->reason);
	put_ladder(out, e, id);
	if (e->long_run)
		fprintf(out, "How sure: %.0f %% for the long run, from %u runs.\n",
			100 * CONFIDENCE, e->runs);
	else
		fprintf(out,
			"How sure: %.0f %% for the time of %s, no more: the long run takes %d "
			"runs.\n",
			100 * CONFIDENCE, e->runs > 1 ? "these runs" : "this run", LONG_RUN);
	put_policy(out, e, id);
	put_long(out, e, id);
	put_window(out, &e->window);
	fprintf(out,
		"Next:    run it again, all runs add up (tmax evidence). %u placement%s not "
		"covered: "
		"see --verbose.\n",
		from->plan->unseateds, from->plan->unseateds == 1 ? " is" : "s are");
}

/* --- Everything ------------------------------------------------------------------------------- */

static void put_sections(FILE *out, const struct level *level, unsigned count)
{
	fprintf(out, "  %-10s %-4s %-14s", "waits", "at", "placement");
	fields_put_titles(out, section_fields);
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

static void put_factor(FILE *out, const struct estimate *e, int claim)
{
	if (e->factor[claim] > 0)
		fprintf(out,
			"  across a %s: at most %s times as many tears per toggle as gaps per "
			"store, at %" PRIu64 " ticks\n",
			claim_name(claim), NUMBER(e->factor[claim]), e->factor_wait[claim]);
	else
		fprintf(out,
			"  across a %s: how many tears a gap stands for is unknown, since no wait "
			"had enough of both; so no bound\n",
			claim_name(claim));
}

void summary_details(FILE *out, const struct estimate *e, const struct provenance *from)
{
	const struct paper_wait *paper = &e->paper;

	fprintf(out, "\nEvery rung (bounds with %.0f %%, all sections of a rung at once):\n",
		100 * CONFIDENCE);
	put_sections(out, e->level, e->ladder.count);
	fprintf(out, "Long waits, by gaps of fetches; stores and gaps are told as toggles and "
		     "tears:\n");
	put_factor(out, e, CLAIM_LINE);
	put_factor(out, e, CLAIM_PAGE);
	put_sections(out, e->long_level, LONG_WAITS);
	if (paper->known && !paper->found)
		fprintf(out, "The paper's T_max: none, every constant wait up to %u ticks tore.\n",
			(unsigned)LADDER_PAPER);
	else if (paper->known)
		fprintf(out, "The paper's T_max: %" PRIu64 " ticks without a tear%s.\n",
			paper->wait,
			paper->stays ? ", nor at any longer wait"
				     : ", but longer waits tore again");
	fprintf(out,
		"Rates differ between slices by %s times their mean squared across a line, %s "
		"across a page.\n",
		NUMBER(e->spread[CLAIM_LINE]), NUMBER(e->spread[CLAIM_PAGE]));
	for (unsigned i = 0; i < from->plan->untesteds; i++) {
		const struct untested *u = &from->plan->untested[i];

		fprintf(out, "  %-14s not %s: %s\n", untested_name(u),
			u->is_provoker ? "provoked" : "tested", u->reason);
	}
}

void summary_factors(FILE *out, const struct cell_record *records, size_t count)
{
	struct factors f;
	double all;

	if (factors_of(&f, records, count) < 0) {
		fprintf(out, "Too few tears in this run to tell what rates differ by.\n");
		return;
	}
	all = fmax(0, f.place) + fmax(0, f.time) + fmax(0, f.wait);
	all = all > 0 ? all / 100 : 1;
	fprintf(out,
		"Of what rates differed by in this run (%zu slices, %u places): wait %.0f %%, "
		"place of the site %.0f %%, time %.0f %%.\nThe worst tenth of the places tore %s "
		"times as often as the mean.\n",
		f.slices, f.places, fmax(0, f.wait) / all, fmax(0, f.place) / all,
		fmax(0, f.time) / all, NUMBER(f.worst_rate));
}
