/* SPDX-License-Identifier: MIT */
#include "calibrate/summary.h"

#include <inttypes.h>

#include "calibrate/bound.h"

static double microseconds(uint64_t ticks, const struct identity *id)
{
	return id->tsc_khz ? (double)ticks * 1000.0 / (double)id->tsc_khz : 0;
}

static void put_torn(FILE *out, const char *what, const struct torn *torn, unsigned which)
{
	if (torn->seen[which])
		fprintf(out, "  %s: the highest wait that still tore was %" PRIu64 " ticks\n", what,
			torn->wait[which]);
	else
		fprintf(out, "  %s: no wait tore, not even 0, so it is bounded from above only\n",
			what);
}

static void put_pass(FILE *out, const struct estimate *e, const struct identity *id)
{
	fprintf(out,
		"T_max: first wait %" PRIu64 " ticks (%.2f us), second wait %" PRIu64
		" ticks (%.2f us)\n",
		e->first_wait, microseconds(e->first_wait, id), e->second_wait,
		microseconds(e->second_wait, id));
	fprintf(out, "How sure: no tear in %" PRIu64 " toggles at these waits.\n", e->toggles);
	fprintf(out,
		"  At %.0f %% confidence a toggle tears with a probability below %.2g in the\n"
		"  placement known least well (%.2g if all placements are alike).\n",
		100 * CONFIDENCE, e->upper_p, e->pooled_p);
	if (e->margin > 0)
		fprintf(out, "  Margin over the highest wait that tore: %.2g.\n", e->margin);
}

static void put_sections(FILE *out, const struct estimate *e)
{
	fprintf(out, "On what:\n");
	for (unsigned i = 0; i < e->sections; i++) {
		const struct section *s = &e->section[i];

		fprintf(out, "  %-14s %-4s  %.3g toggles, %" PRIu64 " tears, p < %.2g\n",
			placement_name(s->placement), crossing_name(s->crossing),
			(double)s->toggles, s->tears, s->upper_p);
	}
}

static void put_gaps(FILE *out, const struct plan *plan)
{
	for (unsigned i = 0; i < plan->gaps; i++)
		fprintf(out, "  %-14s not tested: %s\n", placement_name(plan->gap[i].placement),
			plan->gap[i].reason);
}

void summary_print(FILE *out, const struct estimate *e, const struct provenance *from)
{
	const struct identity *id = from->identity;

	fprintf(out, "\nMachine: %s, family %u model %u stepping %u, microcode %s, hypervisor %s\n",
		id->brand, id->family, id->model, id->stepping, id->microcode, id->hypervisor);
	fprintf(out, "Verdict: %s (%s)\n", verdict_name(e->verdict), e->reason);
	if (e->verdict == VERDICT_PASS)
		put_pass(out, e, id);
	put_torn(out, "first wait", &e->torn, 0);
	put_torn(out, "second wait", &e->torn, 1);
	put_sections(out, e);
	put_gaps(out, from->plan);
	fprintf(out, "Atomic window: %u bytes (no tear in %" PRIu64 " stores, p < %.2g)\n",
		e->window, e->window_toggles, e->window_p);
	if (!e->tears_here)
		fprintf(out, "Even the unprotected store never tore in this run.\n");
}
