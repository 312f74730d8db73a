/* SPDX-License-Identifier: MIT */
/*
 * A judged verification as text for people, JUnit's XML, and JSON.
 *
 * JUnit has a test for the config, one per cell and one for the verdict. What is skipped or gave no
 * answer is a skipped test there, with the reason: the exit status tells an inconclusive run from
 * one that held.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/command_line.h"
#include "base/number.h"
#include "calibrate/verify/verify.h"
#include "results/figures/markup.h"

#define COMMAND_MAX 1024
#define INT(number) ((json_int_t)(number))

/* What a protocol is to show tells its name, except which of the controls it is. */
static const char *name_of(const struct verify_cell *c, char name[256])
{
	const struct cell *cell = &c->cell;
	bool control = c->check == CHECK_CONTROL;
	char provokers[PROVOKERS_MAX];

	snprintf(name, 256, "%s%s%s %s %s split %u %s executors %u%s%s",
		 verify_check_name(c->check), control ? " " : "",
		 control ? protocol_name(cell->protocol) : "", placement_name(cell->placement),
		 crossing_name(cell->crossing), cell->split, pair_name(cell->pair), cell->executors,
		 cell->provokers ? " " : "",
		 cell->provokers ? provokers_name(cell->provokers, provokers) : "");
	return name;
}

static void print_text(FILE *f, const struct verify *v)
{
	fprintf(f, "Config:   %s\n", v->config[0] ? v->config : "none found");
	if (v->have_conf && v->cells)
		fprintf(f, "Waits:    %s ticks; p = %s at %s %% confidence; window %u bytes\n",
			WAITS(&verify_level(v)->waits), NUMBER(verify_p(v)),
			NUMBER(100 * v->conf.confidence), v->conf.window);
	if (v->have_conf && v->cells)
		fprintf(f, "Seed:     %" PRIu64 "\n", v->seed);
	if (v->have_conf && v->fallback)
		fputs("Cells:    the config names none: line and page at all splits instead\n", f);
	for (const struct verify_cell *c = v->cell; c < v->cell + v->cells; c++) {
		uint64_t tears = verify_tears(c);
		char text[COMMAND_MAX];

		fprintf(f, "%-9s %s: ", verify_status_name(c->status), name_of(c, text));
		if (c->status == STATUS_SKIPPED) {
			fprintf(f, "%s\n", c->reason);
			continue;
		}
		fprintf(f, "%" PRIu64 " %s in %s toggles", tears, tears_word(tears),
			NUMBER(c->toggles));
		if (c->check == CHECK_CONTROL && tears)
			fputs(", as it must", f);
		if (c->noisy)
			fprintf(f, ", %u of %u runs noisy", c->noisy, c->runs);
		fprintf(f, "%s%s\n", c->status == STATUS_UNCLEAR ? ": " : "",
			c->status == STATUS_UNCLEAR ? c->reason : "");
		cell_command(&c->cell, text, sizeof(text));
		if (c->check != CHECK_CONTROL && tears)
			fprintf(f, "%10s%s\n", "", text);
	}
	for (const struct verify_promise *p = v->promise; p < v->promise + v->promises; p++) {
		fprintf(f, "%-9s promise %s: %s\n", verify_status_name(p->status), p->name,
			p->reason);
		if (p->command[0])
			fprintf(f, "%10s%s\n", "", p->command);
	}
	fputs("Verdict:  ", f);
	put_verdict(f, verify_verdict_name(v->verdict), v->status);
	fprintf(f, ": %s\n", v->reason);
	if (v->cells && v->verdict == VERIFY_HOLDS)
		fprintf(f, "          this run alone says: at most %s per toggle, at %s %%\n",
			NUMBER(v->upper_p), NUMBER(100 * VERIFY_CONFIDENCE));
}

