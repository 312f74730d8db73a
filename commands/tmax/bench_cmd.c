/* SPDX-License-Identifier: MIT */
/* tmax bench: what patching costs here. */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/command_line.h"
#include "base/exit_status.h"
#include "bench/cases/benchmarks.h"
#include "bench/record/bench_record.h"
#include "commands/tmax/commands.h"
#include "patchcore/machine/identity.h"
#include "patchcore/machine/policy.h"
#include "patchcore/patchcore.h"
#include "results/journal/journal.h"
#include "stress/placement/placement.h"

/* --- The command line ----------------------------------------------------------------------- */

#define BENCH_NO_SEED UINT64_MAX

/* What was asked for, and one start of the program. Texts are the command line's. */
struct bench {
	struct bench_run run; /* its seed is BENCH_NO_SEED: to be drawn */
	const struct benchmark *benchmark[BENCHMARK_COUNT]; /* in the order asked for */
	unsigned benchmarks;
	uint64_t executors; /* 0: all that can be seated */
	bool have_waits;
	struct waits waits; /* to be assumed */
	const char *path;   /* of the journal; NULL: none */
	bool json, no_peers, quiet;
	struct identity id;
	struct journal *journal;
};

#define ROUNDS	   20
#define ROUNDS_MAX 10000
#define STRETCH	   4

/* "FIRST,SECOND" or "FIRST,SECOND,STRETCH" */
static bool take_waits(const struct option_row *row, const char *text, void *request, char *why)
{
	struct bench *b = request;

	(void)row;
	b->have_waits = true;
	b->waits.stretch = STRETCH;
	if (strchr(text, ',') && waits_parse(text, &b->waits) == 0 && b->waits.first &&
	    b->waits.second)
		return true;
	snprintf(why, OPTION_WHY,
		 "must be FIRST,SECOND or FIRST,SECOND,STRETCH: ticks from 1 to %" PRIu64
		 ", stretch from 0 to %d",
		 CELL_WAIT_MAX, CELL_STRETCH_MAX);
	return false;
}

static const struct option_row options[] = {
	{ "rounds", "N", "times that every case is measured (20)",
	  OPTION_NUMBER(struct bench, run.rounds, 1, ROUNDS_MAX) },
	{ "seed", "N", "of the order of the cases (drawn, and told)",
	  OPTION_NUMBER(struct bench, run.seed, 0, INT64_MAX) },
	{ "executors", "N", "the most there may be; default: one on each CPU but one",
	  OPTION_NUMBER(struct bench, executors, 1, PLACEMENT_EXECUTORS_MAX) },
	{ "waits", "LIST",
	  "FIRST,SECOND or FIRST,SECOND,STRETCH: time policy wait with these ticks, and with a "
	  "stretch of STRETCH (4), although no machine.conf allows them. This tells costs only; "
	  "nothing is claimed about safety",
	  .take = take_waits },
	{ "no-peers", NULL, "leave out those that run outside this program",
	  OPTION_FLAG(struct bench, no_peers) },
	{ "journal", "FILE", "append a line per benchmark", OPTION_FILE(struct bench, path) },
	{ "json", NULL, "one line of JSON per benchmark instead of text",
	  OPTION_FLAG(struct bench, json) },
	{ "quiet", NULL, "no progress on standard error", OPTION_FLAG(struct bench, quiet) },
	{ 0 },
};

#define WORD(name) #name " "
static char about[2048];

static const struct command_line line = {
	.operands = "BENCHMARK...|all",
	.words = BENCHMARKS(WORD) "all ",
	.about = about,
	.options = { options },
	.end = "Without --waits policy wait needs a machine.conf of this machine. What cannot be\n"
	       "measured is skipped with its reason.\n"
	       "Exit status: 0, 64 usage, 69 needs two CPUs, 70 executions do not add up, 73\n"
	       "cannot create, 74 cannot write, 130 interrupted.\n",
};

