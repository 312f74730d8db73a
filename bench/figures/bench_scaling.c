/* SPDX-License-Identifier: MIT */
/*
 * Costs against what grows: sites known, or patchers. By the number of sites there is a panel
 * per measure and unit, and a curve per kind; by patchers a panel per kind, and a curve per number
 * of executors.
 */
#include <math.h>
#include <string.h>

#include "bench/figures/bench_figure.h"
#include "bench/record/bench_words.h"

#define PANELS 16
#define CURVES 8 /* per panel */

struct panel {
	char title[WORDS_ROOM];
	char unit[BENCH_KEY];
	bool sites; /* else patchers */
	char curve[CURVES][WORDS_ROOM];
	unsigned curves;
};

struct panels {
	struct panel panel[PANELS];
	unsigned count;
};

static bool by_sites(const struct bench_row *row)
{
	return bench_row_number(row, "sites") > 0;
}

static bool is_drawn(const struct bench_row *row)
{
	return row_measured(row) && (by_sites(row) || bench_row_number(row, "patchers") > 0);
}

/* -1: no room for it. */
static int curve_of(struct panel *panel, const struct bench_row *row)
{
	static const char *const sites[] = { "sites", NULL };
	double executors = bench_row_number(row, "executors");
	bool crowded = bench_row_number(row, "oversubscribed") > 0;
	char name[WORDS_ROOM];

	if (by_sites(row))
		words_of_row(row, sites, name, sizeof(name));
	else if (executors > 0)
		snprintf(name, sizeof(name), "%.0f executor%s%s", executors,
			 executors == 1 ? "" : "s", crowded ? ", oversubscribed" : "");
	else
		snprintf(name, sizeof(name), "no executor%s", crowded ? ", oversubscribed" : "");
	return words_slot(panel->curve, &panel->curves, CURVES, name);
}

static struct panel *panel_of(struct panels *p, const struct bench_row *row)
{
	static const char *const without[] = { "patchers", "executors", "oversubscribed", NULL };
	struct panel *panel = p->panel;
	char title[WORDS_ROOM];

	/* All that is not in the title tells curves apart, and the other way round. */
	if (by_sites(row))
		words_plain(row->measure, title, sizeof(title));
	else
		words_of_row(row, without, title, sizeof(title));
	for (; panel < p->panel + p->count; panel++)
		if (panel->sites == by_sites(row) && strcmp(panel->unit, row->unit) == 0 &&
		    strcmp(panel->title, title) == 0)
			return panel;
	if (p->count == PANELS)
		return NULL;
	strcpy(panel->title, title);
	strcpy(panel->unit, row->unit);
	panel->sites = by_sites(row);
	p->count++;
	return panel;
}

/* How many PANELS. */
unsigned draw_scaling(const struct bench_result *result, FILE *out, char (*args)[BENCH_ARGS_SIZE])
{
	const struct bench_row *end = result->row + result->rows;
	struct panels p = { .count = 0 };
	struct panel *panel;
	char unit[BENCH_KEY];

	for (const struct bench_row *row = result->row; row < end; row++)
		if (is_drawn(row) && (panel = panel_of(&p, row)))
			curve_of(panel, row);
	fputs("# P panel sites curves title unit\n# K panel curve name\n"
	      "# D panel curve number median low high\n",
	      out);
	for (unsigned i = 0; i < p.count; i++) {
		panel = &p.panel[i];
		fprintf(out, "P %u %d %u \"%s\" \"%s\"\n", i, panel->sites, panel->curves,
			panel->title, words_plain(panel->unit, unit, sizeof(unit)));
		for (unsigned k = 0; k < panel->curves; k++)
			fprintf(out, "K %u %u \"%s\"\n", i, k, panel->curve[k]);
	}
	/* Points of one curve stand in a block, for a line through them. */
	for (unsigned i = 0; i < p.count * CURVES; i++) {
		unsigned curve = i % CURVES;

		panel = &p.panel[i / CURVES];
		if (curve >= panel->curves)
			continue;
		for (const struct bench_row *row = result->row; row < end; row++) {
			if (!is_drawn(row) || panel_of(&p, row) != panel ||
			    curve_of(panel, row) != (int)curve)
				continue;
			fprintf(out, "D %u %u %.9g", i / CURVES, curve,
				bench_row_number(row, panel->sites ? "sites" : "patchers"));
			put_value(out, &row->value);
			fputs("\n", out);
		}
		fputs("\n", out);
	}
	snprintf(args[0], BENCH_ARGS_SIZE, "%u", p.count);
	return p.count ? 1 : 0;
}
