/* SPDX-License-Identifier: MIT */
/* tmax litmus: litmus tests of instruction fetch, and what this machine shows of each. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/spelling.h"
#include "commands/tmax/commands.h"
#include "conform/litmus.h"
#include "results/figures/markup.h"
#include "results/journal/journal.h"

#define ROUNDS 8 /* runs of each test, each with memory of its own and other CPUs */

enum format {
	FORMAT_TEXT,
	FORMAT_JSON,
	FORMAT_JUNIT,
	FORMATS
};

/* What became of a test. */
enum litmus_found {
	FOUND_NOTHING, /* that is forbidden */
	FOUND_FORBIDDEN,
	FOUND_MISSING, /* this CPU lacks an instruction */
	FOUND_ERROR,
};

struct litmus_test {
	struct litmus litmus;
	struct litmus_result result;
	enum litmus_verdict said; /* by this machine's vendor */
};

struct litmus_options {
	uint64_t times, seed;
	const char *cpus;
	unsigned format;
	bool list;
	struct litmus_test *test;
	size_t tests;
	unsigned cpu[CPUS_MAX], cpu_count;
	struct identity identity;
};

static int format_parse(const char *name)
{
	static const char *const names[FORMATS] = { "text", "json", "junit" };

	for (int i = 0; i < FORMATS; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -EINVAL;
}

static const struct option_row options[] = {
	{ "times", "N", "instances of each test (1000000)",
	  OPTION_NUMBER(struct litmus_options, times, 1, INT64_MAX) },
	{ "cpus", "LIST", "of the threads, as 0-3 or 0,2 (all that this process may use)",
	  OPTION_TEXT(struct litmus_options, cpus) },
	{ "seed", "N", "of delays, CPUs and order (1)",
	  OPTION_NUMBER(struct litmus_options, seed, 0, INT64_MAX) },
	{ "list", NULL, "tell what each test asks, and what vendors say; run none",
	  OPTION_FLAG(struct litmus_options, list) },
	{ "format", "NAME", "text, json or junit (text)",
	  OPTION_CHOICE(struct litmus_options, format, format_parse) },
	{ 0 },
};

static const struct command_line line = {
	.operands = "[NAME|FILE]...",
	.about = "Run litmus tests in which a store to code is an event, and print outcomes as\n"
		 "litmus7 does. One that the processor's vendor forbids is a defect.\n",
	.options = { options },
	.end = "Without names, all installed tests. tmax-litmus(1) has the format of a FILE.\n"
	       "Exit status: 0 nothing forbidden was seen, 1 something was, 2 a test could not\n"
	       "be run, 64 usage, 69 the machine cannot be read, 130 interrupted.\n",
};

/* --- What is asked for ------------------------------------------------------------------------ */

static int add_test(struct litmus_options *o, const char *name)
{
	struct litmus_test test = { 0 };
	char why[WORDS_WHY];
	int ret = litmus_load(name, &test.litmus, why);

	if (why[0])
		return complain(EXIT_USAGE, 0, "%s", why);
	if (ret < 0)
		return complain(EXIT_USAGE, ret, "no test '%s'", name);
	test.said = litmus_said(&test.litmus, o->identity.vendor);
	return ARRAY_ADD(o->test, o->tests, test) < 0 ? EXIT_INTERNAL : EXIT_PASS;
}

static int choose_tests(struct litmus_options *o, int count, char **names)
{
	int status = EXIT_PASS;
	glob_t all;

	for (int i = 0; i < count && status == EXIT_PASS; i++)
		status = add_test(o, names[i]);
	if (count)
		return status;
	if (litmus_names(&all) < 0)
		return complain(EXIT_MISSING, 0, "the litmus tests are not installed");
	for (size_t i = 0; i < all.gl_pathc && status == EXIT_PASS; i++)
		status = add_test(o, all.gl_pathv[i]);
	globfree(&all);
	return status;
}

static int choose_threads_cpus(struct litmus_options *o)
{
	static struct cpus allowed, asked, beyond;

	if (cpus_allowed(&allowed) < 0)
		return EXIT_MISSING;
	asked = allowed;
	if (o->cpus && (cpus_parse(&asked, o->cpus, strlen(o->cpus)) < 0 ||
			cpus_beyond(&asked, &allowed, &beyond)))
		return refuse_usage("--cpus: CPUs that this process may use, not '%s'", o->cpus);
	for (unsigned i = 0; i < CPUS_MAX; i++)
		if (asked.word[i / 64] >> (i % 64) & 1)
			o->cpu[o->cpu_count++] = i;
	return EXIT_PASS;
}

/* --- Running them ----------------------------------------------------------------------------- */

/* Draw the first so many of n at random (Fisher and Yates). */
static void shuffle_first(unsigned *of, size_t n, size_t first, uint64_t *random)
{
	for (size_t i = 0; i < first && i < n; i++) {
		size_t k = i + random_next(random) % (n - i);
		unsigned kept = of[i];

		of[i] = of[k];
		of[k] = kept;
	}
}

static void run_test(struct litmus_options *o, struct litmus_test *t, uint64_t *random)
{
	const struct run_options how = { .stop = &interrupted };
	unsigned cpu[LITMUS_THREADS];
	struct litmus_result r;
	int ret;

	shuffle_first(o->cpu, o->cpu_count, LITMUS_THREADS, random);
	for (unsigned i = 0; i < LITMUS_THREADS; i++)
		cpu[i] = o->cpu[i % o->cpu_count];
	ret = litmus_run(&t->litmus, cpu, (o->times + ROUNDS - 1) / ROUNDS, random_next(random),
			 &how, &r);
	if (ret < 0)
		r = (struct litmus_result){ .error = ret, .outcome = OUTCOME_ERROR };
	litmus_add(&t->litmus, &t->result, &r);
}

/* All tests in turn, in an order that is drawn for each round. */
static int run_tests(struct litmus_options *o)
{
	unsigned *order = calloc(o->tests + 1, sizeof(*order));
	uint64_t random = o->seed;

	if (!order)
		return EXIT_INTERNAL;
	for (unsigned i = 0; i < o->tests; i++)
		order[i] = i;
	for (unsigned round = 0; round < ROUNDS; round++) {
		shuffle_first(order, o->tests, o->tests, &random);
		for (size_t i = 0; i < o->tests && !interrupted; i++)
			run_test(o, &o->test[order[i]], &random);
	}
	free(order);
	return EXIT_PASS;
}

static enum litmus_found found_by(const struct litmus_test *t)
{
	if (t->said == LITMUS_FORBIDDEN && litmus_seen(&t->litmus, &t->result))
		return FOUND_FORBIDDEN;
	if (t->result.error == -ENOTSUP)
		return FOUND_MISSING;
	return t->result.outcome == OUTCOME_DONE && t->result.instances ? FOUND_NOTHING
									: FOUND_ERROR;
}

static int status_of(const struct litmus_options *o)
{
	int status = EXIT_PASS;

	for (size_t i = 0; i < o->tests; i++) {
		enum litmus_found found = found_by(&o->test[i]);

		if (found == FOUND_FORBIDDEN)
			return EXIT_TEARS;
		if (found == FOUND_ERROR)
			status = EXIT_INCONCLUSIVE;
	}
	return status;
}

/* --- Reports ---------------------------------------------------------------------------------- */

static const char *observation_of(const struct litmus_test *t)
{
	uint64_t seen = litmus_seen(&t->litmus, &t->result);

	return seen == 0 ? "Never" : seen == t->result.instances ? "Always" : "Sometimes";
}

static const char *trouble_of(const struct litmus_test *t, char text[64])
{
	if (t->result.error == -ENOTSUP)
		return "this CPU lacks an instruction of it";
	if (t->result.error)
		return strerror(-t->result.error);
	snprintf(text, 64, "%s, signal %d", outcome_name(t->result.outcome), t->result.signal);
	return text;
}

static void list_test(FILE *f, const struct litmus_test *t)
{
	const struct litmus *l = &t->litmus;

	fprintf(f, "%s: %s\n  AMD: %s, %s\n  Intel: %s, %s\n", l->name, l->about,
		litmus_verdict_name(l->amd.verdict), l->amd.source,
		litmus_verdict_name(l->intel.verdict), l->intel.source);
}

/* As litmus7 prints it, with what the vendor says in a line more. */
static void print_test(FILE *f, const struct litmus_test *t)
{
	const struct litmus *l = &t->litmus;
	const struct litmus_result *r = &t->result;
	uint64_t seen = litmus_seen(l, r);
	char text[LITMUS_STATE_TEXT];

	fprintf(f, "Test %s Allowed\n", l->name);
	if (r->outcome != OUTCOME_DONE)
		fprintf(f, "Not run to its end: %s\n", trouble_of(t, text));
	fprintf(f, "Histogram (%u states)\n", r->states);
	for (unsigned i = 0; i < r->states; i++)
		fprintf(f, "%-8" PRIu64 "%c>%s\n", r->state[i].count,
			litmus_is_asked(l, r->state[i].value) ? '*' : ':',
			litmus_state_text(l, r->state[i].value, text));
	if (r->others)
		fprintf(f, "%-8" PRIu64 ":>other states\n", r->others);
	fprintf(f, "%s\n\nWitnesses\nPositive: %" PRIu64 ", Negative: %" PRIu64 "\n",
		seen ? "Ok" : "No", seen, r->instances - seen);
	fprintf(f, "Condition exists (%s) is %svalidated\n", litmus_state_text(l, NULL, text),
		seen ? "" : "NOT ");
	fprintf(f, "Vendor %s\n", litmus_verdict_name(t->said));
	fprintf(f, "Observation %s %s %" PRIu64 " %" PRIu64 "\nTime %s %.2f\n\n", l->name,
		observation_of(t), seen, r->instances - seen, l->name, r->seconds);
}

static json_t *test_as_json(const struct litmus_test *t)
{
	const struct litmus *l = &t->litmus;
	const struct litmus_result *r = &t->result;
	json_t *states = json_array();
	char text[LITMUS_STATE_TEXT];

	for (unsigned i = 0; i < r->states; i++)
		json_array_append_new(states,
				      json_pack("{s:s, s:I, s:b}", "state",
						litmus_state_text(l, r->state[i].value, text),
						"count", (json_int_t)r->state[i].count, "asked",
						litmus_is_asked(l, r->state[i].value)));
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:s, s:o}", "name",
			 l->name, "exists", litmus_state_text(l, NULL, text), "amd",
			 litmus_verdict_name(l->amd.verdict), "intel",
			 litmus_verdict_name(l->intel.verdict), "breaks", l->breaks, "observation",
			 observation_of(t), "seen", (json_int_t)litmus_seen(l, r), "instances",
			 (json_int_t)r->instances, "other_states", (json_int_t)r->others, "seconds",
			 r->seconds, "outcome", outcome_name(r->outcome), "states", states);
}

