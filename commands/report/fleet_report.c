/* SPDX-License-Identifier: MIT */
#include "commands/report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/text.h"
#include "fleet/judge/changes.h"
#include "fleet/judge/ladder_of.h"
#include "results/figures/gnuplot.h"
#include "results/figures/html.h"
#include "results/figures/report_page.h"
#include "stress/placement/placement.h"

#define LOWEST	  9 /* of 1e-3, 1e-4, ..., the last that is told */
#define TEXT_SIZE 300

/* What a line of a file says may be anything. */
static const char *plain_text(const char *text, char *room)
{
	text_printable(room, TEXT_SIZE, text);
	return room;
}

/* What the kind is, in a line without its end. */
static void kind_title(FILE *out, const struct fleet_kind *k)
{
	const struct identity *id = &k->identity;
	bool bare = strcmp(id->hypervisor, "none") == 0;
	char brand[TEXT_SIZE], vendor[TEXT_SIZE], microcode[TEXT_SIZE], hypervisor[TEXT_SIZE];

	fprintf(out,
		"%s (%s family %u, model %u, stepping %u), microcode %s, %s%s; %u socket%s, %u "
		"core%s, %u CPU%s",
		plain_text(id->brand, brand), plain_text(id->vendor, vendor), id->family, id->model,
		id->stepping, plain_text(id->microcode, microcode), bare ? "bare metal" : "under ",
		bare ? "" : plain_text(id->hypervisor, hypervisor), id->sockets, S(id->sockets),
		id->cores, S(id->cores), id->cpus, S(id->cpus));
}

/* --- The ladder ------------------------------------------------------------------------------- */

typedef void ladder_row(FILE *out, char *cells);

/*
 * Of each decade and crossing the cheapest wait that keeps it, as cells with tabs between them:
 * decade, crossing, wait, what a change costs, bound, machines, runs, toggles, tears.
 */
static void kind_ladder(FILE *out, const struct kind_report *r, ladder_row *put)
{
	const struct estimate *e = &r->estimate;
	char cells[160];

	for (int decade = 3; decade <= LOWEST; decade++)
		for (int c = 0; c < CLAIMS; c++) {
			int best = estimate_best(e, c, pow(10, -decade));
			const struct level *level = &e->level[best < 0 ? 0 : best];
			const struct claim *claim = &level->claim[c];
			const struct behind_one *behind;

			if (best < 0)
				continue;
			behind = &r->behind.level[best][c];
			snprintf(cells, sizeof(cells),
				 "1e-%d\t%s\t%s\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%s\t%" PRIu64,
				 decade, claim_name(c), TICKS(level->rung.first, r->kind->khz[0]),
				 level->ticks > 0 ? TICKS(level->ticks, r->kind->khz[0]) : "?",
				 NUMBER(claim->upper_p), behind->machines, behind->runs,
				 NUMBER(claim->count.toggles), claim->count.tears);
			put(out, cells);
		}
}

static void put_row(FILE *out, char *cells)
{
	static const int wide[] = { 4, 4, -10, -9, -8, -9, -8, -9, -8 };

	fputs("   ", out);
	for (size_t i = 0; cells && i < sizeof(wide) / sizeof(wide[0]); i++)
		fprintf(out, "%s%*s", i && i < 3 ? "  " : " ", -wide[i], strsep(&cells, "\t"));
	fputc('\n', out);
}

static void put_ladder(FILE *out, const struct kind_report *r)
{
	if (estimate_best(&r->estimate, CLAIM_LINE, 1e-3) >= 0 ||
	    estimate_best(&r->estimate, CLAIM_PAGE, 1e-3) >= 0)
		fputs("  Each of a change's two waits, or four times the store's own latency if "
		      "that is longer:\n"
		      "  tears below, across,  wait    change    bound  machines     runs  changes "
		      "    tears\n",
		      out);
	kind_ladder(out, r, put_row);
}

static void put_confidence(FILE *out, const struct kind_report *r)
{
	const struct estimate *e = &r->estimate;

	if (estimate_best(e, CLAIM_LINE, 1e-3) < 0 && estimate_best(e, CLAIM_PAGE, 1e-3) < 0)
		fputs("  No wait keeps tears below 1e-3, as far as was counted.\n", out);
	if (e->long_run)
		fprintf(out,
			"  95 %% for the long run, but for bad times rarer than %s %% of all "
			"hours.",
			NUMBER(100 * bound_missed(e->wait_runs)));
	else
		fputs("  95 % for the time of these runs, no more.", out);
	fprintf(out, " Of machines never seen, up to %s %% may be worse than all these.\n",
		NUMBER(100 * bound_missed(r->kind->machines)));
}

