/* SPDX-License-Identifier: MIT */
#include "patchcore/machine/machine_conf.h"

#include <errno.h>
#include <ini.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "patchcore/machine/conf_open.h"
#include "patchcore/machine/conf_rules.h"

#define FILE_NAME "machine.conf"

#define LEVEL_PREFIX "level "

struct parser {
	struct machine_conf *conf;
	uint32_t seen; /* bit per entry of keys[] */
	uint32_t identity_seen;
	uint32_t level_seen[MACHINE_CONF_LEVELS]; /* bit per entry of level_keys[] */
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

static bool read_u64(const char *text, uint64_t min, uint64_t max, uint64_t *value)
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

	if (!read_u64(value, MACHINE_CONF_OLDEST, MACHINE_CONF_SCHEMA, &schema))
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
	return read_u64(value, 1, UINT64_MAX, &conf->runs);
}

static bool read_measured(struct machine_conf *conf, const char *value)
{
	return read_u64(value, 0, MACHINE_CONF_TIME, &conf->measured);
}

static bool read_number(const char *value, unsigned *number)
{
	uint64_t levels;

	if (!read_u64(value, 0, MACHINE_CONF_LEVELS, &levels))
		return false;
	*number = (unsigned)levels;
	return true;
}

static bool read_membarrier_ticks(struct machine_conf *conf, const char *value)
{
	return read_u64(value, 0, MACHINE_CONF_COST, &conf->membarrier_ticks);
}

/* A bound that is wrong more often than that is none; calibrate says 0.95. */
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

	if (!read_u64(value, 8, 64, &window) || (window & (window - 1)) != 0)
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
	return read_u64(value, 0, UINT64_MAX, &conf->window_toggles);
}

static bool read_window_confidence(struct machine_conf *conf, const char *value)
{
	return read_sureness(value, &conf->window_confidence);
}

static bool read_first_wait(struct machine_conf_level *level, const char *value)
{
	return read_u64(value, 0, MACHINE_CONF_WAIT, &level->first_wait);
}

static bool read_second_wait(struct machine_conf_level *level, const char *value)
{
	return read_u64(value, 0, MACHINE_CONF_WAIT, &level->second_wait);
}

static bool read_stretch(struct machine_conf_level *level, const char *value)
{
	return read_u64(value, 0, MACHINE_CONF_STRETCH, &level->stretch);
}

static bool read_ticks(struct machine_conf_level *level, const char *value)
{
	return read_u64(value, 0, MACHINE_CONF_COST, &level->ticks);
}

static bool read_line_toggles(struct machine_conf_level *level, const char *value)
{
	return read_u64(value, 0, UINT64_MAX, &level->line.toggles);
}

static bool read_line_tears(struct machine_conf_level *level, const char *value)
{
	return read_u64(value, 0, UINT64_MAX, &level->line.tears);
}

static bool read_line_p(struct machine_conf_level *level, const char *value)
{
	return read_double(value, 0, 1, &level->line.upper_p);
}

static bool read_page_toggles(struct machine_conf_level *level, const char *value)
{
	return read_u64(value, 0, UINT64_MAX, &level->page.toggles);
}

