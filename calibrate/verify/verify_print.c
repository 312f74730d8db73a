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

/* How the library changes sites, for what it is to accept. */
static void put_levels(FILE *f, const struct verify *v)
{
	uint64_t khz = v->conf.identity.tsc_khz;

	for (int claim = 0; claim < CLAIMS; claim++) {
		const struct machine_conf_level *level = verify_level(v, claim);

		fprintf(f, "%-9s across a %s two waits of %s: below %s",
			claim ? "" : "Waits:", claim_name(claim), WAITS_WORDS(&level->waits, khz),
			NUMBER(verify_p(v, claim)));
		if (level->rest)
			fprintf(f, ", if unchanged for %s before", TICKS(level->rest, khz));
		fputs(verify_p(v, claim) > v->accept_p ? "; more than is accepted\n" : "\n", f);
	}
	fprintf(f,
		"Accepted: %s tears per change; a window of %u bytes; %s %% confidence\n"
		"Seed:     %" PRIu64 "\n",
		NUMBER(v->accept_p), v->conf.window, NUMBER(100 * v->conf.confidence), v->seed);
}

static void print_text(FILE *f, const struct verify *v)
{
	static const char *const next[] = {
		[VERIFY_HOLDS] = "nothing",
		[VERIFY_BROKEN] = "let no program wait by it: remove it, and run tmax calibrate",
		[VERIFY_INCONCLUSIVE] = "run it again, longer (--budget) or on a quiet machine",
		[VERIFY_NO_CONF] = "run tmax calibrate",
	};
	double stores = 0;
	unsigned held = 0;

	fprintf(f, "Config:   %s\n", v->config[0] ? v->config : "none found");
	if (v->have_conf && v->cells)
		put_levels(f, v);
	for (const struct verify_cell *c = v->cell; c < v->cell + v->cells; c++) {
		uint64_t tears = verify_tears(c);
		char text[COMMAND_MAX];

		/* One line for all boundaries inside the window that held. */
		if (c->check == CHECK_WINDOW && c->status == STATUS_HELD) {
			stores += (double)c->count.toggles;
			held++;
			continue;
		}
		fprintf(f, "%-9s %s: ", verify_status_name(c->status), name_of(c, text));
		if (c->status == STATUS_SKIPPED) {
			fprintf(f, "%s\n", c->reason);
			continue;
		}
		if (c->check == CHECK_CONTROL && tears)
			fputs("tore, as it must", f);
		else
			fprintf(f, "%" PRIu64 " %s in %s exposed toggles", tears, tears_word(tears),
				NUMBER(c->count.toggles));
		if (c->noisy)
			fprintf(f, ", %u of %u runs noisy", c->noisy, c->runs);
		fprintf(f, "%s%s\n", c->status == STATUS_UNCLEAR ? ": " : "",
			c->status == STATUS_UNCLEAR ? c->reason : "");
		cell_command(&c->cell, text, sizeof(text));
		if (c->check != CHECK_CONTROL && tears)
			fprintf(f, "%10s%s\n", "", text);
	}
	if (held)
		fprintf(f, "%-9s window of %u bytes: no tear in %s stores, at %u places in it\n",
			verify_status_name(STATUS_HELD), v->conf.window, NUMBER(stores), held);
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
	fprintf(f, "Next:     %s\n", next[v->verdict]);
}

static json_t *level_json(const struct verify *v, int claim)
{
	const struct machine_conf_level *level = verify_level(v, claim);
	const struct machine_conf_bound *bound = verify_bound(level, claim);

	return json_pack("{s:I, s:I, s:I, s:f, s:f, s:I, s:I}", "first_wait",
			 INT(level->waits.first), "second_wait", INT(level->waits.second),
			 "stretch", INT(level->waits.stretch), "p", bound->upper_p, "spread",
			 verify_spread(v, claim), "toggles", INT(bound->toggles & INT64_MAX),
			 "rest", INT(level->rest));
}

