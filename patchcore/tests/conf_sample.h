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
#include <unistd.h>

#include "patchcore/machine_conf.h"

#define CONF_TEXT 8192

struct conf_line {
	char section[32];
	char name[24];
	char value[160];
};

struct conf_lines {
	struct conf_line line[40];
	size_t count;
};

/* A usable calibration of this very machine. */
static inline struct machine_conf conf_here(void)
{
	struct machine_conf conf = {
		.usable = true,
		.first_wait = 600,
		.second_wait = 700,
		.stretch = 4,
		.toggles = 50000000,
		.upper_p = 1e-10,
		.confidence = 0.95,
		.window = 8,
		.window_p = 1,
	};

	if (identity_read(&conf.identity) < 0)
		abort();
	return conf;
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

static inline struct conf_lines conf_lines(const struct machine_conf *conf)
{
	struct conf_lines lines = { .count = 0 };
	const char *name;
	char value[128];

	conf_add_number(&lines, "tmax", "schema", MACHINE_CONF_SCHEMA);
	for (unsigned i = 0; identity_field(&conf->identity, i, &name, value, sizeof(value)); i++)
		conf_add(&lines, "identity", name, value);
	conf_add(&lines, "wait", "usable", conf->usable ? "yes" : "no");
	conf_add_number(&lines, "wait", "first", conf->first_wait);
	conf_add_number(&lines, "wait", "second", conf->second_wait);
	conf_add_number(&lines, "wait", "stretch", conf->stretch);
	conf_add_number(&lines, "wait", "toggles", conf->toggles);
	conf_add_double(&lines, "wait", "upper_p", conf->upper_p);
	conf_add_double(&lines, "wait", "confidence", conf->confidence);
	conf_add_number(&lines, "window", "bytes", conf->window);
	conf_add_double(&lines, "window", "upper_p", conf->window_p);
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

static inline bool conf_same(const struct machine_conf *a, const struct machine_conf *b)
{
	return conf_same_identity(&a->identity, &b->identity) && a->usable == b->usable &&
	       a->first_wait == b->first_wait && a->second_wait == b->second_wait &&
	       a->stretch == b->stretch && a->toggles == b->toggles && a->upper_p == b->upper_p &&
	       a->confidence == b->confidence && a->window == b->window &&
	       a->window_p == b->window_p;
}

/* A file without a name, which ends with the process. Returns its path. */
static inline const char *conf_file(const void *text, size_t size)
{
	static char path[64];
	int fd = memfd_create("machine.conf", MFD_CLOEXEC);

	if (fd < 0 || write(fd, text, size) != (ssize_t)size)
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

/* Let it find none, whatever this machine has. */
static inline void conf_use_none(void)
{
	setenv("PATCHCORE_MACHINE_CONF", "/dev/null/none", 1);
}

#endif
