/* SPDX-License-Identifier: MIT */
#include "patchcore/machine/conf_read.h"

#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "patchcore/machine/conf_keys.h"
#include "patchcore/machine/conf_open.h"
#include "patchcore/machine/conf_rules.h"

#define LEVEL_PREFIX "level "

struct parser {
	struct machine_conf *conf;
	uint32_t seen; /* bit per entry of conf_keys[] */
	uint32_t identity_seen;
	uint32_t level_seen[MACHINE_CONF_LEVELS]; /* bit per entry of conf_level_keys[] */
	struct machine_conf_level wait;		  /* the one of [wait], up to schema 3 */
	uint32_t wait_seen;
	const char *rest; /* of the text */
	const char *line; /* the present one, in the text */
	bool cut;	  /* it did not fit inih's buffer */
	char *why;
	size_t why_size;
};

static int complain(struct parser *p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(p->why, p->why_size, format, args);
	va_end(args);
	return -EINVAL;
}

static int on_identity(struct parser *p, const char *name, const char *value)
{
	struct identity none = { 0 };
	char ignored[128];
	const char *field;
	int ret;

	for (unsigned i = 0; identity_field(&none, i, &field, ignored, sizeof(ignored)); i++) {
		if (strcmp(field, name) != 0)
			continue;
		if (p->identity_seen & (1u << i))
			return complain(p, "[identity] %s stands twice", name);
		p->identity_seen |= 1u << i;
		if (p->cut)
			return complain(p, "[identity] %s is too long", name);
		ret = identity_set(&p->conf->identity, name, value);
		return ret < 0 ? complain(p, "[identity] %s has no valid value", name) : 0;
	}
	return 0;
}

/* The value of the present line as it stands in the text, without a comment. NULL: no memory. */
static char *whole_value(const struct parser *p)
{
	const char *from = p->line + strcspn(p->line, "=:\n"), *to;

	from += *from == '=' || *from == ':';
	from += strspn(from, " \t\r");
	to = from + strcspn(from, " \t\r\n");
	/* Behind it only what inih would not have given us. */
	if (to[strspn(to, " \t\r")] != '\n' && to[strspn(to, " \t\r")] != ';')
		to = from;
	return strndup(from, (size_t)(to - from));
}

static bool read_long(struct parser *p, unsigned key)
{
	char *value = whole_value(p);
	bool good = value && conf_keys[key].read(p->conf, value);

	free(value);
	return good;
}

static int on_level_key(struct parser *p, const char *section, unsigned key, const char *name,
			const char *value, struct machine_conf_level *level, uint32_t *seen)
{
	if (*seen & (1u << key))
		return complain(p, "[%s] %s stands twice", section, name);
	*seen |= 1u << key;
	if (p->cut)
		return complain(p, "[%s] %s is too long", section, name);
	if (!conf_level_keys[key].read(level, value))
		return complain(p, "[%s] %s has no valid value", section, name);
	return 0;
}

/* The number has one spelling, so that no level stands twice unnoticed. */
static int on_level(struct parser *p, const char *section, const char *name, const char *value)
{
	const char *number = section + strlen(LEVEL_PREFIX);
	uint64_t n;

	if (number[0] == '0' || !conf_number(number, 1, MACHINE_CONF_LEVELS, &n))
		return complain(p, "a section [" LEVEL_PREFIX "...] is none of 1 to %d",
				MACHINE_CONF_LEVELS);
	for (unsigned i = 0; i < CONF_LEVEL_KEYS; i++)
		if (strcmp(conf_level_keys[i].name, name) == 0)
			return on_level_key(p, section, i, name, value, &p->conf->level[n - 1],
					    &p->level_seen[n - 1]);
	return 0;
}

static int on_wait(struct parser *p, const char *name, const char *value)
{
	for (unsigned i = 0; i < CONF_LEVEL_KEYS; i++)
		if (conf_level_keys[i].in_wait && strcmp(conf_level_keys[i].in_wait, name) == 0)
			return on_level_key(p, "wait", i, name, value, &p->wait, &p->wait_seen);
	return 0;
}

static int on_key(struct parser *p, const char *section, const char *name, const char *value)
{
	for (unsigned i = 0; i < CONF_KEYS; i++) {
		if (strcmp(conf_keys[i].section, section) != 0 ||
		    strcmp(conf_keys[i].name, name) != 0)
			continue;
		if (p->seen & (1u << i))
			return complain(p, "[%s] %s stands twice", section, name);
		p->seen |= 1u << i;
		if (p->cut && !conf_keys[i].any_length)
			return complain(p, "[%s] %s is too long", section, name);
		if (p->cut ? !read_long(p, i) : !conf_keys[i].read(p->conf, value))
			return complain(p, "[%s] %s has no valid value", section, name);
		return 0;
	}
	return strcmp(section, "wait") == 0 ? on_wait(p, name, value) : 0;
}

/* inih wants 1 for "go on" and 0 for an error. */
static int on_line(void *arg, const char *section, const char *name, const char *value)
{
	struct parser *p = arg;

	if (!name || !value)
		return 1;
	/* inih goes on after an error; the first complaint is the one to keep. */
	if (p->why[0])
		return 0;
	if (strcmp(section, "identity") == 0)
		return on_identity(p, name, value) == 0;
	if (strncmp(section, LEVEL_PREFIX, strlen(LEVEL_PREFIX)) == 0)
		return on_level(p, section, name, value) == 0;
	return on_key(p, section, name, value) == 0;
}

