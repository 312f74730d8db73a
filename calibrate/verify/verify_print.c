/* SPDX-License-Identifier: MIT */
#include "calibrate/verify/verify_print.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <jansson.h>

#define COMMAND_MAX 1024
#define SCHEMA	    1

typedef void print_fn(FILE *f, const struct verify *v);

static const char *command_of(const struct verify_cell *c, char command[COMMAND_MAX])
{
	cell_command(&c->cell, command, COMMAND_MAX);
	return command;
}

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

void verify_printable(char *to, size_t size, const char *text)
{
	json_t *valid = json_string(text); /* NULL if it is no UTF-8 */

	snprintf(to, size, "%s", text);
	/* Cut in the middle of a character is no UTF-8 either. */
	if (valid && strlen(text) >= size) {
		json_decref(valid);
		valid = json_string(to);
	}
	for (char *p = to; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f || (!valid && (*p & 0x80)))
			*p = '?';
	json_decref(valid);
}

/* --- text --- */

static void text_header(FILE *f, const struct verify *v)
{
	fprintf(f, "Config:   %s\n", v->config[0] ? v->config : "none found");
	if (!v->have_conf)
		return;
	fprintf(f,
		"Waits:    %" PRIu64 " and %" PRIu64 " ticks, or %" PRIu64
		" store latencies; p = %.3g at %g %% confidence; window %u bytes\n",
		verify_level(v)->first_wait, verify_level(v)->second_wait, verify_level(v)->stretch,
		verify_p(v), 100 * v->conf.confidence, v->conf.window);
	if (v->cells)
		fprintf(f, "Seed:     %" PRIu64 "\n", v->seed);
	if (v->fallback)
		fputs("Cells:    the config names none: line and page at all splits instead\n", f);
}

static void text_cell(FILE *f, const struct verify_cell *c)
{
	char name[256], command[COMMAND_MAX];

	fprintf(f, "%-9s %s: ", verify_status_name(c->status), name_of(c, name));
	if (c->status == STATUS_SKIPPED) {
		fprintf(f, "%s\n", c->reason);
		return;
	}
	fprintf(f, "%" PRIu64 " %s in %.4g toggles", verify_tears(c), tears_word(verify_tears(c)),
		(double)c->toggles);
	if (c->check == CHECK_CONTROL && verify_tears(c))
		fputs(", as it must", f);
	if (c->noisy)
		fprintf(f, ", %u of %u runs noisy", c->noisy, c->runs);
	fprintf(f, "%s%s\n", c->status == STATUS_UNCLEAR ? ": " : "",
		c->status == STATUS_UNCLEAR ? c->reason : "");
	if (c->check != CHECK_CONTROL && verify_tears(c))
		fprintf(f, "%10s%s\n", "", command_of(c, command));
}

static void print_text(FILE *f, const struct verify *v)
{
	text_header(f, v);
	for (unsigned i = 0; i < v->cells; i++)
		text_cell(f, &v->cell[i]);
	fprintf(f, "Verdict:  %s: %s\n", verify_verdict_name(v->verdict), v->reason);
	if (v->cells && v->verdict == VERIFY_HOLDS)
		fprintf(f, "          this run alone says: at most %.3g per toggle, at %g %%\n",
			v->upper_p, 100 * VERIFY_CONFIDENCE);
}

/* --- JSON --- */

static json_t *json_identity(const struct identity *id)
{
	json_t *object = json_object();
	const char *name;
	char value[128], fit[128];

	for (unsigned i = 0; identity_field(id, i, &name, value, sizeof(value)); i++) {
		verify_printable(fit, sizeof(fit), value);
		json_object_set_new(object, name, json_string(fit));
	}
	return object;
}

static json_t *json_cell(const struct verify_cell *c)
{
	char name[256], command[COMMAND_MAX];

	return json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:{s:I, s:I, s:I}, s:I, s:I, s:f, "
		"s:f}",
		"check", verify_check_name(c->check), "name", name_of(c, name), "command",
		command_of(c, command), "status", verify_status_name(c->status), "reason",
		c->reason, "toggles", (json_int_t)c->toggles, "quiet_toggles", (json_int_t)c->quiet,
		"tears", (json_int_t)verify_tears(c), "kinds", "old_front_new_back",
		(json_int_t)c->tears[TEAR_OLD_FRONT], "new_front_old_back",
		(json_int_t)c->tears[TEAR_NEW_FRONT], "other", (json_int_t)c->tears[TEAR_OTHER],
		"runs", (json_int_t)c->runs, "noisy", (json_int_t)c->noisy, "chance", c->chance,
		"seconds", c->seconds);
}

static json_t *json_conf(const struct machine_conf *conf)
{
	const struct machine_conf_level *level = machine_conf_surest(conf);

	return json_pack("{s:I, s:I, s:I, s:f, s:f, s:I, s:i}", "first_wait",
			 (json_int_t)level->first_wait, "second_wait",
			 (json_int_t)level->second_wait, "stretch", (json_int_t)level->stretch, "p",
			 machine_conf_p(level), "confidence", conf->confidence, "toggles",
			 (json_int_t)(level->page.toggles & INT64_MAX), "window",
			 (int)conf->window);
}

