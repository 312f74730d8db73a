/* SPDX-License-Identifier: MIT */
#include "bench/command/bench_options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "calibrate/program/exit_status.h"
#include "calibrate/program/options.h"

#define ROUNDS	    20
#define ROUNDS_MAX  10000
#define STRETCH	    4
#define WAITS_MAX   3
#define NUMBER_TEXT 32

enum {
	OPTION_ROUNDS = 1,
	OPTION_SEED_OF_RUN,
	OPTION_MOST_EXECUTORS,
	OPTION_WAITS,
	OPTION_JOURNAL,
	OPTION_FIGURE,
	OPTION_JSON,
	OPTION_NO_PEERS,
	OPTION_QUIET,
	OPTION_HELP,
};

static const char help[] =
	"Usage: tmax bench [OPTION]... BENCHMARK...\n"
	"       tmax bench [OPTION]... all\n"
	"What patching costs here, beside what one would use instead: as medians with\n"
	"their intervals, and as ratios to a baseline measured in turn.\n"
	"\n"
	"  toggle      one change, by protocol, split, policy and mapping\n"
	"  latency     its distribution over 20,000 sites\n"
	"  throughput  calls through a site that is toggled 0 to 10 million times a second\n"
	"  scaling     more patchers, executors and sites\n"
	"  latent      a site that is switched off, in a loop\n"
	"  stall       what an executor loses while its site is changed\n"
	"  invoke      the call that a site makes which is switched on\n"
	"\n"
	"  --rounds N       times that every case is measured (20)\n"
	"  --seed N         of the order of the cases (drawn, and told)\n"
	"  --executors N    the most there may be; default: one on each CPU but one\n"
	"  --waits LIST     FIRST,SECOND or FIRST,SECOND,STRETCH: time policy wait with\n"
	"                   these ticks, and with a stretch of STRETCH (4), although no\n"
	"                   machine.conf allows them. This tells costs only; nothing is\n"
	"                   claimed about safety\n"
	"  --no-peers       leave out those that run outside this program\n"
	"  --journal FILE   append a line per benchmark\n"
	"  --figure PREFIX  draw PREFIX-BENCHMARK.svg and .png with gnuplot\n"
	"  --json           one line of JSON per benchmark instead of text\n"
	"  --quiet          no progress on standard error\n"
	"  --help\n"
	"\n"
	"Without --waits policy wait needs a machine.conf of this machine. What cannot be\n"
	"measured is skipped with its reason. Exit status: 0, 64 usage, 69 needs two CPUs,\n"
	"70 executions do not add up, 73 cannot create, 74 cannot write, 130 interrupted.\n";

static const struct option options[] = {
	{ "rounds", required_argument, NULL, OPTION_ROUNDS },
	{ "seed", required_argument, NULL, OPTION_SEED_OF_RUN },
	{ "executors", required_argument, NULL, OPTION_MOST_EXECUTORS },
	{ "waits", required_argument, NULL, OPTION_WAITS },
	{ "no-peers", no_argument, NULL, OPTION_NO_PEERS },
	{ "journal", required_argument, NULL, OPTION_JOURNAL },
	{ "figure", required_argument, NULL, OPTION_FIGURE },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "quiet", no_argument, NULL, OPTION_QUIET },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ 0 },
};

const struct bench_entry bench_entries[BENCH_ENTRIES] = {
	{ "toggle", bench_toggle },	    { "latency", bench_latency },
	{ "throughput", bench_throughput }, { "scaling", bench_scaling },
	{ "latent", bench_latent },	    { "stall", bench_stall },
	{ "invoke", bench_invoke },
};

void bench_help(void)
{
	fputs(help, stdout);
}

/* The number up to a comma or the end. NULL: it is none; else what is behind it. */
static const char *one_wait(const char *text, uint64_t min, uint64_t max, uint64_t *wait)
{
	size_t length = strcspn(text, ",");
	char number[NUMBER_TEXT];

	snprintf(number, sizeof(number), "%.*s", (int)length, text);
	if (!option_u64("waits", number, min, max, wait))
		return NULL;
	return text + length;
}

static bool take_waits(const char *text, struct bench_request *r)
{
	const struct {
		uint64_t min, max, *wait;
	} list[WAITS_MAX] = {
		{ 1, CELL_WAIT_MAX, &r->first_wait },
		{ 1, CELL_WAIT_MAX, &r->second_wait },
		{ 0, CELL_STRETCH_MAX, &r->stretch },
	};
	const char *at = text;

	r->have_waits = true;
	r->stretch = STRETCH;
	for (unsigned i = 0; i < WAITS_MAX; i++) {
		at = one_wait(at, list[i].min, list[i].max, list[i].wait);
		if (!at)
			return false;
		if (!*at && i > 0)
			return true;
		at += *at == ',';
	}
	usage_error("bench", "--waits '%s': FIRST,SECOND or FIRST,SECOND,STRETCH", text);
	return false;
}

static bool take_number(int option, const char *text, struct bench_request *r)
{
	switch (option) {
	case OPTION_ROUNDS:
		return option_u64("rounds", text, 1, ROUNDS_MAX, &r->rounds);
	case OPTION_SEED_OF_RUN:
		r->have_seed = true;
		return option_u64("seed", text, 0, INT64_MAX, &r->seed);
	case OPTION_MOST_EXECUTORS:
		return option_u64("executors", text, 1, PLACEMENT_EXECUTORS_MAX, &r->executors);
	case OPTION_WAITS:
		return take_waits(text, r);
	}
	return false;
}

static bool take_option(int option, const char *text, struct bench_request *r)
{
	switch (option) {
	case OPTION_JOURNAL:
		r->journal = text;
		return true;
	case OPTION_FIGURE:
		r->figure = text;
		return true;
	case OPTION_JSON:
		return r->json = true;
	case OPTION_NO_PEERS:
		return r->no_peers = true;
	case OPTION_QUIET:
		return r->quiet = true;
	case OPTION_HELP:
		return r->help = true;
	}
	return take_number(option, text, r);
}

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
		return usage_error("bench", "no benchmark '%s'", name);
	for (unsigned i = 0; i < r->entries; i++)
		if (r->entry[i] == entry)
			return usage_error("bench", "benchmark '%s' is there twice", name);
	r->entry[r->entries++] = entry;
	return EXIT_PASS;
}

static int take_entries(struct bench_request *r, char **names, int count)
{
	int status = EXIT_PASS;

	if (!count)
		return usage_error("bench", "say which benchmark, or all");
	if (count == 1 && strcmp(names[0], "all") == 0)
		return take_all(r);
	for (int i = 0; i < count && status == EXIT_PASS; i++)
		status = take_entry(r, names[i]);
	return status;
}

int bench_options(int argc, char **argv, struct bench_request *r)
{
	int option;

	*r = (struct bench_request){ .rounds = ROUNDS };
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!take_option(option, optarg, r))
			return EXIT_USAGE;
	if (r->help)
		return EXIT_PASS;
	if ((r->journal && !r->journal[0]) || (r->figure && !r->figure[0]))
		return usage_error("bench", "--journal and --figure need the name of a file");
	return take_entries(r, argv + optind, argc - optind);
}
