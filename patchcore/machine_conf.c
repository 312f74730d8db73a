/* SPDX-License-Identifier: MIT */
#include "patchcore/machine_conf.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "machine.conf"

struct parser {
	struct machine_conf *conf;
	uint32_t seen; /* bit per entry of keys[] */
	uint32_t identity_seen;
	const char *rest; /* of the text */
	bool cut;	  /* the present line did not fit inih's buffer */
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

	(void)conf;
	return read_u64(value, MACHINE_CONF_SCHEMA, MACHINE_CONF_SCHEMA, &schema);
}

static bool read_usable(struct machine_conf *conf, const char *value)
{
	conf->usable = strcmp(value, "yes") == 0;
	return conf->usable || strcmp(value, "no") == 0;
}

static bool read_first_wait(struct machine_conf *conf, const char *value)
{
	return read_u64(value, 0, MACHINE_CONF_WAIT, &conf->first_wait);
}

static bool read_second_wait(struct machine_conf *conf, const char *value)
{
	return read_u64(value, 0, MACHINE_CONF_WAIT, &conf->second_wait);
}

static bool read_stretch(struct machine_conf *conf, const char *value)
{
	return read_u64(value, 0, MACHINE_CONF_STRETCH, &conf->stretch);
}

static bool read_toggles(struct machine_conf *conf, const char *value)
{
	return read_u64(value, 0, UINT64_MAX, &conf->toggles);
}

static bool read_upper_p(struct machine_conf *conf, const char *value)
{
	return read_double(value, 0, 1, &conf->upper_p);
}

static bool read_confidence(struct machine_conf *conf, const char *value)
{
	return read_double(value, 0.5, 1, &conf->confidence) && conf->confidence < 1;
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

/* What the library must know. */
static const struct {
	const char *section;
	const char *name;
	bool (*read)(struct machine_conf *conf, const char *value);
} keys[] = {
	{ "tmax", "schema", read_schema },    { "wait", "usable", read_usable },
	{ "wait", "first", read_first_wait }, { "wait", "second", read_second_wait },
	{ "wait", "stretch", read_stretch },  { "wait", "toggles", read_toggles },
	{ "wait", "upper_p", read_upper_p },  { "wait", "confidence", read_confidence },
	{ "window", "bytes", read_window },   { "window", "upper_p", read_window_p },
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

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

static int on_key(struct parser *p, const char *section, const char *name, const char *value)
{
	for (unsigned i = 0; i < KEYS; i++) {
		if (strcmp(keys[i].section, section) != 0 || strcmp(keys[i].name, name) != 0)
			continue;
		if (p->seen & (1u << i))
			return complain(p, "[%s] %s stands twice", section, name);
		p->seen |= 1u << i;
		if (p->cut)
			return complain(p, "[%s] %s is too long", section, name);
		if (!keys[i].read(p->conf, value))
			return complain(p, "[%s] %s has no valid value", section, name);
		return 0;
	}
	return 0;
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
	p->cut = length > room;
	snprintf(line, (size_t)size, "%.*s\n", (int)(p->cut ? room : length), p->rest);
	p->rest += length + (p->rest[length] == '\n');
	return line;
}

static int check_complete(struct parser *p)
{
	struct identity none = { 0 };
	char ignored[128];
	const char *field;

	for (unsigned i = 0; i < KEYS; i++)
		if (!(p->seen & (1u << i)))
			return complain(p, "[%s] %s is missing", keys[i].section, keys[i].name);
	for (unsigned i = 0; identity_field(&none, i, &field, ignored, sizeof(ignored)); i++)
		if (!(p->identity_seen & (1u << i)))
			return complain(p, "[identity] %s is missing", field);
	if (p->conf->usable && p->conf->toggles == 0)
		return complain(p, "[wait] is usable, but no toggles are behind it");
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

/* Read a regular file whole; a pipe or device could block or never end. */
static int read_file(const char *path, char *text, size_t size)
{
	struct stat st;
	size_t used = 0;
	ssize_t got = 1;
	int ret = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		ret = -errno;
	else if (!S_ISREG(st.st_mode))
		ret = -EINVAL;
	while (ret == 0 && got > 0 && used < size) {
		got = read(fd, text + used, size - used);
		if (got < 0)
			ret = -errno;
		else
			used += (size_t)got;
	}
	close(fd);
	if (ret < 0)
		return ret;
	if (used == size)
		return -EFBIG;
	text[used] = '\0';
	return (int)used;
}

int machine_conf_read(struct machine_conf *conf, const char *path, char *why, size_t why_size)
{
	char *text = malloc(MACHINE_CONF_BYTES + 1);
	int ret;

	if (!text) {
		snprintf(why, why_size, "out of memory");
		return -ENOMEM;
	}
	ret = read_file(path, text, MACHINE_CONF_BYTES + 1);
	if (ret >= 0)
		ret = machine_conf_parse(conf, text, (size_t)ret, why, why_size);
	else if (ret == -EFBIG)
		snprintf(why, why_size, "it is larger than %d bytes", MACHINE_CONF_BYTES);
	else if (ret == -EINVAL)
		snprintf(why, why_size, "it is no regular file");
	else
		snprintf(why, why_size, "it cannot be read: %s", strerror(-ret));
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
