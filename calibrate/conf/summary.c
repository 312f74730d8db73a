/* SPDX-License-Identifier: MIT */
#include "calibrate/conf/summary.h"

#include <inttypes.h>
#include <math.h>

#include "calibrate/statistics/bound.h"
#include "calibrate/statistics/factors.h"
#include "patchcore/patchcore.h"

#define DECADES_MAX 4 /* rows of the ladder */
#define RUNG_TEXT   32

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
	char text[RUNG_TEXT];

	if (best < 0)
		fprintf(out, "  %-24s", "not shown");
	else
		fprintf(out, "  %-10s (%7.2f us) ",
			rung_text(&e->level[best].rung, text, sizeof(text)),
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
	char text[RUNG_TEXT];

	if (by_default >= 0 && e->level[by_default].ticks < e->membarrier_ticks) {
		fprintf(out, "Policy auto waits %s: it keeps the default, %g.\n",
			rung_text(&e->level[by_default].rung, text, sizeof(text)),
			PC_ACCEPT_P_DEFAULT);
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
		"Policy auto uses membarrier (%.1f us a change); after pc_set_accept_p(%g) it "
		"waits "
		"%s (%.2f us).\n",
		barrier, accept, rung_text(&e->level[best].rung, text, sizeof(text)),
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
		"below %.1g; auto %s.\n",
		best->rung.first, microseconds(best->ticks, id), best->upper_p,
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
		"Sites inside %u bytes: one store, 0 tears in %.2g, so below %.1g; auto does so "
		"%s.\n",
		w->bytes, (double)w->toggles, w->upper_p,
		w->bytes == 8 || w->upper_p <= PC_ACCEPT_P_DEFAULT
			? "already"
			: "below 1e-9, or if told to accept it");
}

static void put_scope(FILE *out, const struct estimate *e)
{
	if (e->long_run)
		fprintf(out, "How sure: %.0f %% for the long run, from %u runs.\n",
			100 * CONFIDENCE, e->runs);
	else
		fprintf(out,
			"How sure: %.0f %% for the time of %s, no more: the long run takes %d "
			"runs.\n",
			100 * CONFIDENCE, e->runs > 1 ? "these runs" : "this run", LONG_RUN);
}

static void put_paper(FILE *out, const struct estimate *e)
{
	const struct paper_wait *p = &e->paper;

	if (!p->known)
		return;
	if (!p->found)
		fprintf(out, "The paper's T_max: none, every constant wait up to %u ticks tore.\n",
			(unsigned)LADDER_PAPER);
	else
		fprintf(out, "The paper's T_max: %" PRIu64 " ticks without a tear%s.\n", p->wait,
			p->stays ? ", nor at any longer wait" : ", but longer waits tore again");
}

void summary_print(FILE *out, const struct estimate *e, const struct provenance *from)
{
	const struct identity *id = from->identity;

	fprintf(out, "Machine: %s, microcode %s, hypervisor %s, %u CPUs\n", id->brand,
		id->microcode, id->hypervisor, id->cpus);
	fprintf(out, "Verdict: %s: %s\n", verdict_name(e->verdict), e->reason);
	put_ladder(out, e, id);
	put_scope(out, e);
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

static void put_level(FILE *out, const struct level *level)
{
	char text[RUNG_TEXT];

	for (int c = 0; c < CLAIMS; c++) {
		const struct claim *claim = &level->claim[c];

		for (unsigned i = 0; i < claim->sections; i++) {
			const struct section *s = &claim->section[i];

			if (!s->count.toggles)
				continue;
			fprintf(out,
				"  %-10s %-4s %-14s %6" PRIu64 " slices %9.3g toggles %7" PRIu64
				" %-5s  below %8.2g  dispersion %.3g  worst slice %.2g\n",
				rung_text(&level->rung, text, sizeof(text)), claim_name(c),
				placement_name(s->placement), s->count.slices,
				(double)s->count.toggles, s->count.tears,
				tears_word(s->count.tears), s->upper_p, count_dispersion(&s->count),
				s->count.worst_toggles ? (double)s->count.worst_tears /
								 (double)s->count.worst_toggles
						       : 0);
		}
	}
}

void summary_details(FILE *out, const struct estimate *e, const struct provenance *from)
{
	fprintf(out, "\nEvery rung (bounds with %.0f %%, all sections of a rung at once):\n",
		100 * CONFIDENCE);
	for (unsigned i = 0; i < e->ladder.count; i++)
		put_level(out, &e->level[i]);
	fprintf(out,
		"Long waits, by gaps of fetches (%.3g times as many tears per toggle as gaps per "
		"store "
		"at most\nacross a line, at %" PRIu64 " ticks, %.3g across a page, at %" PRIu64
		"; stores and gaps are told as toggles and tears):\n",
		e->factor[CLAIM_LINE], e->factor_wait[CLAIM_LINE], e->factor[CLAIM_PAGE],
		e->factor_wait[CLAIM_PAGE]);
	for (unsigned i = 0; i < LONG_WAITS; i++)
		put_level(out, &e->long_level[i]);
	put_paper(out, e);
	fprintf(out,
		"Rates differ between slices by %.2g times their mean squared across a line, %.2g "
		"across a page.\n",
		e->spread[CLAIM_LINE], e->spread[CLAIM_PAGE]);
	for (unsigned i = 0; i < from->plan->unseateds; i++)
		fprintf(out, "  %-14s not tested: %s\n",
			placement_name(from->plan->unseated[i].placement),
			from->plan->unseated[i].reason);
	for (unsigned i = 0; i < from->plan->unprovokeds; i++)
		fprintf(out, "  %-14s not provoked: %s\n",
			provoker_name(from->plan->unprovoked[i].provoker),
			from->plan->unprovoked[i].reason);
}

static void put_share(FILE *out, const char *what, double variance, double all)
{
	fprintf(out, " %s %.0f %%", what, all > 0 ? 100 * fmax(0, variance) / all : 0);
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
	fprintf(out, "Of what rates differed by in this run (%zu slices, %u places):", f.slices,
		f.places);
	put_share(out, "wait", f.wait, all);
	put_share(out, ", place of the site", f.place, all);
	put_share(out, ", time", f.time, all);
	fprintf(out, ".\nThe worst tenth of the places tore %.2g times as often as the mean.\n",
		f.worst_rate);
}
