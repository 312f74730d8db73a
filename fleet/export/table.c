/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "fleet/export/export.h"
#include "fleet/judge/each_kind.h"

/* What a machine may go by that has counted nothing itself. */
struct table {
	FILE *out;
	struct estimate prior;
	struct behind behind;
};

static int for_each(FILE *out, struct fleet *fleet,
		    int (*put)(const struct kind_report *report, void *arg))
{
	struct table *table = calloc(1, sizeof(*table));
	int ret = table ? 0 : -ENOMEM;

	if (table) {
		table->out = out;
		ret = each_kind(fleet, put, table);
	}
	free(table);
	return ret == -ENODATA ? 0 : ret;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static json_t *claim_json(const struct claim *claim, const struct behind_one *behind)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:f}", "machines", (json_int_t)behind->machines,
			 "runs", (json_int_t)behind->runs, "toggles",
			 (json_int_t)claim->count.toggles, "tears", (json_int_t)claim->count.tears,
			 "upper_p", claim->upper_p);
}

/* Of use are those that say something of lines and pages. */
static json_t *levels_json(const struct table *t)
{
	json_t *levels = json_array();

	for (unsigned i = 0; i < t->prior.levels; i++) {
		const struct level *level = &t->prior.level[i];

		if (level->upper_p >= 1)
			continue;
		json_array_append_new(levels,
				      json_pack("{s:I, s:I, s:I, s:I, s:o, s:o}", "first",
						(json_int_t)level->rung.first, "second",
						(json_int_t)level->rung.second, "stretch",
						(json_int_t)level->rung.stretch, "ticks",
						(json_int_t)level->ticks, "line",
						claim_json(&level->claim[CLAIM_LINE],
							   &t->behind.level[i][CLAIM_LINE]),
						"page",
						claim_json(&level->claim[CLAIM_PAGE],
							   &t->behind.level[i][CLAIM_PAGE])));
	}
	return levels;
}

static json_t *kind_json(const struct identity *id)
{
	return json_pack("{s:s, s:i, s:i, s:i, s:s, s:s, s:i, s:i, s:i, s:s}", "vendor", id->vendor,
			 "family", (int)id->family, "model", (int)id->model, "stepping",
			 (int)id->stepping, "microcode", id->microcode, "hypervisor",
			 id->hypervisor, "sockets", (int)id->sockets, "cores", (int)id->cores,
			 "cpus", (int)id->cpus, "brand", id->brand);
}

static int put_prior(const struct kind_report *r, void *arg)
{
	struct table *t = arg;
	const struct fleet_kind *k = r->kind;
	const struct window *w = &t->prior.window;
	int ret = prior_of_kind(&r->kind->identity, r->runs, r->count, &t->prior, &t->behind);
	const struct claim *claim = &t->prior.level[0].claim[CLAIM_LINE];
	json_t *body, *names;

	if (ret < 0)
		return ret;
	names = json_array();
	for (unsigned i = 0; i < claim->sections; i++)
		json_array_append_new(names,
				      json_string(placement_name(claim->section[i].placement)));
	body = json_pack("{s:o, s:I, s:I, s:I, s:I, s:[I, I], s:o, s:b, s:f, s:I, s:{s:i, s:I, "
			 "s:I, s:f}, s:o}",
			 "kind", kind_json(&k->identity), "machines", (json_int_t)k->machines,
			 "runs", (json_int_t)k->runs, "from", (json_int_t)k->from, "to",
			 (json_int_t)k->to, "tsc_khz", (json_int_t)k->khz[0], (json_int_t)k->khz[1],
			 "placements", names, "long_run", t->prior.long_run, "confidence",
			 PRIOR_CONFIDENCE, "membarrier_ticks",
			 (json_int_t)t->prior.membarrier_ticks, "window", "bytes", (int)w->bytes,
			 "machines", (json_int_t)t->behind.window.machines, "toggles",
			 (json_int_t)w->toggles, "upper_p", w->upper_p, "levels", levels_json(t));
	ret = body ? journal_tell(t->out, journal_line("prior", body)) : -EINVAL;
	json_decref(body);
	return ret;
}

int export_prior(FILE *out, struct fleet *fleet)
{
	return for_each(out, fleet, put_prior);
}

/* --- CSV -------------------------------------------------------------------------------------- */

static void put_text(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputs("\",", out);
}

static int put_rows(const struct kind_report *r, void *arg)
{
	struct table *t = arg;
	const struct fleet_kind *k = r->kind;
	const struct identity *id = &k->identity;
	int ret = prior_of_kind(&r->kind->identity, r->runs, r->count, &t->prior, &t->behind);

	for (unsigned i = 0; i < CLAIMS * r->estimate.levels && ret == 0; i++) {
		const struct level *level = &r->estimate.level[i / CLAIMS];
		const struct claim *claim = &level->claim[i % CLAIMS];
		const struct behind_one *behind = &r->behind.level[i / CLAIMS][i % CLAIMS];

		if (!claim->count.toggles)
			continue;
		put_text(t->out, id->vendor);
		fprintf(t->out, "%u,%u,%u,", id->family, id->model, id->stepping);
		put_text(t->out, id->microcode);
		put_text(t->out, id->hypervisor);
		put_text(t->out, id->brand);
		fprintf(t->out, "%u,%u,%u,%" PRIu64 ",%" PRIu64 ",%" PRId64 ",%" PRId64 ",",
			id->sockets, id->cores, id->cpus, k->machines, k->runs, k->from, k->to);
		fprintf(t->out,
			"%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
			",%" PRIu64 ",%.6g,%.6g,%.6g,%d\n",
			claim_name(i % CLAIMS), level->rung.first, level->rung.second,
			level->rung.stretch, behind->machines, behind->runs, claim->count.toggles,
			claim->count.tears, claim->upper_p,
			t->prior.level[i / CLAIMS].claim[i % CLAIMS].upper_p, level->ticks,
			r->estimate.long_run);
	}
	return ret;
}

int export_csv(FILE *out, struct fleet *fleet)
{
	fputs("vendor,family,model,stepping,microcode,hypervisor,brand,sockets,cores,cpus,"
	      "machines,runs,from,to,crossing,first,second,stretch,level_machines,level_runs,"
	      "toggles,tears,upper_p,prior_p,ticks,long_run\n",
	      out);
	return for_each(out, fleet, put_rows);
}
