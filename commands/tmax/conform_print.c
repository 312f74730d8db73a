/* SPDX-License-Identifier: MIT */
#include "commands/tmax/conform_print.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "results/figures/markup.h"
#include "results/journal/journal.h"

#define TEXT_MAX 256

typedef void print_fn(FILE *f, const struct conform_report *r);

/* The command that runs a cell again, and where it failed: for a shell, a comment. */
static void put_command(const struct conform_report *r, const struct failed *failed, char *text,
			size_t size)
{
	const struct identity *id = r->identity;
	char command[TEXT_MAX];

	conform_command(&failed->cell, command, sizeof(command));
	snprintf(text, size, "%s # %s%s%s %u-%u-%u, microcode %s, hypervisor %s", command,
		 failed->result.test, failed->result.test[0] ? " on " : "", id->vendor, id->family,
		 id->model, id->stepping, id->microcode, id->hypervisor);
}

/* --- text ------------------------------------------------------------------------------------- */

static const char *duration_text(double seconds, char text[32])
{
	static const struct {
		double seconds;
		const char *unit;
	} units[] = { { 365.25 * 86400, "y" }, { 86400, "d" }, { 3600, "h" }, { 60, "min" } };

	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (seconds < units[i].seconds)
			continue;
		snprintf(text, 32, "%.2g %s", seconds / units[i].seconds, units[i].unit);
		if (seconds / units[i].seconds >= 100)
			snprintf(text, 32, "%s %s", NUMBER(seconds / units[i].seconds),
				 units[i].unit);
		return text;
	}
	snprintf(text, 32, "%.2g s", seconds);
	return text;
}

static void put_how_long(FILE *f, const struct conform_report *r)
{
	static const double rates[] = { 1e-6, 1e-8, 1e-10, 1e-12 };
	char text[32];

	fputs("How long until a defect of so many failures per trial shows with 99 %, at the speed "
	      "of this run:\n",
	      f);
	fprintf(f, "  %-10s  %9s", "", "trials/s");
	for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		fprintf(f, "  %9s", NUMBER(rates[i]));
	fputc('\n', f);
	for (unsigned k = 0; k < r->tried->count; k++) {
		const struct tried *t = &r->tried->tried[k];
		double speed = t->seconds > 0 ? (double)t->trials / t->seconds : 0;

		if (speed <= 0)
			continue;
		fprintf(f, "  %-10s  %9s", t->guarantee->name, NUMBER(speed));
		for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
			fprintf(f, "  %9s",
				duration_text(seconds_to_exclude(rates[i], speed), text));
		fputc('\n', f);
	}
	fprintf(f,
		"  of each promise alone (--only); in a run of all %u, %u times as long. One bad "
		"CPU of %u: %u times that\n",
		r->tried->count, r->tried->count, r->asked->cpus, r->asked->cpus);
}

static void put_suspects(FILE *f, const struct conform_report *r)
{
	const struct conformance *c = r->tried;

	for (int i = 0; i < c->suspects; i++) {
		const struct suspect *s = &c->suspect[i];

		fprintf(f, "Suspect: CPU %u%s%s: %u of its %u cells failed; p = %s over all CPUs\n",
			r->asked->cpu[s->cpu], s->role == ROLE_EITHER ? "" : " as the ",
			s->role == ROLE_EITHER ? "" : role_name(s->role), s->failed, s->cells,
			NUMBER(s->chance));
	}
	if (c->suspects == 0)
		fprintf(f, "Suspect: no CPU stands out of %u: no defect of one core is shown\n",
			r->asked->cpus);
}