static json_t *report_json(const struct verify *v)
{
	json_t *cells = json_array(), *promises = json_array(), *promise = json_null();
	json_t *one;
	const struct machine_conf_level *level = verify_level(v);
	char name[256], command[COMMAND_MAX];

	for (const struct verify_cell *c = v->cell; c < v->cell + v->cells; c++) {
		cell_command(&c->cell, command, sizeof(command));
		one = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:{s:I, s:I, s:I}, "
				"s:I, s:I, s:f, s:f}",
				"check", verify_check_name(c->check), "name", name_of(c, name),
				"command", command, "status", verify_status_name(c->status),
				"reason", c->reason, "toggles", INT(c->toggles), "quiet_toggles",
				INT(c->quiet), "tears", INT(verify_tears(c)), "kinds",
				"old_front_new_back", INT(c->tears[TEAR_OLD_FRONT]),
				"new_front_old_back", INT(c->tears[TEAR_NEW_FRONT]), "other",
				INT(c->tears[TEAR_OTHER]), "runs", INT(c->runs), "noisy",
				INT(c->noisy), "chance", c->chance, "seconds", c->seconds);
		json_array_append_new(cells, one);
	}
	for (const struct verify_promise *p = v->promise; p < v->promise + v->promises; p++) {
		one = json_pack("{s:s, s:s, s:I, s:I, s:f, s:s, s:s}", "name", p->name, "status",
				verify_status_name(p->status), "trials", INT(p->trials), "failures",
				INT(p->failures), "seconds", p->seconds, "reason", p->reason,
				"command", p->command);
		json_array_append_new(promises, one);
	}
	if (v->have_conf)
		promise = json_pack("{s:I, s:I, s:I, s:f, s:f, s:I, s:i}", "first_wait",
				    INT(level->waits.first), "second_wait",
				    INT(level->waits.second), "stretch", INT(level->waits.stretch),
				    "p", verify_p(v), "confidence", v->conf.confidence, "toggles",
				    INT(level->page.toggles & INT64_MAX), "window",
				    (int)v->conf.window);
	return json_pack("{s:s, s:o, s:o, s:o, s:f, s:f, s:b, s:o, s:o, s:I, s:I, s:I, s:f, "
			 "s:f, s:I, s:s, s:i, s:s}",
			 "config", v->config, "identity",
			 v->have_here ? identity_to_json(&v->here) : json_null(), "promise",
			 promise, "seed", seed_to_json(v->seed), "budget", v->budget, "seconds",
			 v->seconds, "fallback", v->fallback, "cells", cells, "promises", promises,
			 "toggles", INT(v->toggles), "quiet_toggles", INT(v->quiet), "tears",
			 INT(v->tears), "chance", v->chance, "upper_p", v->upper_p, "missing",
			 INT(v->missing), "verdict", verify_verdict_name(v->verdict), "exit",
			 v->status, "reason", v->reason);
}

static void print_json(FILE *f, const struct verify *v)
{
	json_t *body = report_json(v);

	if (body)
		journal_tell(f, journal_line("verify", body));
	json_decref(body);
}

/* --- Tests, for JUnit ------------------------------------------------------------------------- */

/* The config is a test, and each cell, each promise, and the verdict. */
struct point {
	double seconds;
	char name[256];
	char class[64];
	char message[420];  /* why it failed or was skipped */
	char command[4096]; /* what it was */
	bool failed, skipped;
};

static unsigned test_points(const struct verify *v)
{
	return v->cells + v->promises + 2;
}

static struct point point_of(const struct verify *v, unsigned i)
{
	struct point p = { .class = "tmax.verify" };

