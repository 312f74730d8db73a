/* SPDX-License-Identifier: MIT */
#include "results/figures/markup.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit_status.h"
#include "base/number.h"
#include "results/figures/html.h"
#include "results/journal/journal.h"

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

char *waits_words(const struct waits *waits, uint64_t tsc_khz, char buf[WAITS_WORDS_TEXT])
{
	uint64_t longer = waits->first > waits->second ? waits->first : waits->second;
	char least[TICKS_TEXT] = "", stretch[64] = "";

	if (longer || !waits->stretch)
		ticks_text(least, (double)longer, tsc_khz);
	if (waits->stretch)
		snprintf(stretch, sizeof(stretch), "%s%" PRIu64 " times the store's own latency",
			 longer ? ", or " : "", waits->stretch);
	snprintf(buf, WAITS_WORDS_TEXT, "%s%s", least, stretch);
	return buf;
}

/* As text of HTML, in ASCII; or with what XML would take for its own named. */
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

/* A blank, name="text". */
static void xml_attribute(FILE *f, const char *name, const char *text)
{
	fprintf(f, " %s=\"", name);
	put_escaped(f, text, false);
	fputc('"', f);
}

void junit_case(json_t *cases, const char *class, const char *name, double seconds,
		const char *status, const char *message, const char *output)
{
	json_array_append_new(cases, json_pack("{s:s, s:s, s:f, s:s, s:s, s:s}", "class", class,
					       "name", name, "seconds", seconds, "status",
					       status ? status : "passed", "message", message,
					       "output", output));
}

static void put_properties(FILE *f, const char *of, json_t *properties)
{
	const char *name;
	json_t *value;

	json_object_foreach(properties, name, value)
	{
		char *text = json_dumps(value, JSON_ENCODE_ANY);
		const char *string = json_string_value(value);

		if (json_is_object(value)) {
			put_properties(f, name, value);
		} else {
			fprintf(f, "      <property name=\"%s%s%s\"", of, *of ? "." : "", name);
			xml_attribute(f, "value", string ? string : text);
			fputs("/>\n", f);
		}
		free(text);
	}
}

static void put_case(FILE *f, const json_t *c)
{
	const char *status = json_text_of(c, "status");

	fputs("    <testcase", f);
	xml_attribute(f, "classname", json_text_of(c, "class"));
	xml_attribute(f, "name", json_text_of(c, "name"));
	fprintf(f, " time=\"%.3f\">\n", json_number_value(json_object_get(c, "seconds")));
	if (strcmp(status, "passed") != 0) {
		fprintf(f, "      <%s", status);
		xml_attribute(f, "message", json_text_of(c, "message"));
		fputs("/>\n", f);
	}
	fputs("      <system-out>", f);
	put_escaped(f, json_text_of(c, "output"), false);
	fputs("</system-out>\n    </testcase>\n", f);
}

void junit_document(FILE *f, const char *suite, const char *date, double seconds,
		    json_t *properties, json_t *cases)
{
	unsigned failures = 0, errors = 0, skipped = 0;
	const json_t *c;
	size_t i;

	json_array_foreach(cases, i, c)
	{
		failures += strcmp(json_text_of(c, "status"), "failure") == 0;
		errors += strcmp(json_text_of(c, "status"), "error") == 0;
		skipped += strcmp(json_text_of(c, "status"), "skipped") == 0;
	}
	fprintf(f,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite "
		"name=\"%s\" tests=\"%zu\" failures=\"%u\" errors=\"%u\" skipped=\"%u\" "
		"time=\"%.3f\" timestamp=\"%s\">\n    <properties>\n",
		suite, json_array_size(cases), failures, errors, skipped, seconds, date);
	put_properties(f, "", properties);
	fputs("    </properties>\n", f);
	json_array_foreach(cases, i, c) put_case(f, c);
	fputs("  </testsuite>\n</testsuites>\n", f);
	json_decref(properties);
	json_decref(cases);
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