static void print_text(FILE *f, const struct conform_report *r)
{
	const struct identity *id = r->identity;
	static const char *const next[] = {
		[CONFORMS] = "nothing",
		[CONFORM_BROKEN] =
			"keep work off the suspect CPU, and show its vendor the commands",
		[CONFORM_INCONCLUSIVE] = "run it again, longer (--budget)",
	};
	const struct conformance *c = r->tried;
	char text[2 * TEXT_MAX];

	fprintf(f, "Machine: %s, microcode %s, hypervisor %s, %u CPU%s\n", id->brand, id->microcode,
		id->hypervisor, r->asked->cpus, S(r->asked->cpus));
	for (unsigned i = 0; i < c->count; i++) {
		const struct tried *t = &c->tried[i];

		tried_reason(t, text, sizeof(text));
		fprintf(f, "%-10s  %-10s  %s\n", promise_status_name(tried_status(t)),
			t->guarantee->name, text);
		if (t->failures)
			fprintf(f, "%24s%s (%s)\n", "", t->guarantee->promise,
				t->guarantee->source);
	}
	for (unsigned i = 0; i < c->faileds; i++) {
		const struct conform_result *result = &c->failed[i].result;

		put_command(r, &c->failed[i], text, sizeof(text));
		if (result->outcome == OUTCOME_CRASH)
			fprintf(f, "  signal %d: %s\n", result->signal, text);
		else
			fprintf(f, "  wanted %" PRIu64 ", got %" PRIu64 ": %s\n", result->wanted,
				result->got, text);
	}
	if (c->faileds)
		put_suspects(f, r);
	if (r->how_long)
		put_how_long(f, r);
	fputs("Verdict: ", f);
	put_verdict(f, conformance_verdict(c), (int)conformance_status(c));
	fprintf(f, "\nNext:    %s\n", next[conformance_status(c)]);
	if (r->interrupted)
		fputs("Interrupted: the above is of the time until then; the same command begins "
		      "anew\n",
		      f);
}

/* --- JUnit ------------------------------------------------------------------------------------ */

static void print_junit(FILE *f, const struct conform_report *r)
{
	static const char *const junit_statuses[] = {
		[PROMISE_HOLDS] = NULL,	       [PROMISE_BROKEN] = "failure",
		[PROMISE_UNCLEAR] = "skipped", [PROMISE_TOO_LITTLE] = "skipped",
		[PROMISE_ERROR] = "error",     [PROMISE_UNTRIED] = "skipped",
	};
	const struct conformance *c = r->tried;
	json_t *cases = json_array();
	json_t *properties =
		json_pack("{s:s, s:o, s:s}", "tool", PACKAGE_STRING, "machine",
			  identity_to_json(r->identity), "verdict", conformance_verdict(c));
	char reason[TEXT_MAX], text[2 * TEXT_MAX];

	for (int i = 0; i < c->suspects; i++) {
		snprintf(text, sizeof(text), i ? "suspect.%d" : "suspect", i + 1);
		json_object_set_new(properties, text,
				    json_sprintf("CPU %u", r->asked->cpu[c->suspect[i].cpu]));
	}
	for (const struct tried *t = c->tried; t < c->tried + c->count; t++) {
		char *output = NULL;
		size_t size;
		FILE *memory = open_memstream(&output, &size);

		tried_reason(t, reason, sizeof(reason));
		fputs(reason, memory);
		for (unsigned k = 0; k < c->faileds; k++) {
			if (c->failed[k].cell.guarantee != t->guarantee)
				continue;
			put_command(r, &c->failed[k], text, sizeof(text));
			fprintf(memory, "\n%s", text);
		}
		fclose(memory);
		junit_case(cases, "tmax.conform", t->guarantee->name, t->seconds,
			   junit_statuses[tried_status(t)], reason, output);
		free(output);
	}
	junit_document(f, "tmax conform", r->begun, c->seconds, properties, cases);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void print_json(FILE *f, const struct conform_report *r)
{
	json_t *promises = json_array(), *failed = json_array(), *suspects = json_array(), *body;
	const struct conformance *c = r->tried;
	char seed[24], text[2 * TEXT_MAX];

	for (const struct tried *t = c->tried; t < c->tried + c->count; t++)
		json_array_append_new(
			promises,
			json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:i, s:f, s:f, s:o}",
				  "name", t->guarantee->name, "promise", t->guarantee->promise,
				  "source", t->guarantee->source, "status",
				  promise_status_name(tried_status(t)), "trials",
				  (json_int_t)t->trials, "failures", (json_int_t)t->failures,
				  "cells", (int)t->cells, "failed_cells", (int)t->failed,
				  "hung_cells", (int)t->hung, "rate_shown",
				  rate_excluded(t->trials), "seconds", t->seconds, "until_failure",
				  t->failures ? json_real(t->until) : json_null()));
	for (const struct failed *l = c->failed; l < c->failed + c->faileds; l++) {
		put_command(r, l, text, sizeof(text));
		json_array_append_new(
			failed, json_pack("{s:s, s:i, s:i, s:i, s:I, s:I, s:s}", "name",
					  l->cell.guarantee->name, "writer", (int)l->cell.writer,
					  "executor", (int)l->cell.executor, "signal",
					  l->result.signal, "wanted", (json_int_t)l->result.wanted,
					  "got", (json_int_t)l->result.got, "command", text));
	}
	for (int i = 0; i < c->suspects; i++)
		json_array_append_new(suspects, json_pack("{s:i, s:s, s:i, s:i, s:f}", "cpu",
							  (int)r->asked->cpu[c->suspect[i].cpu],
							  "role", role_name(c->suspect[i].role),
							  "cells", (int)c->suspect[i].cells,
							  "failed_cells", (int)c->suspect[i].failed,
							  "chance", c->suspect[i].chance));
	snprintf(seed, sizeof(seed), "%" PRIu64, r->asked->seed);
	body = json_pack("{s:o, s:s, s:i, s:f, s:f, s:s, s:o, s:o, s:o}", "identity",
			 identity_to_json(r->identity), "seed", seed, "cpus", (int)r->asked->cpus,
			 "budget", r->asked->budget, "seconds", c->seconds, "verdict",
			 conformance_verdict(c), "promises", promises, "failed", failed, "suspects",
			 suspects);
	if (body)
		journal_tell(f, journal_line("conform", body));
	json_decref(body);
}

