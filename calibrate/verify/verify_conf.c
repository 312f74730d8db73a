/* SPDX-License-Identifier: MIT */
#include "calibrate/verify/verify_conf.h"

#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/program/cell_options.h"

struct reader {
	FILE *f;
	char *line; /* the present one, whole */
	size_t room;
	char section[64]; /* that had its command */
	struct cell *cells;
	unsigned count, max;
	int error;
	char *why;
	size_t size;
};

static int refuse_conf(char *why, size_t size, const char *what, const char *detail)
{
	snprintf(why, size, "%s%s", what, detail);
	return -EINVAL;
}

int verify_conf_command(const char *command, struct cell *cell, char *why, size_t size)
{
	char reason[OPTION_WHY];
	int ret;

	cell_defaults(cell);
	ret = cell_read(command, "stress", cell, reason);
	if (ret == 0 && cell->protocol != PROTOCOL_WAIT)
		return refuse_conf(why, size, "it waits for nothing: its protocol is ",
				   protocol_name(cell->protocol));
	if (ret == 0)
		ret = cell_check(cell, reason, sizeof(reason));
	if (ret == -ENOMEM)
		return refuse_conf(why, size, "out of memory", "");
	return ret < 0 ? refuse_conf(why, size, reason, "") : 0;
}

/* A reader for inih, which takes 200 bytes at most; a command may be longer. */
static char *next_line(char *line, int size, void *arg)
{
	struct reader *r = arg;

	if (getline(&r->line, &r->room, r->f) < 0)
		return NULL;
	/* Whole as far as inih can tell, or it would ask for the rest of it. */
	snprintf(line, (size_t)size, "%.*s\n", size - 2, r->line);
	return line;
}

static int add_cell(struct reader *r, const char *section)
{
	const char *value = r->line + strcspn(r->line, "=:");
	char reason[200];

	if (strcmp(r->section, section) == 0)
		return refuse_conf(r->why, r->size, section, ": command stands twice");
	snprintf(r->section, sizeof(r->section), "%s", section);
	if (r->count == r->max)
		return -E2BIG;
	if (verify_conf_command(value + (*value != '\0'), &r->cells[r->count], reason,
				sizeof(reason)) < 0) {
		snprintf(r->why, r->size, "[%s] command: %s", section, reason);
		return -EINVAL;
	}
	r->count++;
	return 0;
}

/* inih wants 1 for "go on", and goes on after an error. */
static int on_line(void *arg, const char *section, const char *name, const char *value)
{
	struct reader *r = arg;

	if (r->error || !name || !value || strncmp(section, "cell ", 5) != 0 ||
	    strcmp(name, "command") != 0)
		return 1;
	r->error = add_cell(r, section);
	return r->error == 0;
}

int verify_conf_cells(FILE *f, struct cell *cells, unsigned max, char *why, size_t size)
{
	struct reader r = { .f = f, .cells = cells, .max = max, .why = why, .size = size };
	int ret;

	why[0] = '\0';
	ret = ini_parse_stream(next_line, &r, on_line, &r);
	free(r.line);
	if (r.error == -E2BIG)
		snprintf(why, size, "it names more than %u cells", max);
	if (r.error)
		return r.error;
	if (ret != 0 || ferror(f))
		return refuse_conf(why, size, "its cells cannot be read", "");
	return (int)r.count;
}
