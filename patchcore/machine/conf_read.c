/* SPDX-License-Identifier: MIT */
#include "patchcore/machine/machine_conf.h"

#include <errno.h>
#include <ini.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEVEL_PREFIX  "level "
#define RESTED_PREFIX "rested " /* a library that knows of no rest passes these over */

/* --- The keys -------------------------------------------------------------------------------- */

/* How a value is written. */
enum form {
	NUMBER, /* from min to max, digits and nothing else */
	POWER,	/* such a number, a power of two */
	WORD,	/* one of some, numbered from min on */
	BOUND,	/* a probability above 0 */
	SPREAD, /* a variance */
	SURE,	/* of a bound: less than 0.9 is refused, and calibrate writes 0.95 */
	CPUS,	/* a list, of any length: inih would cut it */
	PRINTED /* as identity_field() prints it */
};

/* What the library must know, and where it goes. */
struct key {
	const char *section; /* NULL: of a level */
	const char *name;
	bool optional;
	enum form form;
	size_t offset, size;
	uint64_t min, max;
	const char *const *words; /* up to a NULL */
};

static const char *const no_yes[] = { "no", "yes", NULL };
static const char *const sources[] = { "calibration", "fleet", NULL };
static const char *const evidence[] = { "this-run", "long-run", NULL };
static const char *const verdicts[] = { "pass", "fail", "inconclusive", NULL };

#define PLACE(type, member) offsetof(struct type, member), sizeof(((struct type *)NULL)->member)
#define CONF(member)	    PLACE(machine_conf, member)
#define LEVEL(member)	    PLACE(machine_conf_level, member)

/* clang-format off */
#define IDENTITY(member, kind) { "identity", #member, false, PRINTED, CONF(identity), 0, 0, NULL },

static const struct key keys[] = {
	{ "tmax", "schema", false, NUMBER, CONF(schema), MACHINE_CONF_SCHEMA, MACHINE_CONF_SCHEMA, NULL },
	{ "tmax", "verdict", false, WORD, CONF(verdict), MACHINE_CONF_PASS, 0, verdicts },
	{ "tmax", "source", true, WORD, CONF(fleet), 0, 0, sources },
	{ "scope", "cpus", false, CPUS, CONF(cpus), 0, 0, NULL },
	{ "scope", "evidence", false, WORD, CONF(long_run), 0, 0, evidence },
	{ "scope", "runs", false, NUMBER, CONF(runs), 1, UINT64_MAX, NULL },
	{ "scope", "measured", false, NUMBER, CONF(measured), 0, MACHINE_CONF_TIME, NULL },
	{ "wait", "usable", false, WORD, CONF(usable), 0, 0, no_yes },
	{ "wait", "confidence", false, SURE, CONF(confidence), 0, 0, NULL },
	{ "wait", "levels", false, NUMBER, CONF(levels), 0, MACHINE_CONF_LEVELS, NULL },
	{ "wait", "long_levels", true, NUMBER, CONF(long_levels), 0, MACHINE_CONF_LEVELS, NULL },
	{ "wait", "require_p", true, BOUND, CONF(require_p), 0, 0, NULL },
	{ "wait", "spread_line", true, SPREAD, CONF(spread_line), 0, 0, NULL },
	{ "wait", "spread_page", true, SPREAD, CONF(spread_page), 0, 0, NULL },
	{ "wait", "rested_levels", true, NUMBER, CONF(rested), 0, MACHINE_CONF_LEVELS, NULL },
	{ "wait", "membarrier_ticks", false, NUMBER, CONF(membarrier_ticks), 0, MACHINE_CONF_COST, NULL },
	{ "window", "bytes", false, POWER, CONF(window), 8, 64, NULL },
	{ "window", "toggles", false, NUMBER, CONF(window_toggles), 0, UINT64_MAX, NULL },
	{ "window", "runs", true, NUMBER, CONF(window_runs), 0, UINT64_MAX, NULL },
	{ "window", "upper_p", false, BOUND, CONF(window_p), 0, 0, NULL },
	{ "window", "confidence", false, SURE, CONF(window_confidence), 0, 0, NULL },
	IDENTITY_FIELDS(IDENTITY)
	{ NULL, "first", false, NUMBER, LEVEL(waits.first), 0, MACHINE_CONF_WAIT, NULL },
	{ NULL, "second", false, NUMBER, LEVEL(waits.second), 0, MACHINE_CONF_WAIT, NULL },
	{ NULL, "stretch", false, NUMBER, LEVEL(waits.stretch), 0, MACHINE_CONF_STRETCH, NULL },
	{ NULL, "rest", true, NUMBER, LEVEL(rest), 1, MACHINE_CONF_WAIT, NULL },
	{ NULL, "ticks", false, NUMBER, LEVEL(ticks), 0, MACHINE_CONF_COST, NULL },
	{ NULL, "line_toggles", false, NUMBER, LEVEL(line.toggles), 0, UINT64_MAX, NULL },
	{ NULL, "line_tears", false, NUMBER, LEVEL(line.tears), 0, UINT64_MAX, NULL },
	{ NULL, "line_p", false, BOUND, LEVEL(line.upper_p), 0, 0, NULL },
	{ NULL, "page_toggles", false, NUMBER, LEVEL(page.toggles), 0, UINT64_MAX, NULL },
	{ NULL, "page_tears", false, NUMBER, LEVEL(page.tears), 0, UINT64_MAX, NULL },
	{ NULL, "page_p", false, BOUND, LEVEL(page.upper_p), 0, 0, NULL },
};
/* clang-format on */

