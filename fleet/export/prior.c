/* SPDX-License-Identifier: MIT */
#include "fleet/export/prior.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "fleet/judge/ladder_of.h"

#define SAME_RATE 0.01 /* as far as TSCs of one machine may differ between boots */
#define ROUNDING  1e-9

/* --- Which line ------------------------------------------------------------------------------- */

static bool is_text(const json_t *kind, const char *name, const char *here)
{
	const char *text = json_string_value(json_object_get(kind, name));

	return text && strcmp(text, here) == 0;
}

static bool is_number(const json_t *kind, const char *name, unsigned here)
{
	const json_t *number = json_object_get(kind, name);

	return json_is_integer(number) && json_integer_value(number) == here;
}

static bool is_kind_of(const json_t *kind, const struct identity *here)
{
	return is_text(kind, "vendor", here->vendor) && is_number(kind, "family", here->family) &&
	       is_number(kind, "model", here->model) &&
	       is_number(kind, "stepping", here->stepping) &&
	       is_text(kind, "microcode", here->microcode) &&
	       is_text(kind, "hypervisor", here->hypervisor) &&
	       is_number(kind, "sockets", here->sockets) && is_number(kind, "cores", here->cores) &&
	       is_number(kind, "cpus", here->cpus);
}

/* --- Its numbers ------------------------------------------------------------------------------ */

static bool take_count(const json_t *object, const char *name, uint64_t *count)
{
	const json_t *number = json_object_get(object, name);
	json_int_t value = json_integer_value(number);

	*count = (uint64_t)value;
	return json_is_integer(number) && value >= 0;
}

/* A bound, of which what its machines do not exclude is a part. */
static bool take_bound(const json_t *object, double *upper_p)
{
	uint64_t machines;

	*upper_p = json_number_value(json_object_get(object, "upper_p"));
	return take_count(object, "machines", &machines) && *upper_p > 0 && *upper_p <= 1 &&
	       *upper_p >= machines_missed(machines) * (1 - ROUNDING);
}

static bool take_claim(const json_t *object, struct claim *claim)
{
	return take_count(object, "toggles", &claim->count.toggles) &&
	       take_count(object, "tears", &claim->count.tears) &&
	       claim->count.tears <= claim->count.toggles && take_bound(object, &claim->upper_p);
}

static bool take_level(const json_t *object, struct level *level)
{
	uint64_t ticks;

	if (!take_count(object, "first", &level->rung.first) ||
	    !take_count(object, "second", &level->rung.second) ||
	    !take_count(object, "stretch", &level->rung.stretch) ||
	    !take_count(object, "ticks", &ticks) ||
	    !take_claim(json_object_get(object, "line"), &level->claim[CLAIM_LINE]) ||
	    !take_claim(json_object_get(object, "page"), &level->claim[CLAIM_PAGE]))
		return false;
	level->ticks = (double)ticks;
	level->upper_p = fmax(level->claim[CLAIM_LINE].upper_p, level->claim[CLAIM_PAGE].upper_p);
	return true;
}

static bool take_line(const json_t *line, struct prior *prior)
{
	const json_t *levels = json_object_get(line, "levels"),
		     *places = json_object_get(line, "placements");
	const json_t *window = json_object_get(line, "window");
	struct estimate *e = &prior->estimate;
	uint64_t runs, ticks, measured, bytes;

	if (!json_is_array(levels) || json_array_size(levels) > RUNGS_MAX ||
	    !take_count(line, "machines", &prior->machines) || !take_count(line, "runs", &runs) ||
	    !take_count(line, "to", &measured) || !take_count(line, "membarrier_ticks", &ticks) ||
	    !take_count(window, "bytes", &bytes) || bytes > 64 ||
	    !take_count(window, "toggles", &e->window.toggles) ||
	    !take_bound(window, &e->window.upper_p))
		return false;
	e->window.bytes = (unsigned)bytes;
	e->levels = (unsigned)json_array_size(levels);
	e->runs = runs < UINT32_MAX ? (unsigned)runs : UINT32_MAX;
	e->long_run = json_is_true(json_object_get(line, "long_run"));
	e->membarrier_ticks = (double)ticks;
	prior->measured = (int64_t)measured;
	prior->confidence = json_number_value(json_object_get(line, "confidence"));
	for (unsigned i = 0; i < e->levels; i++)
		if (!take_level(json_array_get(levels, i), &e->level[i]))
			return false;
	for (size_t i = 0; i < json_array_size(places); i++) {
		const char *name = json_string_value(json_array_get(places, i));
		int place = name ? placement_parse(name) : -EINVAL;

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
		if (!is_text(line, "type", "prior") || !json_is_object(kind)) {
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

void prior_decide(struct prior *prior, double require_p)
{
	struct estimate *e = &prior->estimate;
	double least = 1;
	int best;

	e->require_p = require_p;
	best = estimate_best(e, -1, require_p);
	for (unsigned i = 0; i < e->levels; i++)
		least = fmin(least, e->level[i].upper_p);
	e->verdict = best >= 0 ? VERDICT_PASS : VERDICT_INCONCLUSIVE;
	if (best >= 0)
		snprintf(e->reason, sizeof(e->reason),
			 "by a fleet: waits of %s keep tears below %s per toggle",
			 WAITS(&e->level[best].rung), NUMBER(e->level[best].upper_p));
	else
		snprintf(e->reason, sizeof(e->reason),
			 "by a fleet: the best bound is %s per toggle, %s is required",
			 NUMBER(least), NUMBER(require_p));
}
