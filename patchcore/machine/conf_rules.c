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
static bool supports(const struct machine_conf_bound *bound, double confidence)
{
	double toggles = (double)bound->toggles, tears = (double)bound->tears;

	if (bound->upper_p == 1)
		return true;
	return tears < toggles && bound->upper_p >= tears / toggles * (1 - ROUNDING) &&
	       toggles * log1p(-bound->upper_p) <= log1p(-confidence) * (1 - ROUNDING);
}

enum rule {
	VERDICT,
	SOME_LEVEL,
	WINDOW,
	CPUS,
	TOGGLED, /* from here on: of each level */
	WAITS,
	LINE,
	PAGE,
	ORDER,
	RULES
};

static bool rule_holds(enum rule rule, const struct machine_conf *c,
		       const struct machine_conf_level *level)
{
	switch (rule) {
	case VERDICT:
		return !c->usable || c->verdict == MACHINE_CONF_PASS;
	case SOME_LEVEL:
		return !c->usable || c->levels > 0;
	case WINDOW:
		return supports(&(struct machine_conf_bound){ c->window_toggles, 0, c->window_p },
				c->window_confidence);
	case CPUS:
		return !c->identity.cpus || cpus_count(&c->cpus) <= c->identity.cpus;
	case TOGGLED:
		return !c->usable || level->line.toggles > 0 || level->page.toggles > 0;
	case WAITS:
		/* A stretched wait of 0 lasts as long as the stores call for. */
		return !c->usable || level->waits.stretch > 0 ||
		       (level->waits.first > 0 && level->waits.second > 0);
	case LINE:
		return supports(&level->line, c->confidence);
	case PAGE:
		return supports(&level->page, c->confidence);
	default:
		/* Bounds may rise and fall as they were seen to; what a level costs may not. */
		for (const struct machine_conf_level *before = c->level; before < level; before++)
			if (before->waits.stretch == level->waits.stretch &&
			    (before->waits.first > level->waits.first ||
			     before->waits.second > level->waits.second))
				return false;
		return true;
	}
}

#define LOWER " is lower than its toggles, tears and confidence allow"

static const char *const broken[RULES] = {
	[VERDICT] = "[wait] is usable, but the verdict is not pass",
	[SOME_LEVEL] = "[wait] is usable, but there is no level",
	[WINDOW] = "[window] upper_p is lower than its toggles and confidence allow",
	[CPUS] = "[scope] cpus names more CPUs than [identity] has",
	[TOGGLED] = "may be waited by, but no toggles are behind it",
	[WAITS] = "may be waited by, but does not wait",
	[LINE] = "line_p" LOWER,
	[PAGE] = "page_p" LOWER,
	[ORDER] = "waits for less than one before it, at the same stretch",
};

bool conf_rule(unsigned i, const struct machine_conf *conf, char *why, size_t size)
{
	unsigned levels = i < TOGGLED ? 1 : machine_conf_all_levels(conf), level = 0;

	if (i >= RULES)
		return false;
	why[0] = '\0';
	while (level < levels && rule_holds((enum rule)i, conf, &conf->level[level]))
		level++;
	if (level == levels)
		return true;
	if (i < TOGGLED)
		snprintf(why, size, "%s", broken[i]);
	else
		snprintf(why, size, "[level %u] %s", level + 1, broken[i]);
	return true;
}
