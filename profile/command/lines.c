/* SPDX-License-Identifier: MIT */
/* Counts of lines as LLVM's text of sample profiles, and as gcov's JSON. */
#include "profile/command/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/text.h"

/* --- LLVM ------------------------------------------------------------------------------------- */

ORDER_BY(by_offset, struct sample, offset)

static double sum_up(struct body *body)
{
	body->total = 0;
	for (size_t i = 0; i < body->samples; i++)
		body->total += body->sample[i].count;
	for (struct body *in = body->inlined; in; in = in->next)
		body->total += sum_up(in);
	return body->total;
}

static void put_offset(FILE *out, int depth, line_offset offset)
{
	fprintf(out, "%*s%u", depth, "", (unsigned)(offset >> 32));
	if ((uint32_t)offset)
		fprintf(out, ".%u", (uint32_t)offset);
	fputs(": ", out);
}

/* "COUNT FUNCTION:COUNT ...": the functions that calls of the line led to. */
static void put_sample(FILE *out, const struct sample *sample)
{
	fprintf(out, "%.0f", sample->count);
	for (size_t i = 0; i < sample->targets; i++) {
		if (!(sample->target[i].count >= 0.5))
			continue;
		fputc(' ', out);
		text_put_plain(out, sample->target[i].function, ": ");
		fprintf(out, ":%.0f", sample->target[i].count);
	}
	fputc('\n', out);
}

static void put_lines(FILE *out, struct body *body, int depth)
{
	qsort(body->sample, body->samples, sizeof(*body->sample), by_offset);
	for (size_t i = 0; i < body->samples; i++) {
		put_offset(out, depth, body->sample[i].offset);
		put_sample(out, &body->sample[i]);
	}
	for (struct body *in = body->inlined; in; in = in->next) {
		if (!(in->total > 0))
			continue;
		put_offset(out, depth, in->at);
		text_put_plain(out, in->name, "");
		fprintf(out, ":%.0f\n", in->total);
		put_lines(out, in, depth + 1);
	}
}

static void put_body(struct body *body, void *arg)
{
	FILE *out = arg;

	if (!(sum_up(body) > 0))
		return;
	text_put_plain(out, body->name, "");
	fprintf(out, ":%.0f:%.0f\n", body->total, body->head);
	put_lines(out, body, 1);
}

int lines_write_llvm(const struct executed *executed, FILE *out)
{
	return lines_each(executed, put_body, out);
}

/* --- gcov: a line of an inlined function has the counts of all its copies --------------------- */

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

/* The blocks of a line are run as often as the most of them; copies of a function add up. */
static void add_gcov_line(json_t *lines, json_t *function, const struct body *body, size_t first,
			  size_t end)
{
	int number = body->first + (int16_t)(body->sample[first].offset >> 32);
	double most = 0;
	bool missed = false;
	json_t *line;
	char *key;

	for (size_t i = first; i < end; i++) {
		most = body->sample[i].count > most ? body->sample[i].count : most;
		missed |= !(body->sample[i].count > 0);
	}
	if (asprintf(&key, "%s %d", body->name, number) < 0)
		return;
	line = find_member(lines, key,
			   json_pack("{s:[], s:i, s:i, s:b, s:o}", "branches", "count", 0,
				     "line_number", number, "unexecuted_block", false,
				     "function_name", name_json(body->name)));
	free(key);
	count_more(line, "count", (json_int_t)(most + 0.5));
	if (missed)
		json_object_set_new(line, "unexecuted_block", json_true());
	/* The last line that has code. */
	if (number > json_integer_value(json_object_get(function, "end_line")))
		json_object_set_new(function, "end_line", json_integer(number));
}

ORDER_BY(by_line, struct sample, offset >> 32)

static json_t *add_gcov_function(json_t *functions, const struct body *body)
{
	json_t *function = find_member(
		functions, body->name,
		json_pack("{s:i, s:i, s:i, s:o, s:i, s:i, s:o, s:i, s:i}", "blocks", 0,
			  "end_column", 0, "start_line", body->first, "name", name_json(body->name),
			  "blocks_executed", 0, "execution_count", 0, "demangled_name",
			  name_json(body->plain ? body->plain : body->name), "start_column",
			  body->column, "end_line", 0));

	count_more(function, "execution_count", (json_int_t)(body->head + 0.5));
	count_more(function, "blocks", body->blocks);
	count_more(function, "blocks_executed", body->run);
	return function;
}

/* Files by name: "lines" by function and number, and "functions" by name. */
static void add_gcov_body(struct body *body, void *files)
{
	json_t *file = body->file ? find_member(files, body->file, json_object()) : NULL;
	size_t next;

	if (file) {
		json_t *lines = find_member(file, "lines", json_object());
		json_t *function =
			add_gcov_function(find_member(file, "functions", json_object()), body);

		qsort(body->sample, body->samples, sizeof(*body->sample), by_line);
		for (size_t i = 0; i < body->samples; i = next) {
			for (next = i + 1; next < body->samples &&
					   !by_line(&body->sample[i], &body->sample[next]);
			     next++)
				;
			add_gcov_line(lines, function, body, i, next);
		}
	}
	for (struct body *in = body->inlined; in; in = in->next)
		add_gcov_body(in, files);
}

static json_t *list_members(json_t *object)
{
	json_t *array = json_array(), *one;
	const char *name;

	json_object_foreach(object, name, one)
	{
		json_array_append(array, one);
	}
	return array;
}

static int put_document(json_t *by_name, const char *object, FILE *out)
{
	char *folder = getcwd(NULL, 0);
	json_t *files = json_array(), *root, *file;
	const char *name;
	int ret;

	json_object_foreach(by_name, name, file)
	{
		json_array_append_new(
			files,
			json_pack("{s:o, s:o, s:s}", "lines",
				  list_members(json_object_get(file, "lines")), "functions",
				  list_members(json_object_get(file, "functions")), "file", name));
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

int lines_write_gcov(const struct executed *executed, FILE *out)
{
	json_t *files = json_object();
	int ret = files ? lines_each(executed, add_gcov_body, files) : -ENOMEM;

	if (!ret)
		ret = put_document(files, executed->block->object, out);
	json_decref(files);
	return ret;
}