static void print_reports(FILE *f, const struct litmus_options *o, const char *begun,
			  double seconds)
{
	static const char *const verdicts[] = { "holds", "broken", "inconclusive" };
	static const char *const junit[] = { NULL, "failure", "skipped", "error" };
	const char *verdict = verdicts[status_of(o)];
	json_t *cases = json_array(), *body;
	char text[64], seed[24], output[512], state[LITMUS_STATE_TEXT];

	for (size_t i = 0; i < o->tests; i++) {
		const struct litmus_test *t = &o->test[i];
		enum litmus_found found = found_by(t);

		if (o->format == FORMAT_TEXT)
			print_test(f, t);
		if (o->format == FORMAT_JSON)
			json_array_append_new(cases, test_as_json(t));
		if (o->format != FORMAT_JUNIT)
			continue;
		snprintf(output, sizeof(output), "%s: %s %" PRIu64 " of %" PRIu64,
			 litmus_state_text(&t->litmus, NULL, state), observation_of(t),
			 litmus_seen(&t->litmus, &t->result), t->result.instances);
		junit_case(cases, "tmax.litmus", t->litmus.name, t->result.seconds, junit[found],
			   found == FOUND_FORBIDDEN ? "a forbidden outcome" : trouble_of(t, text),
			   output);
	}
	snprintf(seed, sizeof(seed), "%" PRIu64, o->seed);
	if (o->format == FORMAT_JUNIT) {
		junit_document(f, "tmax litmus", begun, seconds,
			       json_pack("{s:s, s:o, s:s}", "tool", PACKAGE_STRING, "machine",
					 identity_to_json(&o->identity), "verdict", verdict),
			       cases);
		return;
	}
	body = json_pack("{s:o, s:s, s:i, s:s, s:f, s:o}", "identity",
			 identity_to_json(&o->identity), "seed", seed, "cpus", (int)o->cpu_count,
			 "verdict", verdict, "seconds", seconds, "tests", cases);
	if (o->format == FORMAT_JSON)
		journal_tell(f, journal_line("litmus", body));
	json_decref(body);
	if (o->format != FORMAT_TEXT)
		return;
	fputs("Verdict: ", f);
	put_verdict(f, verdict, status_of(o));
	fputc('\n', f);
}

int cmd_litmus(int argc, char **argv)
{
	static struct litmus_options o = { .times = 1000000, .seed = 1 };
	char begun[DATE_ROOM];
	double begin;
	int status = command_line_parse(&line, argc, argv, &o, NULL);

	if (status == EXIT_PASS)
		status = machine_here(&o.identity);
	if (status == EXIT_PASS)
		status = choose_tests(&o, argc - optind, argv + optind);
	if (status == EXIT_PASS)
		status = choose_threads_cpus(&o);
	date_text(time(NULL), false, begun);
	begin = seconds_now();
	for (size_t i = 0; o.list && status == EXIT_PASS && i < o.tests; i++)
		list_test(stdout, &o.test[i]);
	if (status == EXIT_PASS && !o.list) {
		status = run_tests(&o);
		if (status == EXIT_PASS) {
			print_reports(stdout, &o, begun, seconds_now() - begin);
			status = status_of(&o);
			if (interrupted && status != EXIT_TEARS)
				status = EXIT_INTERRUPTED;
		}
	}
	free(o.test);
	return status;
}