/*
 * A reader for inih. Given a line longer than its buffer, inih by itself would
 * take what is left for a line of its own: the end of a comment could be a key.
 */
static char *next_line(char *line, int size, void *arg)
{
	struct parser *p = arg;
	size_t length = strcspn(p->rest, "\n");
	size_t room = (size_t)size - 2; /* for the newline and the NUL */

	if (!*p->rest)
		return NULL;
	p->line = p->rest;
	p->cut = length > room;
	snprintf(line, (size_t)size, "%.*s\n", (int)(p->cut ? room : length), p->rest);
	p->rest += length + (p->rest[length] == '\n');
	return line;
}

static int check_level(struct parser *p, unsigned level)
{
	bool wanted = level < machine_conf_all_levels(p->conf);

	if (!wanted && p->level_seen[level])
		return complain(p, "[" LEVEL_PREFIX "%u] is beyond [wait] levels", level + 1);
	for (unsigned i = 0; wanted && i < CONF_LEVEL_KEYS; i++)
		if (!(p->level_seen[level] & (1u << i)))
			return complain(p, "[" LEVEL_PREFIX "%u] %s is missing", level + 1,
					conf_level_keys[i].name);
	return 0;
}

/* Keys of a newer schema do not count in an older file. */
static int take_wait(struct parser *p)
{
	struct machine_conf *conf = p->conf;

	for (unsigned i = 0; i < CONF_LEVEL_KEYS; i++)
		if (conf_level_keys[i].in_wait && conf->schema >= conf_level_keys[i].since &&
		    !(p->wait_seen & (1u << i)))
			return complain(p, "[wait] %s is missing", conf_level_keys[i].in_wait);
	conf->long_run = false;
	conf->runs = 1;
	conf->measured = 0;
	conf->membarrier_ticks = 0;
	memset(conf->level, 0, sizeof(conf->level));
	conf->levels = 1;
	conf->long_levels = 0;
	conf->level[0] = p->wait;
	conf->level[0].page = p->wait.line;
	return 0;
}

static int check_levels(struct parser *p)
{
	int ret = 0;

	if (p->conf->schema < 4)
		return take_wait(p);
	if (machine_conf_all_levels(p->conf) > MACHINE_CONF_LEVELS)
		return complain(p, "[wait] has more than %d levels in all", MACHINE_CONF_LEVELS);
	for (unsigned i = 0; ret == 0 && i < MACHINE_CONF_LEVELS; i++)
		ret = check_level(p, i);
	return ret;
}

static int check_complete(struct parser *p)
{
	struct identity none = { 0 };
	char ignored[128];
	const char *field;
	char broken[128];
	int ret;

	for (unsigned i = 0; i < CONF_KEYS; i++)
		if (!(p->seen & (1u << i)) &&
		    (!p->conf->schema || p->conf->schema >= conf_keys[i].since))
			return complain(p, "[%s] %s is missing", conf_keys[i].section,
					conf_keys[i].name);
	for (unsigned i = 0; identity_field(&none, i, &field, ignored, sizeof(ignored)); i++)
		if (!(p->identity_seen & (1u << i)))
			return complain(p, "[identity] %s is missing", field);
	ret = check_levels(p);
	if (ret < 0)
		return ret;
	for (unsigned i = 0; conf_rule(i, p->conf, broken, sizeof(broken)); i++)
		if (broken[0])
			return complain(p, "%s", broken);
	return 0;
}

int machine_conf_parse(struct machine_conf *conf, const char *text, size_t size, char *why,
		       size_t why_size)
{
	struct parser p = { .conf = conf, .why = why, .why_size = why_size };
	int ret;

	*conf = (struct machine_conf){ 0 };
	why[0] = '\0';
	if (strlen(text) != size)
		return complain(&p, "it holds a NUL byte");
	/* A number that was cut off could still be a number. */
	if (size > 0 && text[size - 1] != '\n')
		return complain(&p, "its last line is cut off");
	p.rest = text;
	ret = ini_parse_stream(next_line, &p, on_line, &p);
	if (why[0])
		return -EINVAL;
	if (ret != 0)
		return complain(&p, "line %d is no INI line", ret);
	return check_complete(&p);
}

static int read_all(int fd, char *text, size_t size)
{
	size_t used = 0;
	ssize_t got = 1;

	while (got > 0 && used < size) {
		got = read(fd, text + used, size - used);
		if (got < 0)
			return -errno;
		used += (size_t)got;
	}
	if (used == size)
		return -EFBIG;
	text[used] = '\0';
	return (int)used;
}

static int read_file(const char *path, char *text, size_t size, char *why, size_t why_size)
{
	int ret, fd = conf_open(path, why, why_size);

	if (fd < 0)
		return fd;
	ret = read_all(fd, text, size);
	close(fd);
	if (ret == -EFBIG)
		snprintf(why, why_size, "it is larger than %d bytes", MACHINE_CONF_BYTES);
	else if (ret < 0)
		snprintf(why, why_size, "it cannot be read: %s", strerror(-ret));
	return ret;
}

int machine_conf_read(struct machine_conf *conf, const char *path, char *why, size_t why_size)
{
	char *text = malloc(MACHINE_CONF_BYTES + 1);
	int ret;

	if (!text) {
		snprintf(why, why_size, "out of memory");
		return -ENOMEM;
	}
	ret = read_file(path, text, MACHINE_CONF_BYTES + 1, why, why_size);
	if (ret >= 0)
		ret = machine_conf_parse(conf, text, (size_t)ret, why, why_size);
	free(text);
	return ret;
}