static bool read_page_tears(struct machine_conf_level *level, const char *value)
{
	return read_u64(value, 0, UINT64_MAX, &level->page.tears);
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

/* What the library must know, and from which schema on. */
/* clang-format off */
static const struct {
	const char *section;
	const char *name;
	bool (*read)(struct machine_conf *conf, const char *value);
	unsigned since;
	bool any_length; /* inih would cut it */
} keys[] = {
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

/* The same of a level, each of which has a section of its own; up to schema 3 one stands in [wait]. */
static const struct {
	const char *name;
	bool (*read)(struct machine_conf_level *level, const char *value);
	const char *in_wait; /* its name there, or NULL */
	unsigned since;      /* there */
} level_keys[] = {
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

#define KEYS	   (sizeof(keys) / sizeof(keys[0]))
#define LEVEL_KEYS (sizeof(level_keys) / sizeof(level_keys[0]))

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
	bool good = value && keys[key].read(p->conf, value);

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
	if (!level_keys[key].read(level, value))
		return complain(p, "[%s] %s has no valid value", section, name);
	return 0;
}

/* The number has one spelling, so that no level stands twice unnoticed. */
static int on_level(struct parser *p, const char *section, const char *name, const char *value)
{
	const char *number = section + strlen(LEVEL_PREFIX);
	uint64_t n;

	if (number[0] == '0' || !read_u64(number, 1, MACHINE_CONF_LEVELS, &n))
		return complain(p, "a section [" LEVEL_PREFIX "...] is none of 1 to %d",
				MACHINE_CONF_LEVELS);
	for (unsigned i = 0; i < LEVEL_KEYS; i++)
		if (strcmp(level_keys[i].name, name) == 0)
			return on_level_key(p, section, i, name, value, &p->conf->level[n - 1],
					    &p->level_seen[n - 1]);
	return 0;
}

static int on_wait(struct parser *p, const char *name, const char *value)
{
	for (unsigned i = 0; i < LEVEL_KEYS; i++)
		if (level_keys[i].in_wait && strcmp(level_keys[i].in_wait, name) == 0)
			return on_level_key(p, "wait", i, name, value, &p->wait, &p->wait_seen);
	return 0;
}

static int on_key(struct parser *p, const char *section, const char *name, const char *value)
{
	for (unsigned i = 0; i < KEYS; i++) {
		if (strcmp(keys[i].section, section) != 0 || strcmp(keys[i].name, name) != 0)
			continue;
		if (p->seen & (1u << i))
			return complain(p, "[%s] %s stands twice", section, name);
		p->seen |= 1u << i;
		if (p->cut && !keys[i].any_length)
			return complain(p, "[%s] %s is too long", section, name);
		if (p->cut ? !read_long(p, i) : !keys[i].read(p->conf, value))
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
	for (unsigned i = 0; wanted && i < LEVEL_KEYS; i++)
		if (!(p->level_seen[level] & (1u << i)))
			return complain(p, "[" LEVEL_PREFIX "%u] %s is missing", level + 1,
					level_keys[i].name);
	return 0;
}

/* What a newer schema tells counts only there. */
static int take_wait(struct parser *p)
{
	struct machine_conf *conf = p->conf;

	for (unsigned i = 0; i < LEVEL_KEYS; i++)
		if (level_keys[i].in_wait && conf->schema >= level_keys[i].since &&
		    !(p->wait_seen & (1u << i)))
			return complain(p, "[wait] %s is missing", level_keys[i].in_wait);
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

	for (unsigned i = 0; i < KEYS; i++)
		if (!(p->seen & (1u << i)) &&
		    (!p->conf->schema || p->conf->schema >= keys[i].since))
			return complain(p, "[%s] %s is missing", keys[i].section, keys[i].name);
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

double machine_conf_p(const struct machine_conf_level *level)
{
	return level->line.upper_p > level->page.upper_p ? level->line.upper_p
							 : level->page.upper_p;
}

const struct machine_conf_level *machine_conf_surest(const struct machine_conf *conf)
{
	const struct machine_conf_level *surest = &conf->level[0];

	for (unsigned i = 1; i < conf->levels; i++)
		if (machine_conf_p(&conf->level[i]) < machine_conf_p(surest))
			surest = &conf->level[i];
	return surest;
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

static int join(char *path, size_t size, const char *folder, const char *rest)
{
	int n = snprintf(path, size, "%s%s", folder, rest);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int user_path(char *path, size_t size)
{
	const char *config = secure_getenv("XDG_CONFIG_HOME");
	const char *home = secure_getenv("HOME");

	if (config && config[0] == '/')
		return join(path, size, config, "/tmax/" FILE_NAME);
	if (home && home[0] == '/')
		return join(path, size, home, "/.config/tmax/" FILE_NAME);
	return -ENOENT;
}

static bool exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

int machine_conf_find(char *path, size_t size)
{
	const char *named = secure_getenv("PATCHCORE_MACHINE_CONF");
	int ret;

	/* Named is named: a missing file is an error to report, not to look past. */
	if (named && named[0])
		return join(path, size, named, "");
	ret = user_path(path, size);
	if (ret == -ENAMETOOLONG || (ret == 0 && exists(path)))
		return ret;
	ret = join(path, size, SYSCONFDIR, "/tmax/" FILE_NAME);
	if (ret < 0 || exists(path))
		return ret;
	ret = join(path, size, LOCALSTATEDIR, "/lib/tmax/" FILE_NAME);
	if (ret < 0 || exists(path))
		return ret;
	return -ENOENT;
}

int machine_conf_default_path(char *path, size_t size)
{
	if (geteuid() == 0)
		return join(path, size, LOCALSTATEDIR, "/lib/tmax/" FILE_NAME);
	return user_path(path, size);
}