static void describe_benchmarks(void)
{
	size_t length = (size_t)snprintf(
		about, sizeof(about),
		"What patching costs here, beside what one would use instead: as medians with\n"
		"their intervals, and as ratios to a baseline measured in turn.\n\n");

	for (unsigned i = 0; i < BENCHMARK_COUNT && length < sizeof(about); i++)
		length += (size_t)snprintf(about + length, sizeof(about) - length, "  %-10s  %s\n",
					   benchmarks[i]->name, benchmarks[i]->about);
}

static int parse_options(int argc, char **argv, struct bench *b)
{
	int status;

	describe_benchmarks();
	status = command_line_parse(&line, argc, argv, b, NULL);

	argv += optind;
	argc -= optind;
	if (status == EXIT_PASS && !argc)
		return refuse_usage("say which benchmark, or all");
	if (status == EXIT_PASS && argc == 1 && strcmp(argv[0], "all") == 0) {
		memcpy(b->benchmark, benchmarks, sizeof(b->benchmark));
		b->benchmarks = BENCHMARK_COUNT;
		return EXIT_PASS;
	}
	for (int i = 0; i < argc && status == EXIT_PASS; i++) {
		const struct benchmark *benchmark = benchmark_named(argv[i]);

		if (strcmp(argv[i], "all") == 0)
			return refuse_usage("'all' are all benchmarks: name no other");
		if (!benchmark)
			return refuse_name("benchmark", argv[i], line.words);
		for (unsigned k = 0; k < b->benchmarks; k++)
			if (b->benchmark[k] == benchmark)
				return refuse_usage("benchmark '%s' is there twice", argv[i]);
		b->benchmark[b->benchmarks++] = benchmark;
	}
	return status;
}

/* --- Its work ------------------------------------------------------------------------------- */

#define PROGRESS_EVERY 0.2 /* seconds */

static struct {
	const char *benchmark;
	double last; /* when the line was renewed */
	bool open;
} shown;

/* Not more often than a user can read: what is measured is on this very CPU. */
static void show_progress(unsigned done, unsigned all, const char *what)
{
	double now = seconds_now();

	if (now - shown.last < PROGRESS_EVERY)
		return;
	fprintf(stderr, "\r\033[K%s %.0f %%: %s", shown.benchmark, all ? 100.0 * done / all : 0.0,
		what);
	fflush(stderr);
	shown.last = now;
	shown.open = true;
}

/* The journal comes first: if all else fails, what was measured is kept. */
static int tell_result(const struct bench *b, struct bench_result *result)
{
	json_t *body = bench_to_json(result);
	int status = EXIT_PASS, ret;

	if (!body)
		return complain(EXIT_INTERNAL, 0, "%s cannot be told in JSON", result->benchmark);
	ret = b->journal ? journal_write_line(b->journal, "bench", body) : 0;
	if (ret < 0)
		status = complain(EXIT_CANNOT_WRITE, ret, "cannot write journal %s", b->path);
	/* As it stands in a journal, but there a line of its own tells the machine. */
	if (b->json) {
		json_t *told = journal_line("bench", body);

		json_object_set_new(told, "identity", identity_to_json(&b->id));
		journal_tell(stdout, told);
	} else {
		bench_print(result, b->id.tsc_khz, stdout);
		putchar('\n');
	}
	json_decref(body);
	fflush(stdout);
	return status;
}