/* --- What was never tested -------------------------------------------------------------------- */

static void put_name(FILE *out, unsigned *count, const char *name)
{
	fprintf(out, "%s%s", (*count)++ ? ", " : "  Never tested: ", name);
}

static void put_untested(FILE *out, const struct kind_report *r)
{
	const struct estimate *e = &r->estimate;
	bool placed[PLACEMENT_COUNT] = { false };
	unsigned count = 0, rungs = 0;

	for (unsigned i = 0; i < e->levels; i++)
		for (int c = 0; c < CLAIMS; c++)
			for (unsigned k = 0; k < e->level[i].claim[c].sections; k++) {
				const struct section *s = &e->level[i].claim[c].section[k];

				placed[s->placement] |= s->count.toggles > 0;
			}
	for (int p = 0; p < PLACEMENT_COUNT; p++)
		if (!placed[p])
			put_name(out, &count, placement_name((enum placement)p));
	for (unsigned i = 0; i < e->levels; i++)
		rungs += !e->level[i].claim[CLAIM_LINE].count.toggles ||
			 !e->level[i].claim[CLAIM_PAGE].count.toggles;
	if (rungs) {
		char text[64];

		snprintf(text, sizeof(text), "%u of %u waits of the ladder", rungs, e->levels);
		put_name(out, &count, text);
	}
	if (!e->window.toggles && !e->window.word_tore)
		put_name(out, &count, "stores inside a line");
	if (!(e->membarrier_ticks > 0))
		put_name(out, &count, "what a membarrier costs");
	if (count)
		fputs(".\n", out);
}

/* --- Machines, and what moved them ------------------------------------------------------------ */

/* How many are worse than their kind, or a negative errno. */
static int put_suspects(FILE *out, const struct kind_report *r)
{
	struct judged *machines;
	char name[TEXT_SIZE];
	size_t n;
	int ret = judge_machines(r->runs, r->count, &machines, &n), found = 0;

	for (size_t i = 0; i < n && ret == 0; i++) {
		const struct judged *m = &machines[i];
		double p = fmin(1, m->p * (double)n);

		if (p >= SUSPECT)
			break;
		fprintf(out, "  WORSE THAN ITS KIND: %s ", plain_text(m->name, name));
		if (m->by_hours)
			fprintf(out,
				"has bad hours (%u of %u among the worst twentieth of all, %s "
				"times as many tears as usual in the worst)",
				m->bad_hours, m->hours, NUMBER(m->worst));
		else
			fprintf(out,
				"tears %s times as often (%" PRIu64
				" tear%s in %s toggles, %u hour%s)",
				NUMBER(m->times), m->tears, S(m->tears), NUMBER(m->toggles),
				m->hours, S(m->hours));
		fprintf(out, "; p = %s over all %zu machines\n", NUMBER(p), n);
		found++;
	}
	if (ret == 0 && n == 1)
		fputs("  One machine alone: there is none to compare it with.\n", out);
	else if (ret == 0 && !found && n && machines[0].p >= 1)
		fputs("  Too little was counted to tell one machine from another.\n", out);
	else if (ret == 0 && !found)
		fputs("  No machine is worse than its kind by more than luck explains.\n", out);
	free(machines);
	return ret < 0 ? ret : found;
}

/* --- Protocols -------------------------------------------------------------------------------- */

static int put_protocols(FILE *out, const struct kind_report *r)
{
	struct fleet_protocol *protocols;
	char name[TEXT_SIZE];
	unsigned held = 0;
	size_t n;
	int ret = fleet_protocols(r->fleet, r->kind->id, &protocols, &n);

	for (size_t i = 0; i < n && ret == 0; i++) {
		const struct fleet_protocol *p = &protocols[i];

		plain_text(p->name, name);
		if (p->died || p->tears)
			fprintf(out,
				"  %s, these steps as read in its source, where they are to hold: "
				"%s of %s changes tore, executors died at %" PRIu64
				" site%s; %" PRIu64 " machine%s\n",
				name, NUMBER(p->tears), NUMBER(p->changes), p->died, S(p->died),
				p->machines, S(p->machines));
		else
			fprintf(out, "%s%s (%s)", held++ ? ", " : "  No change tore by ", name,
				NUMBER(p->changes));
	}
	if (held)
		fputs(".\n", out);
	free(protocols);
	return ret;
}

