/* SPDX-License-Identifier: MIT */
#include "calibrate/verify/conf_write.h"

#include <inttypes.h>
#include <math.h>

#include "base/number.h"
#include "calibrate/statistics/bound.h"
#include "results/figures/markup.h"

#define DECADES_MAX   4	  /* rows of the ladder */
#define WORTH_TELLING 0.1 /* a bound above it says nothing */

static double microseconds(double ticks, const struct identity *id)
{
	return id->tsc_khz ? ticks * 1000.0 / (double)id->tsc_khz : 0;
}

void summary_print(FILE *out, const struct estimate *e, const struct provenance *from)
{
	const struct identity *id = from->identity;
	const struct level *longest = &e->long_level[0], *level;
	double barrier = microseconds(e->membarrier_ticks, id), bound = 1;
	int best, least, first;

	fprintf(out, "Machine: %s, microcode %s, hypervisor %s, %u CPU%s\n", id->brand,
		id->microcode, id->hypervisor, id->cpus, S(id->cpus));
	fputs("Verdict: ", out);
	put_verdict(out, verdict_name(e->verdict), (int)e->verdict);
	fprintf(out, ": %s\n", e->reason);

	/* The ladder, a row for each decade. */
	for (unsigned i = 0; i < e->levels; i++)
		for (int c = 0; c < CLAIMS; c++)
			bound = fmin(bound, e->level[i].claim[c].upper_p);
	least = (int)ceil(log10(bound) - 1e-9);
	if (least > -1)
		fprintf(out, "No wait keeps tears below 0.1 per toggle, as far as was seen.\n");
	else
		fprintf(out, "Tears of a toggle  at sites across a line    across a page"
			     "   (two waits, and what a change costs)\n");
	first = least > -3 ? least : -3;
	if (first - least >= DECADES_MAX)
		first = least + DECADES_MAX - 1;
	for (int decade = first; least <= -1 && decade >= least; decade--) {
		fprintf(out, "  below 1e%d      ", decade);
		for (int claim = 0; claim < CLAIMS; claim++) {
			best = estimate_best(e, claim, pow(10, decade));
			if (best < 0)
				fprintf(out, "  %-24s", "not shown");
			else
				fprintf(out, "  %-10s (%7.2f us) ", WAITS(&e->level[best].rung),
					microseconds(e->level[best].ticks, id));
		}
		fputc('\n', out);
	}
	/* A run that saw only one of two states says so. */
	if (e->long_run)
		fprintf(out, "How sure: %.0f %% for the long run, from %u runs.\n",
			100 * CONFIDENCE, e->runs);
	else
		fprintf(out,
			"How sure: %.0f %% for the time that was measured, no more: the long run "
			"takes %d runs.%s\n",
			100 * CONFIDENCE, LONG_RUN,
			e->slices && e->slices_at[DISTANCE_NEAR] == e->slices
				? " Its CPUs were never far apart."
				: "");

	/* What the library will do. */
	best = estimate_best(e, -1, PC_ACCEPT_P_DEFAULT);
	level = best < 0 ? NULL : &e->level[best];
	if (level && level->ticks < e->membarrier_ticks) {
		fprintf(out, "Policy auto waits %s: it keeps the default, %s.\n",
			WAITS(&level->rung), NUMBER(PC_ACCEPT_P_DEFAULT));
	} else if ((best = estimate_best(e, -1, e->require_p)) < 0 || e->verdict != VERDICT_PASS) {
		fprintf(out,
			"Policy auto uses membarrier (%.1f us a change): no wait is good enough.\n",
			barrier);
	} else {
		level = &e->level[best];
		fprintf(out,
			"Policy auto uses membarrier (%.1f us a change); after pc_set_accept_p(%s) "
			"it waits %s (%.2f us).\n",
			barrier, NUMBER(pow(10, ceil(log10(level->upper_p) - 1e-9))),
			WAITS(&level->rung), microseconds(level->ticks, id));
	}
	/* The shortest of the long waits with the best bound. */
	for (unsigned i = 1; i < LONG_WAITS; i++)
		if (e->long_level[i].upper_p < longest->upper_p)
			longest = &e->long_level[i];
	if (longest->upper_p <= WORTH_TELLING)
		fprintf(out,
			"Started changes: two waits of %" PRIu64
			" (%.0f us, no executor interrupted) keep them below %s; auto %s.\n",
			longest->rung.first, microseconds(longest->ticks, id),
			NUMBER(longest->upper_p),
			longest->upper_p <= PC_ACCEPT_P_DEFAULT
				? "does so"
				: "does so below 1e-9, or if told to accept it");
	if (!e->window.word_tore && e->window.upper_p > WORTH_TELLING)
		fprintf(out,
			"Sites inside %u bytes: one store, 0 tears in %s; a bound takes more runs "
			"than %s.\n",
			e->window.bytes, NUMBER(e->window.toggles), NUMBER(e->window.runs));
	else if (!e->window.word_tore)
		fprintf(out,
			"Sites inside %u bytes: one store, 0 tears in %s, so below %s; auto does "
			"so %s.\n",
			e->window.bytes, NUMBER(e->window.toggles), NUMBER(e->window.upper_p),
			e->window.bytes == 8 || e->window.upper_p <= PC_ACCEPT_P_DEFAULT
				? "already"
				: "below 1e-9, or if told to accept it");
	if (e->window.torn)
		fprintf(out,
			"Across %u bytes inside a line %s (%s of %s did): such sites wait as "
			"across a line (of %s changes so %s tore).\n",
			e->window.torn,
			e->window.stored.tears ? "stores tear here"
					       : "stores tear on such processors",
			NUMBER(e->window.stored.tears), NUMBER(e->window.stored.toggles),
			NUMBER(e->window.waited.toggles), NUMBER(e->window.waited.tears));
	fprintf(out,
		"Next:    run it again, all runs add up (tmax evidence). %u placement%s not "
		"covered: see --verbose.\n",
		from->plan->unseateds, from->plan->unseateds == 1 ? " is" : "s are");
}

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
	fprintf(out, "\nEvery rung (bounds with %.0f %%, all sections of a rung at once):\n",
		100 * CONFIDENCE);
	put_sections(out, e->level, e->ladder.count);
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
	for (unsigned i = 0; i < from->plan->untesteds; i++) {
		const struct untested *u = &from->plan->untested[i];

		fprintf(out, "  %-14s not %s: %s\n", untested_name(u),
			u->is_provoker ? "provoked" : "tested", u->reason);
	}
}