	if (i > 0 && i <= v->cells) {
		const struct verify_cell *c = &v->cell[i - 1];

		p.seconds = c->seconds;
		p.failed = c->status == STATUS_BROKEN;
		p.skipped = c->status == STATUS_SKIPPED || c->status == STATUS_UNCLEAR;
		name_of(c, p.name);
		cell_command(&c->cell, p.command, COMMAND_MAX);
		snprintf(p.class, sizeof(p.class), "tmax.verify.%s", verify_check_name(c->check));
		snprintf(p.message, sizeof(p.message), "%s", c->reason);
		if (p.failed)
			snprintf(p.message, sizeof(p.message),
				 "%" PRIu64 " %s in %" PRIu64 " toggles", verify_tears(c),
				 tears_word(verify_tears(c)), c->toggles);
	} else if (i > v->cells && i + 1 < test_points(v)) {
		const struct verify_promise *promise = &v->promise[i - v->cells - 1];

		strcpy(p.class, "tmax.verify.promise");
		p.seconds = promise->seconds;
		p.failed = promise->status == STATUS_BROKEN;
		p.skipped = promise->status == STATUS_SKIPPED;
		snprintf(p.name, sizeof(p.name), "promise %s", promise->name);
		snprintf(p.message, sizeof(p.message), "%s", promise->reason);
		snprintf(p.command, sizeof(p.command), "%s",
			 promise->command[0] ? promise->command : promise->reason);
	} else {
		p.failed = v->verdict == VERIFY_NO_CONF || (i > 0 && v->verdict == VERIFY_BROKEN);
		p.skipped = i > 0 && v->verdict == VERIFY_INCONCLUSIVE;
		snprintf(p.name, sizeof(p.name), i > 0 ? "verdict" : "config");
		snprintf(p.message, sizeof(p.message), "%s", v->reason);
		snprintf(p.command, sizeof(p.command), "%s", i > 0 ? v->reason : v->config);
	}
	return p;
}

static void put_property(FILE *f, const char *name, const json_t *value)
{
	char *text = json_dumps(value, JSON_ENCODE_ANY);
	const char *string = json_string_value(value);

	xml_property(f, name, string ? string : text ? text : "");
	free(text);
}

static void print_junit(FILE *f, const struct verify *v)
{
	json_t *report = report_json(v), *member;
	unsigned failures = 0, skipped = 0;
	char value[128], full[64];
	const char *name;

	for (unsigned i = 0; i < test_points(v); i++) {
		struct point p = point_of(v, i);

		failures += p.failed;
		skipped += p.skipped;
	}
	fprintf(f,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite "
		"name=\"tmax verify\" tests=\"%u\" failures=\"%u\" errors=\"0\" skipped=\"%u\" "
		"time=\"%.3f\" timestamp=\"%s\">\n    <properties>\n",
		test_points(v), failures, skipped, v->seconds, v->date);
	xml_property(f, "tool", PACKAGE_STRING);
	xml_property(f, "config", v->config);
	for (unsigned i = 0;
	     v->have_here && identity_field(&v->here, i, &name, value, sizeof(value)); i++) {
		snprintf(full, sizeof(full), "machine.%s", name);
		xml_property(f, full, value);
	}
	json_object_foreach(json_object_get(report, "promise"), name, member)
		put_property(f, name, member);
	put_property(f, "seed", json_object_get(report, "seed"));
	put_property(f, "verdict", json_object_get(report, "verdict"));
	put_property(f, "exit", json_object_get(report, "exit"));
	fputs("    </properties>\n", f);
	for (unsigned i = 0; i < test_points(v); i++) {
		struct point p = point_of(v, i);

		fputs("    <testcase", f);
		xml_attribute(f, "classname", p.class);
		xml_attribute(f, "name", p.name);
		fprintf(f, " time=\"%.3f\">\n", p.seconds);
		if (p.failed || p.skipped) {
			fprintf(f, "      <%s", p.failed ? "failure" : "skipped");
			xml_attribute(f, "message", p.message);
			fputs("/>\n", f);
		}
		fputs("      <system-out>", f);
		xml_text(f, p.command);
		fputs("</system-out>\n    </testcase>\n", f);
	}
	fputs("  </testsuite>\n</testsuites>\n", f);
	json_decref(report);
}

static const struct {
	const char *name;
	void (*print)(FILE *f, const struct verify *v);
} formats[] = {
	[VERIFY_TEXT] = { "text", print_text },
	[VERIFY_JUNIT] = { "junit", print_junit },
	[VERIFY_JSON] = { "json", print_json },
};

int verify_format_parse(const char *name)
{
	for (int i = 0; i <= VERIFY_JSON; i++)
		if (strcmp(formats[i].name, name) == 0)
			return i;
	return -EINVAL;
}

void verify_print(FILE *f, const struct verify *v, enum verify_format format)
{
	formats[format].print(f, v);
}
