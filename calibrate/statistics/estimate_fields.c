/* SPDX-License-Identifier: MIT */
/*
 * The fields of an estimate, as all outputs spell them: JSON, machine.conf, the summary and
 * the page. A field that is added here is in all of them.
 */
#include <inttypes.h>

#include "base/number.h"
#include "calibrate/statistics/bound.h"
#include "calibrate/statistics/estimate.h"

/* clang-format off */
#define FIELD(type, of, member, name, conf, title) \
	{ name, offsetof(struct of, member), NUMBER_##type, 0, 0, false, NULL, NULL, NULL, conf, title }

const struct field level_fields[] = {
	FIELD(COUNT, level, rung.first, "first", "first", NULL),
	FIELD(COUNT, level, rung.second, "second", "second", NULL),
	FIELD(COUNT, level, rung.stretch, "stretch", "stretch", NULL),
	FIELD(PRESENT, level, ticks, "ticks", "ticks", NULL),
	FIELD(REAL, level, upper_p, "upper_p", NULL, NULL),
	FIELD(REAL, level, at_p[DISTANCE_NEAR], "near_p", NULL, "near: p <"),
	FIELD(REAL, level, at_p[DISTANCE_FAR], "far_p", NULL, "far: p <"),
	END
};

const struct field claim_fields[] = {
	FIELD(COUNT, claim, count.slices, "slices", NULL, NULL),
	FIELD(COUNT, claim, count.toggles, "toggles", "toggles", "toggles"),
	FIELD(COUNT, claim, count.tears, "tears", "tears", "tears"),
	FIELD(REAL, claim, upper_p, "upper_p", "p", "p below"),
	END
};

const struct field section_fields[] = {
	FIELD(COUNT, section, count.slices, "slices", NULL, "slices"),
	FIELD(COUNT, section, count.toggles, "toggles", NULL, "toggles"),
	FIELD(COUNT, section, count.tears, "tears", NULL, "tears"),
	FIELD(REAL, section, upper_p, "upper_p", NULL, "p below"),
	FIELD(REAL, section, dispersion, "dispersion", NULL, "dispersion"),
	FIELD(COUNT, section, count.worst_tears, "worst_tears", NULL, "worst: tears"),
	FIELD(COUNT, section, count.worst_toggles, "worst_toggles", NULL, "in toggles"),
	END
};

const struct field window_fields[] = {
	FIELD(UNSIGNED, window, bytes, "bytes", "bytes", NULL),
	FIELD(COUNT, window, toggles, "toggles", "toggles", NULL),
	FIELD(COUNT, window, runs, "runs", "runs", NULL),
	FIELD(REAL, window, upper_p, "upper_p", "upper_p", NULL),
	FIELD(FLAG, window, word_tore, "word_tore", NULL, NULL),
	FIELD(UNSIGNED, window, torn, "torn", NULL, NULL),
	FIELD(COUNT, window, stored.toggles, "torn_toggles", NULL, NULL),
	FIELD(COUNT, window, stored.tears, "torn_tears", NULL, NULL),
	FIELD(COUNT, window, waited.toggles, "waited_toggles", NULL, NULL),
	FIELD(COUNT, window, waited.tears, "waited_tears", NULL, NULL),
	END
};

const struct field paper_fields[] = {
	FIELD(FLAG, paper_wait, known, "known", NULL, NULL),
	FIELD(FLAG, paper_wait, found, "found", NULL, NULL),
	FIELD(COUNT, paper_wait, wait, "wait", "paper_wait", NULL),
	FIELD(FLAG, paper_wait, stays, "stays", "paper_stays", NULL),
	END
};

const struct field estimate_fields[] = {
	FIELD(REAL, estimate, require_p, "require_p", "require_p", NULL),
	FIELD(UNSIGNED, estimate, runs, "runs", NULL, NULL),
	FIELD(COUNT, estimate, slices, "slices", NULL, NULL),
	FIELD(COUNT, estimate, slices_at[DISTANCE_NEAR], "slices_near", NULL, NULL),
	FIELD(COUNT, estimate, slices_at[DISTANCE_FAR], "slices_far", NULL, NULL),
	FIELD(PRESENT, estimate, membarrier_ticks, "membarrier_ticks", "membarrier_ticks", NULL),
	FIELD(REAL, estimate, spread[CLAIM_LINE], "spread_line", "spread_line", NULL),
	FIELD(REAL, estimate, spread[CLAIM_PAGE], "spread_page", "spread_page", NULL),
	FIELD(REAL, estimate, factor[CLAIM_LINE], "factor_line", NULL, NULL),
	FIELD(REAL, estimate, factor[CLAIM_PAGE], "factor_page", NULL, NULL),
	END
};
/* clang-format on */

/* --- machine.conf, and text ------------------------------------------------------------------- */

void fields_put_conf(FILE *out, const struct field *f, const void *base, const char *prefix)
{
	for (; f->name; f++) {
		const void *at = (const char *)base + f->offset;

		if (!f->conf)
			continue;
		fprintf(out, "%s%s = ", prefix, f->conf);
		if (f->type == NUMBER_COUNT)
			fprintf(out, "%" PRIu64 "\n", *(const uint64_t *)at);
		else if (f->type == NUMBER_UNSIGNED)
			fprintf(out, "%u\n", *(const unsigned *)at);
		else if (f->type == NUMBER_FLAG)
			fprintf(out, "%s\n", *(const bool *)at ? "yes" : "no");
		else
			fprintf(out, f->type == NUMBER_PRESENT ? "%.0f\n" : "%.17g\n",
				*(const double *)at);
	}
}

void fields_put_row(FILE *out, const struct field *f, const void *base)
{
	for (; f->name; f++) {
		const void *at = base ? (const char *)base + f->offset : NULL;

		if (!f->title)
			continue;
		if (!at)
			fprintf(out, " %*s", FIELD_WIDTH, f->title);
		else if (f->type == NUMBER_COUNT)
			fprintf(out, " %*s", FIELD_WIDTH, NUMBER(*(const uint64_t *)at));
		else
			fprintf(out, " %*s", FIELD_WIDTH, NUMBER(*(const double *)at));
	}
	fputc('\n', out);
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* Adds the fields to an object and returns it. */
static json_t *fields_json(json_t *object, const struct field *f, const void *base)
{
	json_object_update_new(object, table_to_json(f, base));
	return object;
}

static json_t *claim_json(const struct claim *claim, int which)
{
	json_t *object = fields_json(json_pack("{s:s}", "crossing", claim_name(which)),
				     claim_fields, claim),
	       *sections = json_array();

	for (unsigned i = 0; i < claim->sections; i++)
		json_array_append_new(
			sections,
			fields_json(json_pack("{s:s}", "placement",
					      placement_name(claim->section[i].placement)),
				    section_fields, &claim->section[i]));
	json_object_set_new(object, "sections", sections);
	return object;
}

static json_t *levels_json(const struct level *level, unsigned count)
{
	json_t *levels = json_array();

	for (unsigned i = 0; i < count; i++) {
		json_t *object = fields_json(json_object(), level_fields, &level[i]);

		json_object_set_new(object, "claims",
				    json_pack("[o, o]", claim_json(&level[i].claim[CLAIM_LINE], 0),
					      claim_json(&level[i].claim[CLAIM_PAGE], 1)));
		json_array_append_new(levels, object);
	}
	return levels;
}

json_t *estimate_to_json(const struct estimate *e)
{
	json_t *object = json_pack("{s:s, s:s, s:s, s:f}", "verdict", verdict_name(e->verdict),
				   "reason", e->reason, "scope",
				   e->long_run ? "long-run" : "this-run", "confidence", CONFIDENCE);

	fields_json(object, estimate_fields, e);
	json_object_set_new(object, "window",
			    fields_json(json_object(), window_fields, &e->window));
	json_object_set_new(object, "paper", fields_json(json_object(), paper_fields, &e->paper));
	json_object_set_new(object, "levels", levels_json(e->level, e->ladder.count));
	json_object_set_new(object, "rested_levels",
			    levels_json(e->level + e->ladder.count, e->ladder.rested));
	json_object_set_new(object, "long_levels", levels_json(e->long_level, LONG_WAITS));
	return object;
}
