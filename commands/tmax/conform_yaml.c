/* SPDX-License-Identifier: MIT */
/*
 * In the way of OpenDCDiag's logs (docs/opendcdiag-cpu.schema.yaml of that project), so that fleets
 * that read these can read ours. Times are in milliseconds there.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <jansson.h>

#include "commands/tmax/conform_print.h"
#include "results/figures/markup.h"
#include "results/journal/journal.h"

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
	char *mask = calloc(r->cpus + 1, 1);
	json_t *json;

	if (!mask)
		return json_null();
	memset(mask, '.', r->cpus);
	for (int i = 0; i < r->tried->suspects; i++)
		mask[r->tried->suspect[i].cpu] = 'X';
	json = r->tried->suspects ? json_string(mask) : json_null();
	free(mask);
	return json;
}

static json_t *test_to_json(const struct conform_report *r, const struct tried *t, const char *now)
{
	const char *result = t->failures ? "fail" : t->trials ? "pass" : "skip";
	json_t *threads = json_array(), *test;
	char seed[40], reason[256], text[256], command[256];
	unsigned n = 0;

	snprintf(seed, sizeof(seed), "splitmix64:%" PRIu64, r->seed);
	test = json_pack("{s:s, s:{s:s, s:s}, s:{s:s, s:i, s:b}, s:o, s:s, s:o, s:f}", "test",
			 t->guarantee->name, "details", "quality", "production", "description",
			 t->guarantee->promise, "state", "seed", seed, "iteration", 0, "retry", 0,
			 "time-at-start", time_to_json(0, r->begun), "result", result,
			 "time-at-end", time_to_json(r->tried->seconds, now), "test-runtime",
			 MS * t->seconds);
	tried_reason(t, reason, sizeof(reason));
	if (!t->trials) {
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
	if (t->failures)
		json_object_set_new(test, "fail",
				    json_pack("{s:o, s:f, s:s, s:f}", "cpu-mask", mask_of_failed(r),
					      "time-to-fail", MS * t->until, "seed", seed,
					      "reproduction-rate", (double)t->failed / t->cells));
	json_object_set_new(test, "threads", threads);
	return test;
}

void conform_print_yaml(FILE *f, const struct conform_report *r)
{
	static const char *const exits[] = { "pass", "fail", "invalid" };
	const struct conformance *c = r->tried;
	bool broken = conformance_status(c) == CONFORM_BROKEN;
	json_t *cpus = json_array(), *tests = json_array(), *all;
	struct utsname un;
	char os[160], now[32];

	uname(&un);
	snprintf(os, sizeof(os), "%s %s", un.sysname, un.release);
	journal_date(now, sizeof(now));
	for (unsigned i = 0; i < r->cpus; i++)
		json_array_append_new(cpus, cpu_to_json(r, r->cpu[i]));
	for (unsigned i = 0; i < c->count; i++)
		json_array_append_new(tests, test_to_json(r, &c->tried[i], now));
	all = json_pack("{s:s, s:s, s:s, s:s, s:{s:s}, s:{s:f, s:f}, s:o, s:{s:[{s:i, s:i, s:i}], "
			"s:[]}, s:o, s:s}",
			"command-line", r->command, "version", PACKAGE_STRING, "os", os, "runtime",
			"libc", "virtualization-state", "vm", r->identity->hypervisor, "timing",
			"duration", MS * c->seconds, "timeout", MS * r->budget, "cpu-info", cpus,
			"test-plans", "fullsocket", "starting_cpu", (int)r->cpu[0], "count",
			(int)r->cpus, "threads", 2, "heuristic", "tests", tests, "exit",
			r->interrupted && !broken ? "interrupted" : exits[conformance_status(c)]);
	yaml_document(f, all);
	json_decref(all);
}
