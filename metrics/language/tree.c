/* SPDX-License-Identifier: MIT */
/*
 * The tree of a text: its memory, which goes at once; how a text is read; how an error in it is
 * shown.
 */
#include "metrics/language/tree.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "metrics/language/grammar.h"
#include "metrics/language/reader.h"

#define BLOCK 4096

int mdl_yylex_init_extra(struct mdl_reader *reader, void **scanner);
void *mdl_yy_scan_bytes(const char *text, int len, void *scanner);
int mdl_yylex_destroy(void *scanner);

/* --- Memory ----------------------------------------------------------------------------------- */

struct mdl_block {
	struct mdl_block *next;
	size_t used, size;
	_Alignas(16) char bytes[];
};

void *mdl_alloc(struct mdl *mdl, size_t size)
{
	struct mdl_block *block = mdl->memory;
	void *memory;

	size = (size + 15) / 16 * 16;
	if (!block || block->size - block->used < size) {
		size_t room = size > BLOCK ? size : BLOCK;

		block = calloc(1, sizeof(*block) + room);
		if (!block)
			return NULL;
		block->size = room;
		block->next = mdl->memory;
		mdl->memory = block;
	}
	memory = block->bytes + block->used;
	block->used += size;
	return memory;
}

void mdl_free(struct mdl *mdl)
{
	while (mdl->memory) {
		struct mdl_block *next = mdl->memory->next;

		free(mdl->memory);
		mdl->memory = next;
	}
	*mdl = (struct mdl){ 0 };
}

void *reader_new(struct mdl_reader *reader, size_t size)
{
	void *memory = mdl_alloc(reader->mdl, size);

	reader->no_memory |= !memory;
	return memory;
}

const char *reader_copy(struct mdl_reader *reader, const char *word, size_t len)
{
	char *copy = reader_new(reader, len + 1);

	return copy ? memcpy(copy, word, len) : "";
}

/* --- Places and errors ------------------------------------------------------------------------ */

struct mdl_place reader_pass(struct mdl_reader *reader, const char *word, size_t len)
{
	struct mdl_place place = { reader->line, reader->column };

	for (size_t i = 0; i < len; i++) {
		reader->column++;
		if (word[i] != '\n')
			continue;
		reader->line++;
		reader->column = 1;
	}
	return place;
}

int mdl_fault(struct mdl_error *error, struct mdl_place place, const char *format, ...)
{
	va_list list;

	if (*error->text)
		return -EINVAL;
	error->place = place;
	va_start(list, format);
	vsnprintf(error->text, sizeof(error->text), format, list);
	va_end(list);
	return -EINVAL;
}

/* A tab stands below a tab, so that the caret is below the word. */
void mdl_complain(FILE *out, const char *file, const char *text, const struct mdl_error *error)
{
	const char *line = text;
	size_t len;

	for (unsigned i = 1; i < error->place.line && strchr(line, '\n'); i++)
		line = strchr(line, '\n') + 1;
	len = strcspn(line, "\n");
	text_put_plain(out, file, "");
	fprintf(out, ":%u:%u: ", error->place.line, error->place.column);
	text_put_plain(out, error->text, "");
	fputs("\n\t", out);
	for (size_t i = 0; i < len; i++)
		fputc(line[i] == '\t' || (unsigned char)line[i] >= ' ' ? line[i] : '?', out);
	fputs("\n\t", out);
	for (size_t i = 0; i < len && i + 1 < error->place.column; i++)
		if (line[i] == '\t' || (line[i] & 0xc0) != 0x80)
			fputc(line[i] == '\t' ? '\t' : ' ', out);
	fputs("^\n", out);
}

/* --- Texts ------------------------------------------------------------------------------------ */

int mdl_read(struct mdl *mdl, const char *text, struct mdl_error *error)
{
	struct mdl_reader reader = { .mdl = mdl, .error = error, .line = 1, .column = 1 };
	size_t len = strlen(text);
	void *scanner;
	int ret;

	*mdl = (struct mdl){ 0 };
	*error = (struct mdl_error){ 0 };
	if (len >= INT_MAX / 2 || mdl_yylex_init_extra(&reader, &scanner))
		return -ENOMEM;
	ret = mdl_yy_scan_bytes(text, (int)len, scanner) ? mdl_yyparse(scanner, &reader) : 2;
	mdl_yylex_destroy(scanner);
	if (reader.no_memory || ret == 2)
		return -ENOMEM;
	if (ret && !*error->text)
		mdl_fault(error, (struct mdl_place){ reader.line, reader.column },
			  "it cannot be read");
	return ret ? -EINVAL : 0;
}

struct mdl_list *mdl_list_named(const struct mdl *mdl, const char *name)
{
	struct mdl_list *list = mdl->lists;

	while (list && strcmp(list->name.text, name) != 0)
		list = list->next;
	return list;
}

struct mdl_constraint *mdl_constraint_named(const struct mdl *mdl, const char *name)
{
	struct mdl_constraint *constraint = mdl->constraints;

	while (constraint && strcmp(constraint->name.text, name) != 0)
		constraint = constraint->next;
	return constraint;
}

struct mdl_metric *mdl_metric_named(const struct mdl *mdl, const char *name)
{
	struct mdl_metric *metric = mdl->metrics;

	while (metric && strcmp(metric->name.text, name) != 0)
		metric = metric->next;
	return metric;
}
