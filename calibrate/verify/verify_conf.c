/* SPDX-License-Identifier: MIT */
#include "calibrate/verify/verify_conf.h"

#include <errno.h>
#include <getopt.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/program/cell_options.h"

#define WORDS_MAX 64
#define BLANKS	  " \t\r\n"

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

/* cell_command() quotes nothing, and a comment behind it is none of it. */
static int split_words(char *text, char **words)
{
	int count = 0;

	for (char *save, *word = strtok_r(text, BLANKS, &save); word && word[0] != ';';
	     word = strtok_r(NULL, BLANKS, &save)) {
		if (count == WORDS_MAX)
			return -E2BIG;
		words[count++] = word;
	}
	words[count] = NULL;
	return count;
}

int verify_conf_command(const char *command, struct cell *cell, char *why, size_t size)
{
	static const struct command_line line = { .options = { cell_options } };
	char *words[WORDS_MAX + 1], *copy = strdup(command);
	char reason[OPTION_WHY];
	int ret, count = copy ? split_words(copy, words) : -ENOMEM;

	cell_defaults(cell);
	if (count == -ENOMEM)
		ret = refuse_conf(why, size, "out of memory", "");
	else if (count < 2 || strcmp(words[0], "tmax") != 0 || strcmp(words[1], "stress") != 0)
		ret = refuse_conf(why, size, "it is no command line of tmax stress", "");
	else if (command_line_read(&line, count - 1, words + 1, cell, reason) < 0)
		ret = reason[0]
			      ? refuse_conf(why, size, reason, "")
			      : refuse_conf(why, size, "it has an option that describes no cell: ",
					    words[optind]);
	else
		ret = 0;
	if (ret == 0 && cell->protocol != PROTOCOL_WAIT)
		ret = refuse_conf(why, size, "it waits for nothing: its protocol is ",
				  protocol_name(cell->protocol));
	if (ret == 0 && cell_check(cell, reason, sizeof(reason)) < 0)
		ret = refuse_conf(why, size, reason, "");
	free(copy);
	return ret;
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