static json_t *json_all(const struct verify *v)
{
	json_t *cells = json_array();

	for (unsigned i = 0; i < v->cells; i++)
		json_array_append_new(cells, json_cell(&v->cell[i]));
	return json_pack("{s:s, s:i, s:s, s:s, s:s, s:o, s:o, s:I, s:f, s:f, s:b, s:o, s:I, s:I, "
			 "s:I, s:f, s:f, s:I, s:s, s:i, s:s}",
			 "type", "verify", "schema", SCHEMA, "tool", PACKAGE_STRING, "date",
			 v->date, "config", v->config, "identity",
			 v->have_here ? json_identity(&v->here) : json_null(), "promise",
			 v->have_conf ? json_conf(&v->conf) : json_null(), "seed",
			 (json_int_t)v->seed, "budget", v->budget, "seconds", v->seconds,
			 "fallback", v->fallback, "cells", cells, "toggles", (json_int_t)v->toggles,
			 "quiet_toggles", (json_int_t)v->quiet, "tears", (json_int_t)v->tears,
			 "chance", v->chance, "upper_p", v->upper_p, "missing",
			 (json_int_t)v->missing, "verdict", verify_verdict_name(v->verdict), "exit",
			 v->status, "reason", v->reason);
}

static void print_json(FILE *f, const struct verify *v)
{
	json_t *all = json_all(v);

	if (all)
		json_dumpf(all, f, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	fputc('\n', f);
	json_decref(all);
}

/* --- TAP --- */

/* JSON is YAML. */
static void yaml_text(FILE *f, const char *name, const char *text)
{
	json_t *string = json_string(text);

	fprintf(f, "  %s: ", name);
	if (string)
		json_dumpf(string, f, JSON_ENCODE_ANY);
	fputc('\n', f);
	json_decref(string);
}

static void tap_point(FILE *f, unsigned number, bool good, const char *name, const char *skipped)
{
	fprintf(f, "%s %u - %s", good ? "ok" : "not ok", number, name);
	if (skipped)
		fprintf(f, " # SKIP %s", skipped);
	fputc('\n', f);
}

static void tap_config(FILE *f, const struct verify *v)
{
	tap_point(f, 1, v->verdict != VERIFY_NO_CONF, "config applies to this machine", NULL);
	fputs("  ---\n", f);
	yaml_text(f, "config", v->config);
	if (v->verdict == VERIFY_NO_CONF)
		yaml_text(f, "message", v->reason);
	if (v->have_conf)
		fprintf(f,
			"  first_wait: %" PRIu64 "\n  second_wait: %" PRIu64 "\n  stretch: %" PRIu64
			"\n  p: %.17g\n  seed: %" PRIu64 "\n",
			verify_level(v)->first_wait, verify_level(v)->second_wait,
			verify_level(v)->stretch, verify_p(v), v->seed);
	fputs("  ...\n", f);
}

static bool has_answer(enum verify_status status)
{
	return status == STATUS_HELD || status == STATUS_BROKEN;
}

static void tap_cell(FILE *f, unsigned number, const struct verify_cell *c)
{
	char name[256], command[COMMAND_MAX];

	tap_point(f, number, c->status != STATUS_BROKEN, name_of(c, name),
		  has_answer(c->status) ? NULL : c->reason);
	fputs("  ---\n", f);
	yaml_text(f, "command", command_of(c, command));
	fprintf(f,
		"  tears: %" PRIu64 "\n  toggles: %" PRIu64 "\n  quiet_toggles: %" PRIu64
		"\n  chance: %.3g\n  ...\n",
		verify_tears(c), c->toggles, c->quiet, c->chance);
}

static bool is_failed(const struct verify *v)
{
	return v->verdict == VERIFY_BROKEN || v->verdict == VERIFY_NO_CONF;
}

static void tap_verdict(FILE *f, const struct verify *v)
{
	tap_point(f, v->cells + 2, !is_failed(v), "verdict",
		  v->verdict == VERIFY_INCONCLUSIVE ? v->reason : NULL);
	fputs("  ---\n", f);
	yaml_text(f, "verdict", verify_verdict_name(v->verdict));
	yaml_text(f, "message", v->reason);
	fprintf(f, "  exit: %d\n  ...\n", v->status);
}

static void print_tap(FILE *f, const struct verify *v)
{
	fprintf(f, "TAP version 13\n1..%u\n", v->cells + 2);
	tap_config(f, v);
	for (unsigned i = 0; i < v->cells; i++)
		tap_cell(f, i + 2, &v->cell[i]);
	tap_verdict(f, v);
}

/* --- JUnit --- */

static void xml_text(FILE *f, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", f);
			break;
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		case '"':
			fputs("&quot;", f);
			break;
		default:
			fputc(*text, f);
		}
	}
}

static void xml_attribute(FILE *f, const char *name, const char *text)
{
	fprintf(f, " %s=\"", name);
	xml_text(f, text);
	fputc('"', f);
}

static void xml_property(FILE *f, const char *name, const char *value)
{
	fputs("      <property", f);
	xml_attribute(f, "name", name);
	xml_attribute(f, "value", value);
	fputs("/>\n", f);
}

