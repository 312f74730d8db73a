/* SPDX-License-Identifier: MIT */
/*
 * A machine.conf to test with, as lines that a test may change, drop or repeat
 * before they become text.
 */
#ifndef PATCHCORE_TESTS_CONF_SAMPLE_H
#define PATCHCORE_TESTS_CONF_SAMPLE_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "patchcore/machine/machine_conf.h"

#define CONF_TEXT 16384

struct conf_line {
	char section[32];
	char name[24];
	char value[256];
};

struct conf_lines {
	struct conf_line line[48 + 10 * MACHINE_CONF_LEVELS];
	size_t count;
};

#define CONF_BOUND(p)                                                                              \
	{                                                                                          \
		.toggles = UINT64_C(100000000000000), .upper_p = (p)                               \
	}

/* A usable calibration of this very machine, on all CPUs that this process may use. */
static inline struct machine_conf conf_here(void)
{
	struct machine_conf conf = {
		.schema = MACHINE_CONF_SCHEMA,
		.verdict = MACHINE_CONF_PASS,
		.runs = 1,
		.usable = true,
		.confidence = 0.95,
		.levels = 1,
		.level = { {
			.waits.first = 600,
			.waits.second = 700,
			.waits.stretch = 4,
			.line = CONF_BOUND(1e-10),
			.page = CONF_BOUND(1e-10),
		} },
		.window = 8,
		.window_toggles = UINT64_C(100000000000000),
		.window_p = 1,
		.window_confidence = 0.95,
	};

	if (identity_read(&conf.identity) < 0 || cpus_allowed(&conf.cpus) < 0)
		abort();
	return conf;
}

/* Another level behind the last, with waits so long. */
static inline struct machine_conf_level *conf_add_level(struct machine_conf *conf, uint64_t wait,
							double line_p, double page_p)
{
	struct machine_conf_level *level = &conf->level[conf->levels++];

	if (conf->levels > MACHINE_CONF_LEVELS)
		abort();
	*level = (struct machine_conf_level){
		.waits.first = wait,
		.waits.second = wait,
		.waits.stretch = 4,
		.line = CONF_BOUND(line_p),
		.page = CONF_BOUND(page_p),
	};
	return level;
}

static inline void conf_add(struct conf_lines *lines, const char *section, const char *name,
			    const char *value)
{
	struct conf_line *line = &lines->line[lines->count++];

	if (lines->count > sizeof(lines->line) / sizeof(*line))
		abort();
	snprintf(line->section, sizeof(line->section), "%s", section);
	snprintf(line->name, sizeof(line->name), "%s", name);
	snprintf(line->value, sizeof(line->value), "%s", value);
}

static inline void conf_add_number(struct conf_lines *lines, const char *section, const char *name,
				   uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	conf_add(lines, section, name, text);
}

static inline void conf_add_double(struct conf_lines *lines, const char *section, const char *name,
				   double value)
{
	char text[40];

	snprintf(text, sizeof(text), "%.17g", value);
	conf_add(lines, section, name, text);
}

static inline void conf_add_bound(struct conf_lines *lines, const char *section, const char *prefix,
				  const struct machine_conf_bound *bound)
{
	char name[24];

	snprintf(name, sizeof(name), "%stoggles", prefix);
	conf_add_number(lines, section, name, bound->toggles);
	snprintf(name, sizeof(name), "%stears", prefix);
	conf_add_number(lines, section, name, bound->tears);
	snprintf(name, sizeof(name), "%sp", prefix);
	conf_add_double(lines, section, name, bound->upper_p);
}

static inline void conf_add_waits(struct conf_lines *lines, const char *section,
				  const struct machine_conf_level *level)
{
	conf_add_number(lines, section, "first", level->waits.first);
	conf_add_number(lines, section, "second", level->waits.second);
	conf_add_number(lines, section, "stretch", level->waits.stretch);
}

static inline void conf_add_levels(struct conf_lines *lines, const struct machine_conf *conf)
{
	char section[32];

	for (unsigned i = 0; i < machine_conf_all_levels(conf); i++) {
		const struct machine_conf_level *level = &conf->level[i];

		snprintf(section, sizeof(section), "%s %u", level->rest ? "rested" : "level",
			 i + 1);
		conf_add_waits(lines, section, level);
		if (level->rest)
			conf_add_number(lines, section, "rest", level->rest);
		conf_add_number(lines, section, "ticks", level->ticks);
		conf_add_bound(lines, section, "line_", &level->line);
		conf_add_bound(lines, section, "page_", &level->page);
	}
}

static const char *const conf_verdicts[] = { "pass", "fail", "inconclusive" };

