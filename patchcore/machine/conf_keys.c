/* SPDX-License-Identifier: MIT */
#include "patchcore/machine/conf_keys.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

bool conf_number(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0' && *value >= min && *value <= max;
}

static bool read_double(const char *text, double above, double upto, double *value)
{
	locale_t c;
	char *end;

	if (*text == '\0' || strspn(text, "0123456789.e+-") != strlen(text))
		return false;
	/* The program may write decimal commas; the file does not. */
	c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	if (c == (locale_t)0)
		return false;
	*value = strtod_l(text, &end, c);
	freelocale(c);
	return *end == '\0' && *value > above && *value <= upto;
}

static bool read_schema(struct machine_conf *conf, const char *value)
{
	uint64_t schema;

	if (!conf_number(value, MACHINE_CONF_OLDEST, MACHINE_CONF_SCHEMA, &schema))
		return false;
	conf->schema = (unsigned)schema;
	return true;
}

static bool read_verdict(struct machine_conf *conf, const char *value)
{
	static const char *const names[] = {
		[MACHINE_CONF_PASS] = "pass",
		[MACHINE_CONF_FAIL] = "fail",
		[MACHINE_CONF_INCONCLUSIVE] = "inconclusive",
	};

	for (unsigned i = MACHINE_CONF_PASS; i <= MACHINE_CONF_INCONCLUSIVE; i++)
		if (strcmp(value, names[i]) == 0)
			conf->verdict = (enum machine_conf_verdict)i;
	return conf->verdict != MACHINE_CONF_UNTOLD;
}

static bool read_cpus(struct machine_conf *conf, const char *value)
{
	return cpus_parse(&conf->cpus, value, strlen(value)) == 0;
}

static bool read_usable(struct machine_conf *conf, const char *value)
{
	conf->usable = strcmp(value, "yes") == 0;
	return conf->usable || strcmp(value, "no") == 0;
}

static bool read_evidence(struct machine_conf *conf, const char *value)
{
	conf->long_run = strcmp(value, "long-run") == 0;
	return conf->long_run || strcmp(value, "this-run") == 0;
}

static bool read_runs(struct machine_conf *conf, const char *value)
{
	return conf_number(value, 1, UINT64_MAX, &conf->runs);
}

static bool read_measured(struct machine_conf *conf, const char *value)
{
	return conf_number(value, 0, MACHINE_CONF_TIME, &conf->measured);
}

static bool read_number(const char *value, unsigned *number)
{
	uint64_t levels;

	if (!conf_number(value, 0, MACHINE_CONF_LEVELS, &levels))
		return false;
	*number = (unsigned)levels;
	return true;
}

static bool read_membarrier_ticks(struct machine_conf *conf, const char *value)
{
	return conf_number(value, 0, MACHINE_CONF_COST, &conf->membarrier_ticks);
}

/* A bound of less confidence is refused; calibrate writes 0.95. */
static bool read_sureness(const char *value, double *confidence)
{
	return read_double(value, 0, 1, confidence) && *confidence >= 0.9 && *confidence < 1;
}

static bool read_confidence(struct machine_conf *conf, const char *value)
{
	return read_sureness(value, &conf->confidence);
}

static bool read_window(struct machine_conf *conf, const char *value)
{
	uint64_t window;

	if (!conf_number(value, 8, 64, &window) || (window & (window - 1)) != 0)
		return false;
	conf->window = (unsigned)window;
	return true;
}

static bool read_window_p(struct machine_conf *conf, const char *value)
{
	return read_double(value, 0, 1, &conf->window_p);
}

static bool read_window_toggles(struct machine_conf *conf, const char *value)
{
	return conf_number(value, 0, UINT64_MAX, &conf->window_toggles);
}

static bool read_window_confidence(struct machine_conf *conf, const char *value)
{
	return read_sureness(value, &conf->window_confidence);
}

static bool read_first_wait(struct machine_conf_level *level, const char *value)
{
	return conf_number(value, 0, MACHINE_CONF_WAIT, &level->first_wait);
}

static bool read_second_wait(struct machine_conf_level *level, const char *value)
{
	return conf_number(value, 0, MACHINE_CONF_WAIT, &level->second_wait);
}

static bool read_stretch(struct machine_conf_level *level, const char *value)
{
	return conf_number(value, 0, MACHINE_CONF_STRETCH, &level->stretch);
}

static bool read_ticks(struct machine_conf_level *level, const char *value)
{
	return conf_number(value, 0, MACHINE_CONF_COST, &level->ticks);
}

static bool read_line_toggles(struct machine_conf_level *level, const char *value)
{
	return conf_number(value, 0, UINT64_MAX, &level->line.toggles);
}

static bool read_line_tears(struct machine_conf_level *level, const char *value)
{
	return conf_number(value, 0, UINT64_MAX, &level->line.tears);
}

static bool read_line_p(struct machine_conf_level *level, const char *value)
{
	return read_double(value, 0, 1, &level->line.upper_p);
}

static bool read_page_toggles(struct machine_conf_level *level, const char *value)
{
	return conf_number(value, 0, UINT64_MAX, &level->page.toggles);
}

static bool read_page_tears(struct machine_conf_level *level, const char *value)
{
	return conf_number(value, 0, UINT64_MAX, &level->page.tears);
}

static bool read_page_p(struct machine_conf_level *level, const char *value)
{
	return read_double(value, 0, 1, &level->page.upper_p);
}

static bool read_levels(struct machine_conf *conf, const char *value)
{
	return read_number(value, &conf->levels);
}

static bool read_long_levels(struct machine_conf *conf, const char *value)
{
	return read_number(value, &conf->long_levels);
}

#define NEVER (MACHINE_CONF_SCHEMA + 1)

/* clang-format off */
const struct conf_key conf_keys[] = {
	{ "tmax", "schema", read_schema, 2, false },
	{ "tmax", "verdict", read_verdict, 3, false },
	{ "scope", "cpus", read_cpus, 3, true },
	{ "scope", "evidence", read_evidence, 4, false },
	{ "scope", "runs", read_runs, 4, false },
	{ "scope", "measured", read_measured, 4, false },
	{ "wait", "usable", read_usable, 2, false },
	{ "wait", "confidence", read_confidence, 2, false },
	{ "wait", "levels", read_levels, 4, false },
	{ "wait", "long_levels", read_long_levels, NEVER, false },
	{ "wait", "membarrier_ticks", read_membarrier_ticks, 4, false },
	{ "window", "bytes", read_window, 2, false },
	{ "window", "toggles", read_window_toggles, 3, false },
	{ "window", "upper_p", read_window_p, 2, false },
	{ "window", "confidence", read_window_confidence, 3, false },
};

const struct conf_level_key conf_level_keys[] = {
	{ "first", read_first_wait, "first", 2 },
	{ "second", read_second_wait, "second", 2 },
	{ "stretch", read_stretch, "stretch", 2 },
	{ "ticks", read_ticks, NULL, 0 },
	{ "line_toggles", read_line_toggles, "toggles", 2 },
	{ "line_tears", read_line_tears, "tears", 3 },
	{ "line_p", read_line_p, "upper_p", 2 },
	{ "page_toggles", read_page_toggles, NULL, 0 },
	{ "page_tears", read_page_tears, NULL, 0 },
	{ "page_p", read_page_p, NULL, 0 },
};
/* clang-format on */

_Static_assert(sizeof(conf_keys) / sizeof(conf_keys[0]) == CONF_KEYS, "all are counted");
_Static_assert(sizeof(conf_level_keys) / sizeof(conf_level_keys[0]) == CONF_LEVEL_KEYS,
	       "all are counted");
