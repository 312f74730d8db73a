/* SPDX-License-Identifier: MIT */
#include "calibrate/program/markup.h"

#include <string.h>

void xml_text(FILE *f, const char *text)
{
	static const char marks[] = "&<>\"";
	static const char *const names[] = { "amp", "lt", "gt", "quot" };

	for (; *text; text++) {
		const char *mark = strchr(marks, *text);

		if (mark)
			fprintf(f, "&%s;", names[mark - marks]);
		else
			fputc(*text, f);
	}
}

void xml_attribute(FILE *f, const char *name, const char *text)
{
	fprintf(f, " %s=\"", name);
	xml_text(f, text);
	fputc('"', f);
}

void xml_property(FILE *f, const char *name, const char *value)
{
	fputs("      <property", f);
	xml_attribute(f, "name", name);
	xml_attribute(f, "value", value);
	fputs("/>\n", f);
}

static void put_value(FILE *f, const json_t *value)
{
	json_dumpf(value, f, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
	fputc('\n', f);
}

void yaml_document(FILE *f, const json_t *object)
{
	const char *name;
	json_t *value, *element;
	size_t i;

	fputs("---\n", f);
	json_object_foreach((json_t *)object, name, value)
	{
		fprintf(f, "%s:%s", name, json_array_size(value) ? "\n" : " ");
		if (!json_array_size(value))
			put_value(f, value);
		json_array_foreach(value, i, element)
		{
			fputs("- ", f);
			put_value(f, element);
		}
	}
	fputs("...\n", f);
}
