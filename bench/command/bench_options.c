/* SPDX-License-Identifier: MIT */
#include "bench/command/bench_options.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "calibrate/program/command_line.h"
#include "calibrate/program/exit_status.h"

#define ROUNDS	    20
#define ROUNDS_MAX  10000
#define STRETCH	    4
#define WAITS_MAX   3
#define NUMBER_TEXT 32

const struct bench_entry bench_entries[BENCH_ENTRIES] = {
	{ "toggle", bench_toggle },	    { "latency", bench_latency },
	{ "throughput", bench_throughput }, { "scaling", bench_scaling },
	{ "latent", bench_latent },	    { "stall", bench_stall },
	{ "invoke", bench_invoke },
};

/* "FIRST,SECOND" or "FIRST,SECOND,STRETCH" */
static bool take_waits(const struct option_row *row, const char *text, void *request, char *why)
{
	struct bench_request *r = request;
	const struct {
		uint64_t min, max, *wait;
	} list[WAITS_MAX] = {
		{ 1, CELL_WAIT_MAX, &r->first_wait },
		{ 1, CELL_WAIT_MAX, &r->second_wait },
		{ 0, CELL_STRETCH_MAX, &r->stretch },
	};
	char number[NUMBER_TEXT];

	(void)row;
	r->have_waits = true;
	r->stretch = STRETCH;
	for (unsigned i = 0; i < WAITS_MAX; i++) {
		size_t length = strcspn(text, ",");

		snprintf(number, sizeof(number), "%.*s", (int)length, text);
		if (!number_in(number, list[i].min, list[i].max, list[i].wait))
			break;
		text += length;
		if (!*text && i > 0)
			return true;
		text += *text == ',';
	}
	snprintf(why, OPTION_WHY,
		 "must be FIRST,SECOND or FIRST,SECOND,STRETCH: ticks from 1 to %" PRIu64
		 ", stretch from 0 to %d",
		 CELL_WAIT_MAX, CELL_STRETCH_MAX);
	return false;
}

static const struct option_row options[] = {
	{ "rounds", "N", "times that every case is measured (20)",
	  OPTION_NUMBER(struct bench_request, rounds, 1, ROUNDS_MAX) },
	{ "seed", "N", "of the order of the cases (drawn, and told)",
	  OPTION_NUMBER(struct bench_request, seed, 0, INT64_MAX) },
	{ "executors", "N", "the most there may be; default: one on each CPU but one",
	  OPTION_NUMBER(struct bench_request, executors, 1, PLACEMENT_EXECUTORS_MAX) },
	{ "waits", "LIST",
	  "FIRST,SECOND or FIRST,SECOND,STRETCH: time policy wait with these ticks, and with a "
	  "stretch of STRETCH (4), although no machine.conf allows them. This tells costs only; "
	  "nothing is claimed about safety",
	  .take = take_waits },
	{ "no-peers", NULL, "leave out those that run outside this program",
	  OPTION_FLAG(struct bench_request, no_peers) },
	{ "journal", "FILE", "append a line per benchmark",
	  OPTION_FILE(struct bench_request, journal) },
	{ "figure", "PREFIX", "draw PREFIX-BENCHMARK.svg and .png with gnuplot",
	  OPTION_FILE(struct bench_request, figure) },
	{ "json", NULL, "one line of JSON per benchmark instead of text",
	  OPTION_FLAG(struct bench_request, json) },
	{ "quiet", NULL, "no progress on standard error",
	  OPTION_FLAG(struct bench_request, quiet) },
	{ 0 },
};

static const struct command_line line = {
	.name = "bench",
	.operands = "BENCHMARK...|all",
	.about = "What patching costs here, beside what one would use instead: as medians with\n"
		 "their intervals, and as ratios to a baseline measured in turn.\n"
		 "\n"
		 "  toggle      one change, by protocol, split, policy and mapping\n"
		 "  latency     its distribution over 20,000 sites\n"
		 "  throughput  calls through a site toggled 0 to 10 million times a second\n"
		 "  scaling     more patchers, executors and sites\n"
		 "  latent      a site that is switched off, in a loop\n"
		 "  stall       what an executor loses while its site is changed\n"
		 "  invoke      the call that a site makes which is switched on\n",
	.options = { options },
	.end = "Without --waits policy wait needs a machine.conf of this machine. What cannot be\n"
	       "measured is skipped with its reason.\n"
	       "Exit status: 0, 64 usage, 69 needs two CPUs, 70 executions do not add up, 73\n"
	       "cannot create, 74 cannot write, 130 interrupted.\n",
};

static const struct bench_entry *entry_named(const char *name)
{
	for (unsigned i = 0; i < BENCH_ENTRIES; i++)
		if (strcmp(name, bench_entries[i].name) == 0)
			return &bench_entries[i];
	return NULL;
}

static int take_all(struct bench_request *r)
{
	for (r->entries = 0; r->entries < BENCH_ENTRIES; r->entries++)
		r->entry[r->entries] = &bench_entries[r->entries];
	return EXIT_PASS;
}

static int take_entry(struct bench_request *r, const char *name)
{
	const struct bench_entry *entry = entry_named(name);

	if (!entry)
		return refuse_usage("no benchmark '%s'", name);
	for (unsigned i = 0; i < r->entries; i++)
		if (r->entry[i] == entry)
			return refuse_usage("benchmark '%s' is there twice", name);
	r->entry[r->entries++] = entry;
	return EXIT_PASS;
}

static int take_entries(struct bench_request *r, char **names, int count)
{
	int status = EXIT_PASS;

	if (!count)
		return refuse_usage("say which benchmark, or all");
	if (count == 1 && strcmp(names[0], "all") == 0)
		return take_all(r);
	for (int i = 0; i < count && status == EXIT_PASS; i++)
		status = take_entry(r, names[i]);
	return status;
}

int bench_options(int argc, char **argv, struct bench_request *r)
{
	int status;

	*r = (struct bench_request){ .rounds = ROUNDS, .seed = BENCH_NO_SEED };
	status = command_line_parse(&line, argc, argv, r, NULL);
	return status == EXIT_PASS ? take_entries(r, argv + optind, argc - optind) : status;
}