/* --- All of it -------------------------------------------------------------------------------- */

/* With the ladder or without. How many machines are worse than their kind, or a negative errno. */
static int kind_text(FILE *out, const struct kind_report *r, bool ladder)
{
	const struct fleet_kind *k = r->kind;
	unsigned placements = r->estimate.level[0].claim[CLAIM_LINE].sections;
	char from[TEXT_SIZE], to[TEXT_SIZE];
	struct fleet_change *changes = NULL;
	size_t n = 0;
	int ret, suspects;

	kind_title(out, k);
	fprintf(out, "\n  %" PRIu64 " machine%s, %" PRIu64 " run%s, %s to %s; %u placement%s\n",
		k->machines, S(k->machines), k->runs, S(k->runs), date_text(k->from, true, from),
		date_text(k->to, true, to), placements, S(placements));
	if (ladder)
		put_ladder(out, r);
	put_confidence(out, r);
	suspects = put_suspects(out, r);
	ret = suspects < 0 ? suspects : changes_of_kind(r, &changes, &n);
	for (size_t i = 0; i < n && ret == 0; i++) {
		const struct fleet_change *c = &changes[i];
		double p = fmin(1, c->moved.p * (double)n);

		fprintf(out,
			"  %s%s, %s to %s: %s times as many tears (%u machines, then %u; p = %s",
			p < SUSPECT ? "MOVED BY " : "not moved by ", c->what,
			plain_text(c->from, from), plain_text(c->to, to), NUMBER(c->moved.times),
			c->moved.machines[0], c->moved.machines[1], NUMBER(p));
		if (n > 1)
			fprintf(out, " over all %zu changes", n);
		fputs(")\n", out);
	}
	free(changes);
	if (ret == 0)
		ret = put_protocols(out, r);
	put_untested(out, r);
	fputs("\n", out);
	return ret < 0 ? ret : suspects;
}

static int text_of_kind(const struct kind_report *r, void *out)
{
	return kind_text(out, r, true);
}

int fleet_text(FILE *out, struct fleet *fleet)
{
	int ret = each_kind(fleet, text_of_kind, out);

	if (ret == -ENODATA) {
		fputs("No run is known.\n", out);
		return 0;
	}
	return ret;
}

/* --- FOLDER/fleet.html: of each kind its ladder as a figure, and what the text says ----------- */

static void print_rows(FILE *out, const void *arg)
{
	const struct kind_report *r = arg;
	double khz = (double)r->kind->khz[0], us = khz > 0 ? 1000 / khz : 1;

	for (int c = 0; c < CLAIMS; c++)
		for (unsigned i = 0; i < r->estimate.levels; i++) {
			const struct level *level = &r->estimate.level[i];
			const struct claim *claim = &level->claim[c];

			print_rung(out,
				   &(struct rung_row){ c, false, us * (double)level->rung.first,
						       claim->upper_p, claim->count.toggles,
						       claim->count.tears, us * level->ticks });
		}
}

struct fleet_page {
	struct html_page page;
	FILE *rows[2]; /* of the machines that are worse than their kind; of all others */
	size_t machines;
};

static int list_machines(struct fleet_page *f, const struct kind_report *r)
{
	char name[TEXT_SIZE], brand[TEXT_SIZE];
	struct judged *machines;
	size_t n;
	int ret = judge_machines(r->runs, r->count, &machines, &n);

	for (size_t i = 0; i < n && ret == 0; i++) {
		const struct judged *m = &machines[i];
		double p = fmin(1, m->p * (double)n);

		html_line(f->rows[p >= SUSPECT], p < SUSPECT ? "bad" : NULL, "tnnnnnt",
			  "%s\t%s\t%s\t%u\t%s\t%" PRIu64 "\t%s", plain_text(m->name, name),
			  m->hours ? NUMBER(m->times) : "", NUMBER(p), m->hours, NUMBER(m->toggles),
			  m->tears, plain_text(r->kind->identity.brand, brand));
	}
	f->machines += n;
	free(machines);
	return ret;
}

static void put_html_row(FILE *out, char *cells)
{
	html_row(out, NULL);
	html_cells(out, "ttnnnnnnn", "%s", cells);
}