static json_t *report_json(const struct verify *v)
{
	json_t *cells = json_array(), *promises = json_array(), *promise = json_null();
	json_t *one;
	char name[256], command[COMMAND_MAX];

	for (const struct verify_cell *c = v->cell; c < v->cell + v->cells; c++) {
		cell_command(&c->cell, command, sizeof(command));
		one = json_pack(
			"{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:{s:I, s:I, s:I}, "
			"s:I, s:I, s:f}",
			"check", verify_check_name(c->check), "name", name_of(c, name), "command",
			command, "status", verify_status_name(c->status), "reason", c->reason,
			"toggles", INT(c->count.toggles), "quiet_toggles", INT(c->quiet.toggles),
			"tears", INT(verify_tears(c)), "kinds", "old_front_new_back",
			INT(c->tears[TEAR_OLD_FRONT]), "new_front_old_back",
			INT(c->tears[TEAR_NEW_FRONT]), "other", INT(c->tears[TEAR_OTHER]), "runs",
			INT(c->runs), "noisy", INT(c->noisy), "seconds", c->seconds);
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
		promise =
			json_pack("{s:f, s:o, s:o, s:f, s:i}", "accept_p", v->accept_p, "line",
				  level_json(v, CLAIM_LINE), "page", level_json(v, CLAIM_PAGE),
				  "confidence", v->conf.confidence, "window", (int)v->conf.window);
	return json_pack("{s:s, s:o, s:o, s:o, s:f, s:f, s:o, s:o, s:I, s:I, s:I, s:f, "
			 "s:I, s:s, s:i, s:s}",
			 "config", v->config, "identity",
			 v->have_here ? identity_to_json(&v->here) : json_null(), "promise",
			 promise, "seed", seed_to_json(v->seed), "budget", v->budget, "seconds",
			 v->seconds, "cells", cells, "promises", promises, "toggles",
			 INT(v->toggles), "quiet_toggles", INT(v->quiet), "tears", INT(v->tears),
			 "upper_p", v->upper_p, "missing", INT(v->missing), "verdict",
			 verify_verdict_name(v->verdict), "exit", v->status, "reason", v->reason);
}

static void print_json(FILE *f, const struct verify *v)
{
	json_t *body = report_json(v);

	if (body)
		journal_tell(f, journal_line("verify", body));
	json_decref(body);
}

/* --- JUnit ------------------------------------------------------------------------------------ */

/* Cells or promises of the report. */
static void put_cases(json_t *cases, const json_t *list)
{
	char class[64], name[512];
	const json_t *one;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)list, i, one)
	{
		const char *check = json_string_value(json_object_get(one, "check")),
			   *status = json_text_of(one, "status");
		const char *reason = json_text_of(one, "reason");
		const char *command = json_text_of(one, "command");

		snprintf(class, sizeof(class), "tmax.verify.%s", check ? check : "promise");
		snprintf(name, sizeof(name), "%s%s", check ? "" : "promise ",
			 json_text_of(one, "name"));
		junit_case(cases, class, name, json_number_value(json_object_get(one, "seconds")),
			   strcmp(status, "held") == 0	   ? NULL
			   : strcmp(status, "broken") == 0 ? "failure"
							   : "skipped",
			   reason, *command ? command : reason);
	}
}

static void print_junit(FILE *f, const struct verify *v)
{
	json_t *report = report_json(v), *cases = json_array();
	json_t *properties = json_pack("{s:s, s:s}", "tool", PACKAGE_STRING, "config", v->config);

	if (v->have_here)
		json_object_set_new(properties, "machine", identity_to_json(&v->here));
	json_object_update(properties, json_object_get(report, "promise"));
	for (const char *const *of = (const char *const[]){ "seed", "verdict", "exit", NULL }; *of;
	     of++)
		json_object_set(properties, *of, json_object_get(report, *of));
	junit_case(cases, "tmax.verify", "config", 0,
		   v->verdict == VERIFY_NO_CONF ? "failure" : NULL, v->reason, v->config);
	put_cases(cases, json_object_get(report, "cells"));
	put_cases(cases, json_object_get(report, "promises"));
	junit_case(cases, "tmax.verify", "verdict", 0,
		   v->verdict == VERIFY_HOLDS	       ? NULL
		   : v->verdict == VERIFY_INCONCLUSIVE ? "skipped"
						       : "failure",
		   v->reason, v->reason);
	junit_document(f, "tmax verify", v->date, v->seconds, properties, cases);
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