#define KEYS (sizeof(keys) / sizeof(keys[0]))
_Static_assert(KEYS <= 64, "a bit for each key");

/* --- One value ------------------------------------------------------------------------------- */

static bool read_number(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0' && *value >= min && *value <= max;
}

static bool read_double(const char *text, double *value)
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
	return *end == '\0';
}

/* Of any length: as it stands in the line, without a comment. */
static bool read_cpus(const char *line, struct cpus *cpus)
{
	const char *from = line + strcspn(line, "=:\n"), *end, *rest;

	from += *from == '=' || *from == ':';
	from += strspn(from, " \t\r");
	end = from + strcspn(from, " \t\r\n");
	rest = end + strspn(end, " \t\r");
	/* Behind it only what inih would not have given us. */
	return (*rest == '\n' || *rest == ';') && cpus_parse(cpus, from, (size_t)(end - from)) == 0;
}

/* Into the config, or the level. False: it is not valid. */
static bool read_value(const struct key *key, const char *text, const char *line, void *to)
{
	void *member = (char *)to + key->offset;
	uint64_t number = key->min;
	double *p = member;

	switch (key->form) {
	case CPUS:
		return read_cpus(line, member);
	case BOUND:
		return read_double(text, p) && *p > 0 && *p <= 1;
	case SPREAD:
		return read_double(text, p) && *p >= 0 && *p <= MACHINE_CONF_WAIT;
	case SURE:
		return read_double(text, p) && *p >= 0.9 && *p < 1;
	case PRINTED:
		return identity_set(member, key->name, text) == 0;
	case WORD:
		while (key->words[number] && strcmp(key->words[number], text) != 0)
			number++;
		if (!key->words[number])
			return false;
		break;
	case NUMBER:
	case POWER:
		if (!read_number(text, key->min, key->max, &number) ||
		    (key->form == POWER && (number & (number - 1))))
			return false;
	}
	memcpy(member, &number, key->size); /* the lowest bytes come first */
	return true;
}

/* --- One line -------------------------------------------------------------------------------- */

struct parser {
	struct machine_conf *conf;
	uint64_t seen[1 + MACHINE_CONF_LEVELS]; /* a bit per key, of the config and each level */
	const char *rest;			/* of the text */
	const char *line;			/* the present one, in the text */
	bool cut;				/* it did not fit inih's buffer */
	const char *section, *name;		/* of the present line */
	unsigned level;				/* from 1; 0: it is of none */
	char *why;
	size_t why_size;
};

static int conf_complain(struct parser *p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(p->why, p->why_size, format, args);
	va_end(args);
	return -EINVAL;
}

static const struct key *find_key(const struct parser *p)
{
	for (const struct key *key = keys; key < keys + KEYS; key++)
		if (strcmp(key->name, p->name) == 0 &&
		    (p->level ? !key->section
			      : key->section && strcmp(key->section, p->section) == 0))
			return key;
	return NULL;
}

/* If the present line has a key. Of each there is one, and it is whole. */
static int take_key(struct parser *p, const char *value)
{
	const struct key *key = find_key(p);
	void *to = p->level ? (void *)&p->conf->level[p->level - 1] : p->conf;
	uint64_t bit = key ? UINT64_C(1) << (key - keys) : 0;

	if (!key)
		return 0;
	if (p->seen[p->level] & bit)
		return conf_complain(p, "[%s] %s stands twice", p->section, p->name);
	p->seen[p->level] |= bit;
	if (p->cut && key->form != CPUS)
		return conf_complain(p, "[%s] %s is too long", p->section, p->name);
	if (!read_value(key, value, p->line, to))
		return conf_complain(p, "[%s] %s has no valid value", p->section, p->name);
	return 0;
}

/* inih wants 1 for "go on" and 0 for an error. It goes on after one: the first is told. */
static int on_line(void *arg, const char *section, const char *name, const char *value)
{
	static const char *const prefixes[] = { LEVEL_PREFIX, RESTED_PREFIX };
	struct parser *p = arg;
	uint64_t n;

	if (!name || !value)
		return 1;
	if (p->why[0])
		return 0;
	p->section = section;
	p->name = name;
	p->level = 0;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t length = strlen(prefixes[i]);

		if (strncmp(section, prefixes[i], length) != 0)
			continue;
		section += length;
		/* The number has one spelling, so that no level stands twice unnoticed. */
		if (section[0] == '0' || !read_number(section, 1, MACHINE_CONF_LEVELS, &n)) {
			conf_complain(p, "a section [%s...] is none of 1 to %d", prefixes[i],
				      MACHINE_CONF_LEVELS);
			return 0;
		}
		p->level = (unsigned)n;
		break;
	}
	return take_key(p, value) == 0;
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

