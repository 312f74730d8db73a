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

static void put_waits(FILE *out, const char *what, const struct waits *w, const struct identity *id)
{
	fprintf(out, "%s: first wait %" PRIu64 " ticks (%.2f us), second %" PRIu64 " (%.2f us)\n",
		what, w->first, microseconds(w->first, id), w->second, microseconds(w->second, id));
}

static void put_claim(FILE *out, const struct claim *c, const struct identity *id)
{
	char what[32];

	snprintf(what, sizeof(what), "  across a %s", crossing_name(c->crossing));
	put_waits(out, what, &c->waits, id);
	fprintf(out, "    %" PRIu64 " tears in %.3g toggles there, so below %.2g per toggle\n",
		c->tears, (double)c->toggles, c->upper_p);
	if (c->drifted)
		fprintf(out,
			"    The rate drifted (p = %.1g): that is the bound of the worst time "
			"seen.\n",
			c->drift_p);
}

static void put_answer(FILE *out, const struct estimate *e, const struct identity *id)
{
	put_waits(out, e->verdict == VERDICT_PASS ? "T_max" : "Tried last", &e->waits, id);
	if (e->stretch)
		fprintf(out, "  and each at least %" PRIu64 " times what the store itself took\n",
			e->stretch);
	for (unsigned i = 0; i < CLAIMS; i++)
		put_claim(out, &e->claim[i], id);
	fprintf(out,
		"How sure: %.0f %% that no placement and crossing tears more often than %.2g per "
		"toggle\n  (%.2g if all are alike).\n",
		100 * CONFIDENCE, e->upper_p, e->pooled_p);
}

/* Where a hypervisor moves its CPUs, that is half of the answer. */
static void put_distance(FILE *out, const struct estimate *e)
{
	const struct distance *d = &e->distance;

	if (d->far == 0)
		return;
	fprintf(out,
		"The CPUs moved: far apart in %zu of %zu cells, where a cache line takes twice as "
		"long or more.\n",
		d->far, d->cells);
	for (unsigned i = 0; d->both && i < CLAIMS; i++)
		fprintf(out, "  across a %s then: %" PRIu64 " tears in %.3g toggles\n",
			crossing_name(e->claim[i].crossing), e->claim[i].far_tears,
			(double)e->claim[i].far_toggles);
}

static void put_arms(FILE *out, const struct arms *arms)
{
	char name[PROVOKERS_MAX + 64];

	fprintf(out, "Provoked by (tears per million toggles, short waits):\n");
	for (unsigned i = 0; i < arms->count; i++) {
		const struct arm *a = &arms->arm[i];

		fprintf(out, "  %-34s %8.3g (%.2g to %.2g)", arm_name(a, name, sizeof(name)),
			1e6 * a->rate, 1e6 * a->lower, 1e6 * a->upper);
		if (i > 0 && a->ratio >= 0)
			fprintf(out, ", %.2g times none (p = %.1g)", a->ratio, a->p);
		fputc('\n', out);
	}
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
	for (unsigned i = 0; i < plan->unprovokeds; i++)
		fprintf(out, "  %-14s not provoked: %s\n",
			provoker_name(plan->unprovoked[i].provoker), plan->unprovoked[i].reason);
}

void summary_print(FILE *out, const struct estimate *e, const struct provenance *from)
{
	const struct identity *id = from->identity;

	fprintf(out, "\nMachine: %s, family %u model %u stepping %u, microcode %s, hypervisor %s\n",
		id->brand, id->family, id->model, id->stepping, id->microcode, id->hypervisor);
	fprintf(out, "Verdict: %s (%s)\n", verdict_name(e->verdict), e->reason);
	put_answer(out, e, id);
	put_torn(out, "first wait", &e->torn, 0);
	put_torn(out, "second wait", &e->torn, 1);
	put_sections(out, e);
	put_distance(out, e);
	if (e->arms.count)
		put_arms(out, &e->arms);
	put_gaps(out, from->plan);
	fprintf(out, "Atomic window: %u bytes (no tear in %" PRIu64 " stores, p < %.2g)\n",
		e->window, e->window_toggles, e->window_p);
	if (!e->tears_here)
		fprintf(out, "Even the unprotected store never tore in this run.\n");
}