/* --- In the way of OpenDCDiag's logs (docs/opendcdiag-cpu.schema.yaml of that project) -------- */

/* Times are in milliseconds there. */
#define MS 1000.0

static json_t *time_to_json(double seconds, const char *date)
{
	return json_pack("{s:f, s:s}", "elapsed", MS * seconds, "now", date);
}

static json_t *cpu_to_json(const struct conform_report *r, unsigned cpu)
{
	const struct identity *id = r->identity;
	char *end;
	uint64_t number = strtoull(id->microcode, &end, 16);
	bool known = end != id->microcode && !*end;

	/* As OpenDCDiag has it: a hexadecimal number, null where it is not known. */
	return json_pack("{s:i, s:i, s:i, s:i, s:o}", "logical", (int)cpu, "family",
			 (int)id->family, "model", (int)id->model, "stepping", (int)id->stepping,
			 "microcode", known ? json_integer((json_int_t)number) : json_null());
}

/* The CPUs that stand out, one character for each CPU, as OpenDCDiag marks them. */
static json_t *mask_of_failed(const struct conform_report *r)
{
	char *mask = calloc(r->asked->cpus + 1, 1);
	json_t *json;

	if (!mask)
		return json_null();
	memset(mask, '.', r->asked->cpus);
	for (int i = 0; i < r->tried->suspects; i++)
		mask[r->tried->suspect[i].cpu] = 'X';
	json = r->tried->suspects ? json_string(mask) : json_null();
	free(mask);
	return json;
}

