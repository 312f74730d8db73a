/* SPDX-License-Identifier: MIT */
/*
 * What a machine may go by that has counted nothing itself: as a line of JSON, and read from one.
 */
#include "fleet/export/prior.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#define SAME_RATE 0.01 /* as far as TSCs of one machine may differ between boots */
#define ROUNDING  1e-9

/* clang-format off */
static const struct field bound_fields[] = {
	COUNT(struct claim, "toggles", count.toggles),
	COUNT(struct claim, "tears", count.tears),
	REAL(struct claim, "upper_p", upper_p),
	END
};

static const struct field behind_fields[] = {
	COUNT(struct behind_one, "machines", machines),
	OPTIONAL(struct behind_one, "runs", runs, NUMBER_COUNT, INT64_MAX),
	END
};

static const struct field rung_fields[] = {
	COUNT(struct level, "first", rung.first),
	COUNT(struct level, "second", rung.second),
	COUNT(struct level, "stretch", rung.stretch),
	REAL(struct level, "ticks", ticks),
	TABLE(struct level, "line", claim[CLAIM_LINE], false, bound_fields),
	TABLE(struct level, "page", claim[CLAIM_PAGE], false, bound_fields),
	END
};

static const struct field window_bound_fields[] = {
	BOUNDED(struct window, "bytes", bytes, NUMBER_UNSIGNED, 0, 64),
	COUNT(struct window, "toggles", toggles),
	REAL(struct window, "upper_p", upper_p),
	END
};

static const struct field prior_fields[] = {
	TABLE(struct prior, "kind", kind.identity, false, kind_fields),
	COUNT(struct prior, "machines", kind.machines),
	COUNT(struct prior, "runs", kind.runs),
	COUNT(struct prior, "from", kind.from),
	COUNT(struct prior, "to", kind.to),
	OTHER(struct prior, "long_run", estimate.long_run, NUMBER_FLAG, false),
	REAL(struct prior, "confidence", confidence),
	REAL(struct prior, "membarrier_ticks", estimate.membarrier_ticks),
	TABLE(struct prior, "window", estimate.window, false, window_bound_fields),
	END
};
/* clang-format on */

/* --- Writing ---------------------------------------------------------------------------------- */

static void add_behind(json_t *object, const char *name, const struct behind_one *behind)
{
	json_object_update_new(json_object_get(object, name), table_to_json(behind_fields, behind));
}

json_t *prior_to_json(const struct prior *p)
{
	const struct estimate *e = &p->estimate;
	const struct claim *claim = &e->level[0].claim[CLAIM_LINE];
	json_t *line = table_to_json(prior_fields, p), *names = json_array(),
	       *levels = json_array();

	add_behind(line, "window", &p->behind.window);
	for (unsigned i = 0; i < claim->sections; i++)
		json_array_append_new(names,
				      json_string(placement_name(claim->section[i].placement)));
	for (unsigned i = 0; i < e->levels; i++) {
		json_t *level = table_to_json(rung_fields, &e->level[i]);

		/* Those that machine.conf has. */
		if (level_is_known(&e->level[i]))
			json_array_append(levels, level);
		for (int c = 0; c < CLAIMS; c++)
			add_behind(level, claim_name(c), &p->behind.level[i][c]);
		json_decref(level);
	}
	json_object_set_new(
		line, "tsc_khz",
		json_pack("[I, I]", (json_int_t)p->kind.khz[0], (json_int_t)p->kind.khz[1]));
	json_object_set_new(line, "placements", names);
	json_object_set_new(line, "levels", levels);
	return line;
}

/* --- Reading ---------------------------------------------------------------------------------- */

/* The brand is for the reader. */
static bool is_kind_of(const json_t *kind, const struct identity *here)
{
	json_t *mine = table_to_json(kind_fields, here);
	bool same = json_object_set(mine, "brand", json_object_get(kind, "brand")) == 0 &&
		    json_equal(mine, (json_t *)(uintptr_t)kind);

	json_decref(mine);
	return same;
}

