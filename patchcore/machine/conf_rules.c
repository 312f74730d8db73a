/* SPDX-License-Identifier: MIT */
#include "patchcore/machine/machine_conf.h"

#include <stdio.h>

#define LN2	 0.69314718055994530942
#define TERMS	 20
#define ROUNDING 1e-9 /* what printing, reading and reckoning may have changed, relative */

/*
 * -ln(1 - p) for 0 < p < 1, without libm: by the series of artanh, which converges fast for
 * p up to one half; 1 - p is doubled until it is there.
 */
static double minus_log(double p)
{
	double halvings = 0, rest = 1 - p, y, power, sum = 0;

	while (p > 0.5) {
		rest *= 2;
		p = 1 - rest;
		halvings++;
	}
	y = power = p / (2 - p);
	for (int i = 0; i < TERMS; i++) {
		sum += power / (2 * i + 1);
		power *= y * y;
	}
	return halvings * LN2 + 2 * sum;
}

/*
 * May a rate be bounded by upper_p after so many tears in so many toggles? No tear: not
 * below Clopper-Pearson's bound, where (1 - upper_p) ^ toggles is 1 - confidence. With tears
 * it is not below that either, nor below the rate that was seen; the exact bound is higher
 * still, but these two need no special functions. Nothing toggled: nothing known.
 */
static bool supports(double toggles, double tears, double confidence, double upper_p)
{
	if (upper_p == 1)
		return true;
	return tears < toggles && upper_p >= tears / toggles * (1 - ROUNDING) &&
	       toggles * minus_log(upper_p) >= minus_log(confidence) * (1 - ROUNDING);
}

static bool verdict_is_honoured(const struct machine_conf *c)
{
	return !c->usable || c->verdict == MACHINE_CONF_PASS || c->verdict == MACHINE_CONF_UNTOLD;
}

static bool has_level(const struct machine_conf *c)
{
	return !c->usable || c->levels > 0;
}

static bool window_bound(const struct machine_conf *c)
{
	return c->window_confidence == 0 ||
	       supports((double)c->window_toggles, 0, c->window_confidence, c->window_p);
}

static bool machine_has_cpus(const struct machine_conf *c)
{
	return !c->identity.cpus || cpus_count(&c->cpus) <= c->identity.cpus;
}

static const struct {
	bool (*holds)(const struct machine_conf *conf);
	const char *broken;
} rules[] = {
	{ verdict_is_honoured, "[wait] is usable, but the verdict is not pass" },
	{ has_level, "[wait] is usable, but there is no level" },
	{ window_bound, "[window] upper_p is lower than its toggles and confidence allow" },
	{ machine_has_cpus, "[scope] cpus names more CPUs than [identity] has" },
};

/* --- Of each level ---------------------------------------------------------------------------- */

static bool toggled(const struct machine_conf *c, unsigned i)
{
	return !c->usable || c->level[i].line.toggles > 0 || c->level[i].page.toggles > 0;
}

/* A stretched wait of 0 lasts as long as the stores call for. */
static bool level_waits(const struct machine_conf *c, unsigned i)
{
	const struct machine_conf_level *level = &c->level[i];

	return !c->usable || level->waits.stretch > 0 ||
	       (level->waits.first > 0 && level->waits.second > 0);
}

static bool bounded(const struct machine_conf *c, const struct machine_conf_bound *bound)
{
	return supports((double)bound->toggles, (double)bound->tears, c->confidence,
			bound->upper_p);
}

static bool line_bound(const struct machine_conf *c, unsigned i)
{
	return bounded(c, &c->level[i].line);
}

static bool page_bound(const struct machine_conf *c, unsigned i)
{
	return bounded(c, &c->level[i].page);
}

/* Bounds may rise and fall as they were seen to; what a level costs may not. */
static bool in_order(const struct machine_conf *c, unsigned i)
{
	const struct machine_conf_level *level = &c->level[i];

	for (const struct machine_conf_level *before = c->level; before < level; before++)
		if (before->waits.stretch == level->waits.stretch &&
		    (before->waits.first > level->waits.first ||
		     before->waits.second > level->waits.second))
			return false;
	return true;
}

#define LOWER " is lower than its toggles, tears and confidence allow"

/* Up to schema 3 the one level is [wait]. */
static const struct {
	bool (*holds)(const struct machine_conf *conf, unsigned level);
	const char *broken, *in_wait;
} level_rules[] = {
	{ toggled, "may be waited by, but no toggles are behind it",
	  "is usable, but no toggles are behind it" },
	{ level_waits, "may be waited by, but does not wait", "is usable, but does not wait" },
	{ line_bound, "line_p" LOWER, "upper_p" LOWER },
	{ page_bound, "page_p" LOWER, "upper_p" LOWER },
	{ in_order, "waits for less than one before it, at the same stretch", "" },
};

#define RULES	    (sizeof(rules) / sizeof(rules[0]))
#define LEVEL_RULES (sizeof(level_rules) / sizeof(level_rules[0]))

static void check_each(unsigned rule, const struct machine_conf *conf, char *why, size_t size)
{
	for (unsigned i = 0; i < machine_conf_all_levels(conf); i++) {
		if (level_rules[rule].holds(conf, i))
			continue;
		if (conf->schema < 4)
			snprintf(why, size, "[wait] %s", level_rules[rule].in_wait);
		else
			snprintf(why, size, "[level %u] %s", i + 1, level_rules[rule].broken);
		return;
	}
}

bool conf_rule(unsigned i, const struct machine_conf *conf, char *why, size_t size)
{
	if (i >= RULES + LEVEL_RULES)
		return false;
	why[0] = '\0';
	if (i >= RULES)
		check_each(i - RULES, conf, why, size);
	else if (!rules[i].holds(conf))
		snprintf(why, size, "%s", rules[i].broken);
	return true;
}
