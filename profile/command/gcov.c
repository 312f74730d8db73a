/* SPDX-License-Identifier: MIT */
/* gcov's JSON. A line of an inlined function has the counts of all its copies. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/text.h"
#include "probes/elf/array.h"
#include "profile/command/body.h"
#include "profile/command/print.h"

/* The member of that name; @fresh becomes it where there is none. */
static json_t *find_member(json_t *parent, const char *name, json_t *fresh)
{
	char *key = text_utf8(name);

	if (json_object_get(parent, key))
		json_decref(fresh);
	else
		json_object_set_new(parent, key, fresh);
	fresh = json_object_get(parent, key);
	free(key);
	return fresh;
}

static void add_to_count(json_t *object, const char *key, double more)
{
	json_int_t before = json_integer_value(json_object_get(object, key));

	json_object_set_new(object, key, json_integer(before + (json_int_t)(more + 0.5)));
}

/* The blocks of a line are run as often as the most of them; copies of a function add up. */
static void add_line(json_t *lines, json_t *function, const struct body *body, size_t first,
		     size_t end)
{
	int number = body->first + (int16_t)body->sample[first].offset.line;
	double most = 0;
	bool missed = false;
	char key[32];
	json_t *line;

	for (size_t i = first; i < end; i++) {
		most = body->sample[i].count > most ? body->sample[i].count : most;
		missed |= !(body->sample[i].count > 0);
	}
	snprintf(key, sizeof(key), "%d", number);
	line = find_member(find_member(lines, body->name, json_object()), key,
			   json_pack("{s:[], s:i, s:i, s:b, s:o}", "branches", "count", 0,
				     "line_number", number, "unexecuted_block", false,
				     "function_name", name_json(body->name)));
	add_to_count(line, "count", most);
	if (missed)
		json_object_set_new(line, "unexecuted_block", json_true());
	/* The last line that has code. */
	if (number > json_integer_value(json_object_get(function, "end_line")))
		json_object_set_new(function, "end_line", json_integer(number));
}

ORDER_BY(by_line, struct sample, offset.line)

static json_t *add_function(json_t *functions, const struct body *body)
{
	json_t *function = find_member(
		functions, body->name,
		json_pack("{s:i, s:i, s:i, s:o, s:i, s:i, s:o, s:i, s:i}", "blocks", 0,
			  "end_column", 0, "start_line", body->first, "name", name_json(body->name),
			  "blocks_executed", 0, "execution_count", 0, "demangled_name",
			  name_json(body->plain ? body->plain : body->name), "start_column",
			  body->column, "end_line", 0));

	add_to_count(function, "execution_count", body->head);
	add_to_count(function, "blocks", body->blocks);
	add_to_count(function, "blocks_executed", body->run);
	return function;
}

/* Files by name: "lines" by function and number, and "functions" by name. */
static void add_body(struct body *body, void *files)
{
	json_t *file = body->file ? find_member(files, body->file, json_object()) : NULL;
	size_t next;

	if (file) {
		json_t *lines = find_member(file, "lines", json_object());
		json_t *function =
			add_function(find_member(file, "functions", json_object()), body);

		qsort(body->sample, body->samples, sizeof(*body->sample), by_line);
		for (size_t i = 0; i < body->samples; i = next) {
			for (next = i + 1; next < body->samples &&
					   !by_line(&body->sample[i], &body->sample[next]);
			     next++)
				;
			add_line(lines, function, body, i, next);
		}
	}
	for (struct body *in = body->inlined; in; in = in->next)
		add_body(in, files);
}

/* --- As gcov has it -------------------------------------------------------------------------- */

/* Collect the members of an object at that depth in an array. */
static void add_members(json_t *array, json_t *object, int depth)
{
	const char *name;
	json_t *one;

	json_object_foreach(object, name, one)
	{
		if (depth)
			add_members(array, one, depth - 1);
		else
			json_array_append(array, one);
	}
}

static int put_document(json_t *by_name, const char *object, FILE *out)
{
	char *folder = getcwd(NULL, 0);
	json_t *files = json_array(), *root, *file;
	const char *name;
	int ret;

	json_object_foreach(by_name, name, file)
	{
		json_t *lines = json_array(), *functions = json_array();

		add_members(lines, json_object_get(file, "lines"), 1);
		add_members(functions, json_object_get(file, "functions"), 0);
		json_array_append_new(files, json_pack("{s:o, s:o, s:s}", "lines", lines,
						       "functions", functions, "file", name));
	}
	root = json_pack("{s:s, s:o, s:s, s:o, s:o}", "gcc_version", "fastinst", "files", files,
			 "format_version", "1", "current_working_directory",
			 name_json(folder ? folder : ""), "data_file", name_json(object));
	ret = json_dumpf(root, out, JSON_PRESERVE_ORDER);
	json_decref(root);
	free(folder);
	fputc('\n', out);
	return ret ? -EIO : 0;
}

int lines_write_gcov(FILE *out, const struct executed *executed)
{
	json_t *files = json_object();
	int ret = files ? lines_each(executed, add_body, files) : -ENOMEM;

	if (!ret)
		ret = put_document(files, executed->object, out);
	json_decref(files);
	return ret;
}