/* No bound is below bound_missed(). */
static bool has_bound(const json_t *object, double upper_p)
{
	struct behind_one behind = { 0 };

	return table_from_json(object, behind_fields, &behind) == 0 && upper_p > 0 &&
	       upper_p <= 1 && upper_p >= bound_missed(behind.machines) * (1 - ROUNDING);
}

static bool take_level(const json_t *object, struct level *level)
{
	if (table_from_json(object, rung_fields, level) < 0)
		return false;
	for (int c = 0; c < CLAIMS; c++) {
		const struct claim *claim = &level->claim[c];

		if (claim->count.tears > claim->count.toggles ||
		    !has_bound(json_object_get(object, claim_name(c)), claim->upper_p))
			return false;
		level->upper_p = fmax(level->upper_p, claim->upper_p);
	}
	return true;
}

static bool take_line(const json_t *line, struct prior *prior)
{
	const json_t *levels = json_object_get(line, "levels"), *name;
	struct estimate *e = &prior->estimate;
	size_t i;

	if (table_from_json(line, prior_fields, prior) < 0 || !json_is_array(levels) ||
	    json_array_size(levels) > RUNGS_MAX ||
	    !has_bound(json_object_get(line, "window"), e->window.upper_p))
		return false;
	e->levels = (unsigned)json_array_size(levels);
	e->runs = prior->kind.runs < UINT32_MAX ? (unsigned)prior->kind.runs : UINT32_MAX;
	for (i = 0; i < e->levels; i++)
		if (!take_level(json_array_get(levels, i), &e->level[i]))
			return false;
	json_array_foreach(json_object_get(line, "placements"), i, name)
	{
		int place = placement_parse(json_is_string(name) ? json_string_value(name) : "");

		if (place >= 0)
			prior->placed[place] = true;
	}
	return prior->confidence > 0 && prior->confidence <= PRIOR_CONFIDENCE + ROUNDING;
}

/* --- The table -------------------------------------------------------------------------------- */

int prior_read(const char *path, const struct identity *here, struct prior *prior, char *why,
	       size_t size)
{
	double khz = (double)here->tsc_khz;
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;
	ssize_t length;
	int ret = 0;

	snprintf(why, size, "it cannot be read: %s", file ? "" : strerror(errno));
	if (!file)
		return -errno;
	while (ret == 0 && (length = getline(&text, &room, file)) > 0) {
		json_t *line = json_loadb(text, (size_t)length, 0, NULL);
		const json_t *kind = json_object_get(line, "kind");
		const json_t *range = json_object_get(line, "tsc_khz");
		double low = (double)json_integer_value(json_array_get(range, 0));
		double high = (double)json_integer_value(json_array_get(range, 1));

		*prior = (struct prior){ 0 };
		if (strcmp(json_text_of(line, "type"), "prior") != 0 || !json_is_object(kind)) {
			snprintf(why, size, "it is no table of tmax fleet export");
			ret = -EINVAL;
		} else if (!is_kind_of(kind, here)) {
			ret = 0;
		} else if (!(low > 0 && khz >= low * (1 - SAME_RATE) &&
			     khz <= high * (1 + SAME_RATE))) {
			/* Waits are ticks: at another rate they are other times. */
			snprintf(why, size,
				 "the machines of this kind in it have another rate of the TSC, or "
				 "it is unknown");
			ret = -ENODATA;
		} else if (!take_line(line, prior)) {
			snprintf(why, size, "its line of this kind of machine contradicts itself");
			ret = -EINVAL;
		} else {
			ret = 1;
		}
		json_decref(line);
	}
	if (ret == 0) {
		snprintf(
			why, size,
			"it has no machines like this one: %.15s family %u, model %u, stepping %u, "
			"microcode %.23s, hypervisor %.15s, %u socket%s, %u core%s, %u CPU%s",
			here->vendor, here->family, here->model, here->stepping, here->microcode,
			here->hypervisor, here->sockets, S(here->sockets), here->cores,
			S(here->cores), here->cpus, S(here->cpus));
		ret = ferror(file) ? -EIO : -ENODATA;
	}
	free(text);
	fclose(file);
	return ret > 0 ? 0 : ret;
}
