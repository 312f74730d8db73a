/* SPDX-License-Identifier: MIT */
/* All kinds as lines of JSON or CSV. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "fleet/export/export.h"
#include "fleet/export/prior.h"

struct prior_table {
	FILE *out;
	struct prior prior;
	int (*put)(const struct kind_report *report, const struct prior_table *table);
};

/* What a machine may go by that has counted nothing itself, and how the kind is put by it. */
static int put_kind(const struct kind_report *r, void *arg)
{
	struct prior_table *t = arg;
	int ret = prior_of_kind(&r->kind->identity, r->runs, r->count, &t->prior.estimate,
				&t->prior.behind);

	t->prior.kind = *r->kind;
	t->prior.confidence = PRIOR_CONFIDENCE;
	return ret < 0 ? ret : t->put(r, t);
}

static int export_kinds(FILE *out, struct fleet *fleet,
			int (*put)(const struct kind_report *report,
				   const struct prior_table *table))
{
	struct prior_table *table = calloc(1, sizeof(*table));
	int ret = table ? 0 : -ENOMEM;

	if (table) {
		*table = (struct prior_table){ .out = out, .put = put };
		ret = each_kind(fleet, put_kind, table);
	}
	free(table);
	return ret == -ENODATA ? 0 : ret;
}

static int put_json(const struct kind_report *r, const struct prior_table *t)
{
	json_t *body = prior_to_json(&t->prior);
	int ret = body ? journal_tell(t->out, journal_line("prior", body)) : -EINVAL;

	(void)r;
	json_decref(body);
	return ret;
}

int export_prior(FILE *out, struct fleet *fleet)
{
	return export_kinds(out, fleet, put_json);
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

static int put_rows(const struct kind_report *r, const struct prior_table *t)
{
	const struct fleet_kind *k = r->kind;
	const struct identity *id = &k->identity;

	for (unsigned i = 0; i < CLAIMS * r->estimate.levels; i++) {
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
			t->prior.estimate.level[i / CLAIMS].claim[i % CLAIMS].upper_p, level->ticks,
			r->estimate.long_run);
	}
	return 0;
}

int export_csv(FILE *out, struct fleet *fleet)
{
	fputs("vendor,family,model,stepping,microcode,hypervisor,brand,sockets,cores,cpus,"
	      "machines,runs,from,to,crossing,first,second,stretch,level_machines,level_runs,"
	      "toggles,tears,upper_p,prior_p,ticks,long_run\n",
	      out);
	return export_kinds(out, fleet, put_rows);
}
