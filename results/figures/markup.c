/* SPDX-License-Identifier: MIT */
#include "results/figures/markup.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit_status.h"
#include "results/figures/html.h"

void put_verdict(FILE *out, const char *name, int status)
{
	const char *refused = getenv("NO_COLOR"), *terminal = getenv("TERM");
	int colour = status == EXIT_PASS ? 32 : status == EXIT_TEARS ? 31 : 33;

	if (isatty(fileno(out)) && !(refused && *refused) && terminal && *terminal &&
	    strcmp(terminal, "dumb") != 0)
		fprintf(out, "\033[1;%dm%s\033[0m", colour, name);
	else
		fputs(name, out);
}

static void put_escaped(FILE *f, const char *text, bool ascii)
{
	static const char marks[] = "&<>\"'";
	static const char *const names[] = { "amp", "lt", "gt", "quot", "#39" };

	for (; *text; text++) {
		const char *mark = strchr(marks, *text);

		if (mark)
			fprintf(f, "&%s;", names[mark - marks]);
		else
			fputc(ascii && (*text < ' ' || *text > '~') ? '?' : *text, f);
	}
}

void html_text(FILE *out, const char *text)
{
	put_escaped(out, text, true);
}

void xml_text(FILE *f, const char *text)
{
	put_escaped(f, text, false);
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