static int put_kind(const struct kind_report *r, void *arg)
{
	struct fleet_page *f = arg;
	struct html_page *page = &f->page;
	char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	const char *const args[] = { r->kind->khz[0] ? "us" : "ticks", "", NULL };
	char name[32];
	const struct page_figure figure = {
		.name = name,
		.picture = { print_rows, r, "ladder.gp", args },
		.label = "Tears per change against the wait.",
		.caption = ladder_caption,
	};
	int ret = memory ? kind_text(memory, r, false) : -ENOMEM, rc = 0;
	bool drawn = false;

	snprintf(name, sizeof(name), "kind-%" PRId64, r->kind->id);
	for (unsigned i = 0; i < CLAIMS * r->estimate.levels; i++)
		drawn |= r->estimate.level[i / CLAIMS].claim[i % CLAIMS].count.toggles > 0;

	if (memory && fclose(memory) != 0)
		ret = -ENOMEM;
	if (ret >= 0) {
		/* Its first line is the heading. */
		size_t length = strcspn(text, "\n");

		text[length] = '\0';
		fputs("<section>\n<h2>", page->out);
		html_text(page->out, text);
		fputs("</h2>\n", page->out);
		html_table(page->out, NULL,
			   "tears below\tacross a\t#each wait\t#change\t#bound\t#machines\t#runs\t"
			   "#changes\t#tears");
		kind_ladder(page->out, r, put_html_row);
		html_table_end(page->out);
		for (char *part, *rest = text + length + 1; (part = strsep(&rest, "\n"));)
			if (*part)
				html_paragraph(page->out, "%s", part + strspn(part, " "));
		rc = drawn ? page_figure(page, &figure) : 0;
		fputs("</section>\n", page->out);
	}
	free(text);
	if (rc >= 0)
		rc = list_machines(f, r);
	return rc < 0 ? rc : ret;
}

static void put_machines(FILE *out, const char *rows)
{
	html_table(out, NULL,
		   "machine\t#times its kind\t#by luck with\t#hours\t#changes\t#tore\tkind");
	fputs(rows, out);
	html_table_end(out);
}

/* Is the fleet well, and which machines are not? */
static void put_box(FILE *out, const struct fleet_page *f, int suspects, char *rows[2])
{
	fprintf(out, "<div class=\"verdict %s\">", suspects ? "fail" : "pass");
	html_between(
		out, "<p><strong>", "</strong></p>\n",
		"%d of %zu machine%s tear%s more often than %s kind by more than luck explains.",
		suspects, f->machines, S(f->machines), suspects == 1 ? "s" : "",
		suspects == 1 ? "its" : "their");
	fputs("</div>\n", out);
	if (suspects)
		put_machines(out, rows[0]);
	fprintf(out, "<details%s><summary>%s machines</summary>\n",
		suspects ? "" : " open=\"open\"", suspects ? "The other" : "All");
	put_machines(out, rows[1]);
	html_fold_end(out);
}

int fleet_page(const char *folder, struct fleet *fleet, char *undrawn, size_t size)
{
	struct report report = { .folder = folder };
	struct fleet_page f = { .page.report = &report };
	char *text[3] = { NULL }; /* both lists, and the sections */
	FILE *out, **const memory[] = { &f.rows[0], &f.rows[1], &f.page.out };
	size_t length;
	int ret;

	undrawn[0] = '\0';
	if (mkdir(folder, 0777) < 0 && errno != EEXIST)
		return -errno;
	ret = page_begin(&f.page, "fleet.html", "T_max of a fleet");
	if (ret < 0)
		return ret;
	out = f.page.out;
	html_paragraph(out, "What the evidence of many machines says of each kind of them, by %s.",
		       PACKAGE_STRING);
	for (int i = 0; i < 3; i++)
		if (!(*memory[i] = open_memstream(&text[i], &length)))
			ret = -ENOMEM;
	if (ret == 0)
		ret = each_kind(fleet, put_kind, &f);
	for (int i = 0; i < 3; i++)
		if (*memory[i] && fclose(*memory[i]))
			ret = -ENOMEM;
	f.page.out = out;
	if (ret >= 0) {
		put_box(out, &f, ret, text);
		fputs(text[2], out);
	} else if (ret == -ENODATA) {
		html_missing(out, "No run is known.");
		ret = 0;
	}
	for (int i = 0; i < 3; i++)
		free(text[i]);
	snprintf(undrawn, size, "%s", report.undrawn_why);
	return page_end(&f.page, ret);
}
