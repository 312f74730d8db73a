/* SPDX-License-Identifier: MIT */
#include "patchcore/machine/machine_conf.h"

#include <math.h>
#include <stdio.h>

#define ROUNDING 1e-9 /* what printing, reading and reckoning may have changed, relative */

/*
 * May a rate be bounded by upper_p after so many tears in so many toggles? No tear: not
 * below Clopper-Pearson's bound, where (1 - upper_p) ^ toggles is 1 - confidence. With tears
 * it is not below that either, nor below the rate that was seen; the exact bound is higher
 * still, but these two need no special functions. Nothing toggled: nothing known.
 */
static bool is_supported(const struct machine_conf_bound *bound, double confidence)
{
	double toggles = (double)bound->toggles, tears = (double)bound->tears;

	if (bound->upper_p == 1)
		return true;
	return tears < toggles && bound->upper_p >= tears / toggles * (1 - ROUNDING) &&
	       toggles * log1p(-bound->upper_p) <= log1p(-confidence) * (1 - ROUNDING);
}

#define LEVEL_RULES 4 /* number of the first rule that holds for each level */
#define RULES	    10
#define LOWER	    " is lower than its toggles, tears and confidence allow"

static const char *find_conf_flaw(unsigned rule, const struct machine_conf *c)
{
	const struct machine_conf_bound window = { .toggles = c->window_toggles,
						   .upper_p = c->window_p };

	if (rule == 0 && c->usable && c->verdict != MACHINE_CONF_PASS)
		return "[wait] is usable, but the verdict is not pass";
	if (rule == 1 && c->usable && !c->levels)
		return "[wait] is usable, but there is no level";
	if (rule == 2 && !is_supported(&window, c->window_confidence))
		return "[window] upper_p is lower than its toggles and confidence allow";
	if (rule == 3 && c->identity.cpus && cpus_count(&c->cpus) > c->identity.cpus)
		return "[scope] cpus names more CPUs than [identity] has";
	return NULL;
}

static const char *find_level_flaw(unsigned rule, const struct machine_conf *c,
				   const struct machine_conf_level *level)
{
	const struct machine_conf_level *before = rule == 9 ? c->level : level;
	const struct waits *waits = &level->waits;

	if (rule == 4 && c->usable && !level->line.toggles && !level->page.toggles)
		return "may be waited by, but no toggles are behind it";
	/* A stretched wait of 0 lasts as long as the stores call for. */
	if (rule == 5 && c->usable && !waits->stretch && (!waits->first || !waits->second))
		return "may be waited by, but does not wait";
	if (rule == 6 && !is_supported(&level->line, c->confidence))
		return "line_p" LOWER;
	if (rule == 7 && !is_supported(&level->page, c->confidence))
		return "page_p" LOWER;
	if (rule == 8 && (level >= c->level + c->levels + c->long_levels) != (level->rest > 0))
		return "has a rest where it is no rested level, or is one without a rest";
	/* Bounds may rise and fall as they were seen to; what a level costs may not. */
	for (; before < level; before++)
		if (before->waits.stretch == waits->stretch && before->rest == level->rest &&
		    (before->waits.first > waits->first || before->waits.second > waits->second))
			return "waits for less than one before it, at the same stretch";
	return NULL;
}

bool conf_rule(unsigned i, const struct machine_conf *conf, char *why, size_t size)
{
	unsigned levels = i < LEVEL_RULES ? 0 : machine_conf_all_levels(conf);
	const char *broken = find_conf_flaw(i, conf);

	snprintf(why, size, "%s", broken ? broken : "");
	for (unsigned level = 0; level < levels && !broken; level++) {
		broken = find_level_flaw(i, conf, &conf->level[level]);
		if (broken)
			snprintf(why, size, "[level %u] %s", level + 1, broken);
	}
	return i < RULES;
}