/* --- The whole ------------------------------------------------------------------------------- */

/* Is there all that there must be of the config, or of a level? */
static int check_keys(struct parser *p, unsigned level)
{
	for (const struct key *key = keys; key < keys + KEYS; key++) {
		if (key->optional || !key->section != !!level || p->seen[level] >> (key - keys) & 1)
			continue;
		if (level)
			return conf_complain(p, "[" LEVEL_PREFIX "%u] %s is missing", level,
					     key->name);
		return conf_complain(p, "[%s] %s is missing", key->section, key->name);
	}
	return 0;
}

static int check_complete(struct parser *p)
{
	unsigned levels = machine_conf_all_levels(p->conf);
	char text[128];
	int ret = check_keys(p, 0);

	if (ret < 0)
		return ret;
	if (levels > MACHINE_CONF_LEVELS)
		return conf_complain(p, "[wait] has more than %d levels in all",
				     MACHINE_CONF_LEVELS);
	for (unsigned i = 1; ret == 0 && i <= MACHINE_CONF_LEVELS; i++) {
		if (i <= levels)
			ret = check_keys(p, i);
		else if (p->seen[i])
			ret = conf_complain(p, "[" LEVEL_PREFIX "%u] is beyond [wait] levels", i);
	}
	for (unsigned i = 0; ret == 0 && conf_rule(i, p->conf, text, sizeof(text)); i++)
		if (text[0])
			ret = conf_complain(p, "%s", text);
	return ret;
}

int machine_conf_parse(struct machine_conf *conf, const char *text, size_t size, char *why,
		       size_t why_size)
{
	struct parser p = { .conf = conf, .why = why, .why_size = why_size, .rest = text };
	int ret;

	*conf = (struct machine_conf){ .spread_line = MACHINE_CONF_SPREAD,
				       .spread_page = MACHINE_CONF_SPREAD };
	why[0] = '\0';
	if (strlen(text) != size)
		return conf_complain(&p, "it holds a NUL byte");
	/* A number that was cut off could still be a number. */
	if (size > 0 && text[size - 1] != '\n')
		return conf_complain(&p, "its last line is cut off");
	ret = ini_parse_stream(next_line, &p, on_line, &p);
	if (why[0])
		return -EINVAL;
	if (ret != 0)
		return conf_complain(&p, "line %d is no INI line", ret);
	return check_complete(&p);
}

int machine_conf_read(struct machine_conf *conf, const char *path, char *why, size_t why_size)
{
	const size_t room = MACHINE_CONF_BYTES + 1;
	char *text = malloc(room);
	size_t used = 0;
	ssize_t got;
	int fd;

	snprintf(why, why_size, "out of memory");
	fd = text ? conf_open(path, why, why_size) : -ENOMEM;
	if (fd < 0) {
		free(text);
		return fd;
	}
	while ((got = read(fd, text + used, room - used)) > 0)
		used += (size_t)got;
	got = got < 0 ? -errno : 0;
	close(fd);
	if (got < 0) {
		snprintf(why, why_size, "it cannot be read: %s", strerror((int)-got));
	} else if (used == room) {
		snprintf(why, why_size, "it is larger than %d bytes", MACHINE_CONF_BYTES);
		got = -EFBIG;
	} else {
		text[used] = '\0';
		got = machine_conf_parse(conf, text, used, why, why_size);
	}
	free(text);
	return (int)got;
}

/* --- Levels ---------------------------------------------------------------------------------- */

double machine_conf_p(const struct machine_conf_level *level, enum machine_conf_sites sites)
{
	double line = level->line.upper_p, page = level->page.upper_p;

	if (sites == SITES_ALL)
		return line > page ? line : page;
	return sites == SITES_PAGE ? page : line;
}

const struct machine_conf_level *machine_conf_cheapest(const struct machine_conf_level *level,
						       unsigned count,
						       enum machine_conf_sites sites,
						       double accept_p)
{
	const struct machine_conf_level *best = NULL;

	for (const struct machine_conf_level *end = level + count; level < end; level++)
		if (machine_conf_p(level, sites) <= accept_p &&
		    (!best || (level->ticks && level->ticks < best->ticks)))
			best = level;
	return best;
}

const struct machine_conf_level *machine_conf_accepted(const struct machine_conf *conf,
						       enum machine_conf_sites sites,
						       double accept_p)
{
	const struct machine_conf_level *level =
		machine_conf_cheapest(conf->level, conf->levels, sites, accept_p);

	return level ? level
		     : machine_conf_cheapest(conf->level + conf->levels + conf->long_levels,
					     conf->rested, sites, accept_p);
}

const struct machine_conf_level *machine_conf_surest(const struct machine_conf *conf,
						     enum machine_conf_sites sites)
{
	const struct machine_conf_level *surest = conf->level;

	for (unsigned i = 1; i < conf->levels; i++)
		if (machine_conf_p(&conf->level[i], sites) < machine_conf_p(surest, sites))
			surest = &conf->level[i];
	return surest;
}