static inline struct conf_lines conf_lines(const struct machine_conf *conf)
{
	struct conf_lines lines = { .count = 0 };
	const char *name;
	char value[256];

	conf_add_number(&lines, "tmax", "schema", conf->schema);
	conf_add(&lines, "tmax", "verdict", conf_verdicts[conf->verdict]);
	if (cpus_print(&conf->cpus, value, sizeof(value)) >= sizeof(value))
		abort();
	conf_add(&lines, "scope", "cpus", value);
	conf_add(&lines, "scope", "evidence", conf->long_run ? "long-run" : "this-run");
	conf_add_number(&lines, "scope", "runs", conf->runs);
	conf_add_number(&lines, "scope", "measured", conf->measured);
	for (unsigned i = 0; identity_field(&conf->identity, i, &name, value, sizeof(value)); i++)
		conf_add(&lines, "identity", name, value);
	conf_add(&lines, "wait", "usable", conf->usable ? "yes" : "no");
	conf_add_double(&lines, "wait", "confidence", conf->confidence);
	conf_add_number(&lines, "wait", "levels", conf->levels);
	if (conf->long_levels)
		conf_add_number(&lines, "wait", "long_levels", conf->long_levels);
	if (conf->rested)
		conf_add_number(&lines, "wait", "rested_levels", conf->rested);
	conf_add_number(&lines, "wait", "membarrier_ticks", conf->membarrier_ticks);
	conf_add_levels(&lines, conf);
	conf_add_number(&lines, "window", "bytes", conf->window);
	conf_add_number(&lines, "window", "toggles", conf->window_toggles);
	if (conf->window_runs)
		conf_add_number(&lines, "window", "runs", conf->window_runs);
	conf_add_double(&lines, "window", "upper_p", conf->window_p);
	conf_add_double(&lines, "window", "confidence", conf->window_confidence);
	return lines;
}

static inline struct conf_line *conf_line(struct conf_lines *lines, const char *section,
					  const char *name)
{
	for (size_t i = 0; i < lines->count; i++)
		if (strcmp(lines->line[i].section, section) == 0 &&
		    strcmp(lines->line[i].name, name) == 0)
			return &lines->line[i];
	abort();
}

static inline void conf_set(struct conf_lines *lines, const char *section, const char *name,
			    const char *value)
{
	struct conf_line *line = conf_line(lines, section, name);

	snprintf(line->value, sizeof(line->value), "%s", value);
}

static inline void conf_drop(struct conf_lines *lines, size_t i)
{
	lines->count--;
	memmove(&lines->line[i], &lines->line[i + 1], (lines->count - i) * sizeof(lines->line[0]));
}

/* Returns the length of the text, which fits. */
static inline size_t conf_text(const struct conf_lines *lines, char text[CONF_TEXT])
{
	const char *section = "";
	int n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < lines->count; i++) {
		const struct conf_line *line = &lines->line[i];

		if (strcmp(section, line->section) != 0)
			n += snprintf(text + n, CONF_TEXT - (size_t)n, "[%s]\n", line->section);
		n += snprintf(text + n, CONF_TEXT - (size_t)n, "%s = %s\n", line->name,
			      line->value);
		section = line->section;
		if (n >= CONF_TEXT)
			abort();
	}
	return (size_t)n;
}

static inline bool conf_same_identity(const struct identity *a, const struct identity *b)
{
	const char *name;
	char left[128], right[128];

	for (unsigned i = 0; identity_field(a, i, &name, left, sizeof(left)); i++) {
		identity_field(b, i, &name, right, sizeof(right));
		if (strcmp(left, right) != 0)
			return false;
	}
	return true;
}

static inline bool conf_same_bound(const struct machine_conf_bound *a,
				   const struct machine_conf_bound *b)
{
	return a->toggles == b->toggles && a->tears == b->tears && a->upper_p == b->upper_p;
}

static inline bool conf_same_levels(const struct machine_conf *a, const struct machine_conf *b)
{
	bool same = a->levels == b->levels && a->long_levels == b->long_levels &&
		    a->rested == b->rested;

	for (unsigned i = 0; same && i < machine_conf_all_levels(a); i++) {
		const struct machine_conf_level *left = &a->level[i], *right = &b->level[i];

		same = left->waits.first == right->waits.first &&
		       left->waits.second == right->waits.second &&
		       left->waits.stretch == right->waits.stretch && left->rest == right->rest &&
		       left->ticks == right->ticks && conf_same_bound(&left->line, &right->line) &&
		       conf_same_bound(&left->page, &right->page);
	}
	return same;
}

static inline bool conf_same(const struct machine_conf *a, const struct machine_conf *b)
{
	return conf_same_identity(&a->identity, &b->identity) && a->schema == b->schema &&
	       a->verdict == b->verdict && memcmp(&a->cpus, &b->cpus, sizeof(a->cpus)) == 0 &&
	       a->long_run == b->long_run && a->runs == b->runs && a->measured == b->measured &&
	       a->usable == b->usable && a->confidence == b->confidence &&
	       a->membarrier_ticks == b->membarrier_ticks && conf_same_levels(a, b) &&
	       a->window == b->window && a->window_toggles == b->window_toggles &&
	       a->window_runs == b->window_runs && a->window_p == b->window_p &&
	       a->window_confidence == b->window_confidence;
}

/*
 * A file without a name, which ends with the process. Returns its path. A memfd is born with
 * mode 0777, and what others may write to is refused.
 */
static inline const char *conf_file(const void *text, size_t size)
{
	static char path[64];
	int fd = memfd_create("machine.conf", MFD_CLOEXEC);

	if (fd < 0 || fchmod(fd, 0600) < 0 || write(fd, text, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return path;
}

/* Make it the config that the library finds. */
static inline void conf_use_lines(const struct conf_lines *lines)
{
	char text[CONF_TEXT];
	size_t size = conf_text(lines, text);

	setenv("PATCHCORE_MACHINE_CONF", conf_file(text, size), 1);
}

static inline void conf_use(const struct machine_conf *conf)
{
	struct conf_lines lines = conf_lines(conf);

	conf_use_lines(&lines);
}

/* Let the library find no config, also where this machine has one. */
static inline void conf_use_none(void)
{
	setenv("PATCHCORE_MACHINE_CONF", "/dev/null/none", 1);
}

#endif
