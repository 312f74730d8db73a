/* SPDX-License-Identifier: MIT */
/*
 * gcov's JSON. A line of a function that was inlined has the counts of all places where it was.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "probes/profile/lines/body.h"
#include "probes/text/text.h"
#include "probes/told/told.h"

/* Files by name: "lines" by function and number, and "functions" by name. */
struct document {
	json_t *files;
};

static json_t *member(json_t *parent, const char *name)
{
	char *key = text_utf8(name);
	json_t *child = json_object_get(parent, key);

	if (!child) {
		json_object_set_new(parent, key, json_object());
		child = json_object_get(parent, key);
	}
	free(key);
	return child;
}

static void add_to(json_t *object, const char *key, double more)
{
	json_int_t before = json_integer_value(json_object_get(object, key));

	json_object_set_new(object, key, json_integer(before + (json_int_t)(more + 0.5)));
}

/* The blocks of a line are run as often as the most of them; copies of a function add up. */
static void add_line(json_t *lines, const struct body *body, size_t first, size_t end)
{
	int number = body->first + (int16_t)body->sample[first].spot.line;
	double most = 0;
	bool missed = false;
	char key[32];
	json_t *line;

	for (size_t i = first; i < end; i++) {
		most = body->sample[i].count > most ? body->sample[i].count : most;
		missed |= !(body->sample[i].count > 0);
	}
	snprintf(key, sizeof(key), "%d", number);
	line = member(member(lines, body->name), key);
	add_to(line, "count", most);
	if (missed)
		json_object_set_new(line, "missed", json_true());
}

static int by_line(const void *a, const void *b)
{
	const struct sample *one = a, *two = b;

	return (one->spot.line > two->spot.line) - (one->spot.line < two->spot.line);
}

static void add_function(json_t *functions, const struct body *body)
{
	json_t *function = member(functions, body->name);

	json_object_set_new(function, "plain", told_text(body->plain ? body->plain : body->name));
	json_object_set_new(function, "line", json_integer(body->first));
	json_object_set_new(function, "column", json_integer(body->column));
	add_to(function, "count", body->head);
	add_to(function, "blocks", body->blocks);
	add_to(function, "run", body->run);
}

static void add_body(struct body *body, void *arg)
{
	struct document *document = arg;
	json_t *file = body->file ? member(document->files, body->file) : NULL;
	size_t next;

	if (file) {
		qsort(body->sample, body->samples, sizeof(*body->sample), by_line);
		for (size_t i = 0; i < body->samples; i = next) {
			for (next = i + 1; next < body->samples &&
					   !by_line(&body->sample[i], &body->sample[next]);
			     next++)
				;
			add_line(member(file, "lines"), body, i, next);
		}
		add_function(member(file, "functions"), body);
	}
	for (struct body *in = body->inlined; in; in = in->next)
		add_body(in, arg);
}

/* --- As gcov has it -----------------------------------------------------------------------------
 */

static json_t *lines_of(json_t *file)
{
	json_t *array = json_array(), *lines, *line;
	const char *function, *number;

	json_object_foreach(json_object_get(file, "lines"), function, lines)
		json_object_foreach(lines, number, line) json_array_append_new(
			array,
			json_pack("{s:[], s:O, s:i, s:b, s:s}", "branches", "count",
				  json_object_get(line, "count"), "line_number", atoi(number),
				  "unexecuted_block", json_object_get(line, "missed") != NULL,
				  "function_name", function));
	return array;
}

/* The last line that has code. */
static int last_line(json_t *file, const char *function)
{
	const char *number;
	json_t *line;
	int last = 0;

	json_object_foreach(json_object_get(json_object_get(file, "lines"), function), number, line)
		last = atoi(number) > last ? atoi(number) : last;
	return last;
}

static json_t *functions_of(json_t *file)
{
	json_t *array = json_array(), *one;
	const char *name;

	json_object_foreach(json_object_get(file, "functions"), name, one) json_array_append_new(
		array,
		json_pack("{s:O, s:i, s:O, s:s, s:O, s:O, s:O, s:O, s:i}", "blocks",
			  json_object_get(one, "blocks"), "end_column", 0, "start_line",
			  json_object_get(one, "line"), "name", name, "blocks_executed",
			  json_object_get(one, "run"), "execution_count",
			  json_object_get(one, "count"), "demangled_name",
			  json_object_get(one, "plain"), "start_column",
			  json_object_get(one, "column"), "end_line", last_line(file, name)));
	return array;
}

static int put_document(const struct document *document, const char *object, FILE *out)
{
	char *folder = getcwd(NULL, 0);
	json_t *files = json_array(), *root, *file;
	const char *name;
	int ret;

	json_object_foreach(document->files, name, file) json_array_append_new(
		files, json_pack("{s:o, s:o, s:s}", "lines", lines_of(file), "functions",
				 functions_of(file), "file", name));
	root = json_pack("{s:s, s:o, s:s, s:o, s:o}", "gcc_version", "fastinst", "files", files,
			 "format_version", "1", "current_working_directory",
			 told_text(folder ? folder : ""), "data_file", told_text(object));
	ret = json_dumpf(root, out, JSON_PRESERVE_ORDER);
	json_decref(root);
	free(folder);
	fputc('\n', out);
	return ret ? -EIO : 0;
}

int lines_write_gcov(FILE *out, const char *object, const struct seen *seen)
{
	struct document document = { json_object() };
	int ret = document.files ? lines_each(object, seen, add_body, &document) : -ENOMEM;

	if (!ret)
		ret = put_document(&document, object, out);
	json_decref(document.files);
	return ret;
}