static int measure_and_tell(struct bench *b, const struct benchmark *benchmark)
{
	struct bench_result result = { 0 };
	struct bench_watch watch;
	int ret = bench_result_begin(&b->run, benchmark->name, &result, &watch), status = EXIT_PASS;

	if (ret == 0) {
		const char *from = b->have_waits ? "assumed" : "config";

		snprintf(result.waits_from, sizeof(result.waits_from), "%s",
			 result.waits.first ? from : "none");
		shown.benchmark = benchmark->name;
		ret = benchmark->run(&b->run, &result);
		/* So that others can print. */
		if (shown.open)
			fputs("\r\033[K", stderr);
		shown.open = false;
	}
	if (ret == 0) {
		bench_result_end(&b->run, &result, &watch);
		status = tell_result(b, &result);
	}
	bench_result_free(&result);
	if (ret == 0)
		return status;
	if (ret == -EINTR || interrupted)
		return EXIT_INTERRUPTED;
	/* Wrong counts are an error of the program, not something that the machine lacks. */
	return complain(ret == -EILSEQ || ret == -ENOMEM ? EXIT_INTERNAL : EXIT_MISSING, ret, "%s",
			benchmark->name);
}

static int measure_all(struct bench *b)
{
	int ret, status = EXIT_PASS;

	if (b->have_waits)
		policy_assume_waits(b->waits.first, b->waits.second, b->waits.stretch);
	ret = pc_init();
	if (ret < 0)
		return complain(EXIT_INTERNAL, 0, "cannot set the library up: %s",
				pc_strerror(ret));
	if (!b->json)
		printf("%s, TSC %.3f GHz, Linux %s\n\n", b->id.brand, (double)b->id.tsc_khz / 1e6,
		       b->id.kernel);
	fflush(stdout);
	/* One that fails does not keep the next from being measured. */
	for (unsigned i = 0; i < b->benchmarks && !interrupted; i++) {
		int one = measure_and_tell(b, b->benchmark[i]);

		status = status == EXIT_PASS ? one : status;
		if (one == EXIT_CANNOT_WRITE)
			break;
	}
	return interrupted ? EXIT_INTERRUPTED : status;
}

/* All that can be refused is, before anything is measured or written. */
static int prepare(struct bench *b)
{
	char why[160] = "";
	unsigned most = placement_max(b->run.topology, PLACEMENT_SPREAD, why, sizeof(why));
	int status, ret = -ENOENT;

	if (most)
		ret = placement_seat(b->run.topology, PLACEMENT_SPREAD,
				     b->executors ? (unsigned)b->executors : most, 0,
				     &b->run.seating, why, sizeof(why));
	if (ret < 0)
		return complain(EXIT_MISSING, 0, "cannot seat %s: %s",
				most ? "so many executors" : "a patcher and an executor",
				why[0] ? why : strerror(-ret));
	if (b->run.seed == BENCH_NO_SEED &&
	    getrandom(&b->run.seed, sizeof(b->run.seed), 0) != sizeof(b->run.seed))
		return complain(EXIT_MISSING, 0, "cannot draw a seed: give --seed");
	b->run.seed &= INT64_MAX;
	status = machine_here(&b->id);
	if (status != EXIT_PASS || !b->path)
		return status;
	ret = journal_open(&b->journal, b->path);
	if (ret < 0)
		return complain(EXIT_CANNOT_CREATE, ret, "cannot open journal %s", b->path);
	ret = journal_write_run(b->journal, "bench", &b->id, NULL, JOURNAL_NO_SEED);
	return ret < 0 ? complain(EXIT_CANNOT_WRITE, ret, "cannot write journal %s", b->path)
		       : EXIT_PASS;
}

int cmd_bench(int argc, char **argv)
{
	static struct bench b = {
		.run = { .rounds = ROUNDS, .seed = BENCH_NO_SEED, .stop = &interrupted },
	};
	int status;

	status = parse_options(argc, argv, &b);
	if (status == EXIT_PASS)
		status = topology_here(&b.run.topology);
	if (status != EXIT_PASS)
		return status;
	b.run.peers = !b.no_peers;
	if (!b.quiet && isatty(STDERR_FILENO))
		b.run.progress = show_progress;
	status = prepare(&b);
	if (status == EXIT_PASS)
		status = measure_all(&b);
	journal_close(b.journal);
	hwloc_topology_destroy(b.run.topology);
	return status;
}