static void junit_machine(FILE *f, const struct identity *id)
{
	const char *name;
	char value[128], fit[128], full[64];

	for (unsigned i = 0; identity_field(id, i, &name, value, sizeof(value)); i++) {
		verify_printable(fit, sizeof(fit), value);
		snprintf(full, sizeof(full), "machine.%s", name);
		xml_property(f, full, fit);
	}
}

static void junit_number(FILE *f, const char *name, double value)
{
	char text[40];

	snprintf(text, sizeof(text), "%.17g", value);
	xml_property(f, name, text);
}

static void junit_count(FILE *f, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	xml_property(f, name, text);
}

static void junit_properties(FILE *f, const struct verify *v)
{
	fputs("    <properties>\n", f);
	xml_property(f, "tool", PACKAGE_STRING);
	xml_property(f, "config", v->config);
	if (v->have_here)
		junit_machine(f, &v->here);
	if (v->have_conf) {
		junit_count(f, "first_wait", verify_level(v)->first_wait);
		junit_count(f, "second_wait", verify_level(v)->second_wait);
		junit_count(f, "stretch", verify_level(v)->stretch);
		junit_number(f, "p", verify_p(v));
		junit_number(f, "confidence", v->conf.confidence);
	}
	junit_count(f, "seed", v->seed);
	xml_property(f, "verdict", verify_verdict_name(v->verdict));
	junit_count(f, "exit", (uint64_t)v->status);
	fputs("    </properties>\n", f);
}

/* kind: "failure", "skipped", or NULL. */
static void junit_case(FILE *f, const char *class, const char *name, double seconds,
		       const char *kind, const char *message, const char *output)
{
	fputs("    <testcase", f);
	xml_attribute(f, "classname", class);
	xml_attribute(f, "name", name);
	fprintf(f, " time=\"%.3f\">\n", seconds);
	if (kind) {
		fprintf(f, "      <%s", kind);
		xml_attribute(f, "message", message);
		fputs("/>\n", f);
	}
	fputs("      <system-out>", f);
	xml_text(f, output);
	fputs("</system-out>\n    </testcase>\n", f);
}

static void junit_cell(FILE *f, const struct verify_cell *c)
{
	char name[256], command[COMMAND_MAX], class[64], counts[160];
	bool broken = c->status == STATUS_BROKEN;
	const char *kind = broken ? "failure" : has_answer(c->status) ? NULL : "skipped";

	snprintf(class, sizeof(class), "tmax.verify.%s", verify_check_name(c->check));
	snprintf(counts, sizeof(counts), "%" PRIu64 " %s in %" PRIu64 " toggles", verify_tears(c),
		 tears_word(verify_tears(c)), c->toggles);
	junit_case(f, class, name_of(c, name), c->seconds, kind, broken ? counts : c->reason,
		   command_of(c, command));
}

static void junit_verdict(FILE *f, const struct verify *v)
{
	const char *kind = is_failed(v)			       ? "failure"
			   : v->verdict == VERIFY_INCONCLUSIVE ? "skipped"
							       : NULL;

	junit_case(f, "tmax.verify", "verdict", 0, kind, v->reason, v->reason);
}

static unsigned count_tests(const struct verify *v, bool skipped)
{
	unsigned count = skipped ? v->verdict == VERIFY_INCONCLUSIVE
				 : is_failed(v) + (v->verdict == VERIFY_NO_CONF);

	for (unsigned i = 0; i < v->cells; i++)
		count += skipped ? !has_answer(v->cell[i].status)
				 : v->cell[i].status == STATUS_BROKEN;
	return count;
}

static void print_junit(FILE *f, const struct verify *v)
{
	bool refused = v->verdict == VERIFY_NO_CONF;

	fprintf(f,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite "
		"name=\"tmax verify\" tests=\"%u\" failures=\"%u\" errors=\"0\" skipped=\"%u\" "
		"time=\"%.3f\" timestamp=\"%s\">\n",
		v->cells + 2, count_tests(v, false), count_tests(v, true), v->seconds, v->date);
	junit_properties(f, v);
	junit_case(f, "tmax.verify", "config", 0, refused ? "failure" : NULL, v->reason, v->config);
	for (unsigned i = 0; i < v->cells; i++)
		junit_cell(f, &v->cell[i]);
	junit_verdict(f, v);
	fputs("  </testsuite>\n</testsuites>\n", f);
}

static const struct {
	const char *name;
	print_fn *print;
} formats[VERIFY_FORMATS] = {
	[VERIFY_TEXT] = { "text", print_text },
	[VERIFY_TAP] = { "tap", print_tap },
	[VERIFY_JUNIT] = { "junit", print_junit },
	[VERIFY_JSON] = { "json", print_json },
};

int verify_format_parse(const char *name)
{
	for (int i = 0; i < VERIFY_FORMATS; i++)
		if (strcmp(formats[i].name, name) == 0)
			return i;
	return -EINVAL;
}

void verify_print(FILE *f, const struct verify *v, enum verify_format format)
{
	formats[format].print(f, v);
}