static json_t *test_to_json(const struct conform_report *r, const struct tried *t, const char *now)
{
	enum promise_status status = tried_status(t);
	const char *result = status == PROMISE_BROKEN  ? "fail"
			     : status == PROMISE_HOLDS ? "pass"
						       : "skip";
	json_t *threads = json_array(), *test;
	char seed[40], reason[256], text[256], command[256];
	unsigned n = 0;

	snprintf(seed, sizeof(seed), "splitmix64:%" PRIu64, r->asked->seed);
	test = json_pack("{s:s, s:{s:s, s:s}, s:{s:s, s:i, s:b}, s:o, s:s, s:o, s:f}", "test",
			 t->guarantee->name, "details", "quality", "production", "description",
			 t->guarantee->promise, "state", "seed", seed, "iteration", 0, "retry", 0,
			 "time-at-start", time_to_json(0, r->begun), "result", result,
			 "time-at-end", time_to_json(r->tried->seconds, now), "test-runtime",
			 MS * t->seconds);
	tried_reason(t, reason, sizeof(reason));
	if (strcmp(result, "skip") == 0) {
		json_object_set_new(test, "skip-category", json_string("RuntimeSkip"));
		json_object_set_new(test, "skip-reason", json_string(reason));
	}
	for (unsigned i = 0; i < r->tried->faileds; i++) {
		const struct failed *f = &r->tried->failed[i];

		if (f->cell.guarantee != t->guarantee)
			continue;
		conform_command(&f->cell, command, sizeof(command));
		snprintf(text, sizeof(text), "%s: wanted %" PRIu64 ", got %" PRIu64 ", signal %d",
			 f->result.outcome == OUTCOME_CRASH ? "crash" : "mismatch",
			 f->result.wanted, f->result.got, f->result.signal);
		json_array_append_new(
			threads,
			json_pack("{s:i, s:o, s:s, s:f, s:I, s:[{s:s, s:s}, {s:s, s:s}]}", "thread",
				  (int)n++, "id", cpu_to_json(r, f->cell.executor), "state",
				  "failed", "time-to-fail", MS * f->result.until, "loop-count",
				  (json_int_t)f->result.trials, "messages", "level", "error",
				  "text", text, "level", "info", "text", command));
	}
	if (status == PROMISE_BROKEN)
		json_object_set_new(test, "fail",
				    json_pack("{s:o, s:f, s:s, s:f}", "cpu-mask", mask_of_failed(r),
					      "time-to-fail", MS * t->until, "seed", seed,
					      "reproduction-rate", (double)t->failed / t->cells));
	json_object_set_new(test, "threads", threads);
	return test;
}

static void print_yaml(FILE *f, const struct conform_report *r)
{
	static const char *const exits[] = { "pass", "fail", "invalid" };
	const struct conformance *c = r->tried;
	bool broken = conformance_status(c) == CONFORM_BROKEN;
	json_t *cpus = json_array(), *tests = json_array(), *all;
	struct utsname un;
	char os[160], now[32];

	uname(&un);
	snprintf(os, sizeof(os), "%s %s", un.sysname, un.release);
	date_text(time(NULL), false, now);
	for (unsigned i = 0; i < r->asked->cpus; i++)
		json_array_append_new(cpus, cpu_to_json(r, r->asked->cpu[i]));
	for (unsigned i = 0; i < c->count; i++)
		json_array_append_new(tests, test_to_json(r, &c->tried[i], now));
	all = json_pack("{s:s, s:s, s:s, s:s, s:{s:s}, s:{s:f, s:f}, s:o, s:{s:[{s:i, s:i, s:i}], "
			"s:[]}, s:o, s:s}",
			"command-line", r->command, "version", PACKAGE_STRING, "os", os, "runtime",
			"libc", "virtualization-state", "vm", r->identity->hypervisor, "timing",
			"duration", MS * c->seconds, "timeout", MS * r->asked->budget, "cpu-info",
			cpus, "test-plans", "fullsocket", "starting_cpu", (int)r->asked->cpu[0],
			"count", (int)r->asked->cpus, "threads", 2, "heuristic", "tests", tests,
			"exit",
			r->interrupted && !broken ? "interrupted" : exits[conformance_status(c)]);
	yaml_document(f, all);
	json_decref(all);
}

static const struct {
	const char *name;
	print_fn *print;
} formats[] = {
	{ "text", print_text },
	{ "junit", print_junit },
	{ "json", print_json },
	{ "opendcdiag", print_yaml },
};

int conform_format_parse(const char *name)
{
	for (unsigned i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcmp(formats[i].name, name) == 0)
			return (int)i;
	return -EINVAL;
}

void conform_print(FILE *f, const struct conform_report *r, unsigned format)
{
	formats[format].print(f, r);
}
