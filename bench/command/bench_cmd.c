/* SPDX-License-Identifier: MIT */
/*
 * tmax bench: what patching costs here.
 */
#include <errno.h>
#include <error.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "bench/cases/scaling/scaling.h"
#include "bench/command/bench_options.h"
#include "bench/command/bench_print.h"
#include "bench/figures/bench_figure.h"
#include "bench/peers/peer.h"
#include "bench/record/bench_record.h"
#include "calibrate/program/commands.h"
#include "calibrate/program/exit_status.h"
#include "calibrate/program/here.h"
#include "patchcore/life/library.h"
#include "patchcore/machine/identity.h"
#include "patchcore/patchcore.h"
#include "results/journal/journal.h"
#include "stress/base/clock.h"

#define PROGRESS_EVERY 0.2 /* seconds */

/* One start of the program. */
struct bench {
	const struct bench_request *request;
	struct bench_run run;
	struct identity id;
	struct journal *journal;
};

/* --- Progress ------------------------------------------------------------------------------- */

static struct {
	const char *benchmark;
	double last; /* when the line was renewed */
	bool open;
} shown;

/* Not more often than anyone can read: what is measured is on this very CPU. */
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

/* So that others can print. */
static void end_progress(void)
{
	if (shown.open)
		fputs("\r\033[K", stderr);
	shown.open = false;
}

/* --- Telling -------------------------------------------------------------------------------- */

static int append(const struct bench *b, json_t *body)
{
	int ret;

	if (!b->journal)
		return EXIT_PASS;
	ret = journal_write_line(b->journal, "bench", body);
	if (ret == 0)
		return EXIT_PASS;
	error(0, -ret, "cannot write journal %s", b->request->journal);
	return EXIT_CANNOT_WRITE;
}

/* As it stands in a journal, but there a line of its own tells the machine. */
static void print_json(const struct bench *b, const struct bench_result *result, json_t *body)
{
	json_t *line = json_pack("{s:s, s:i, s:s, s:o}", "type", "bench", "schema", JOURNAL_SCHEMA,
				 "date", result->date, "identity", identity_to_json(&b->id));

	if (line && json_object_update_missing(line, body) == 0)
		json_dumpf(line, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(line);
}

/*
 * Drawing is a service: without gnuplot the benchmark stands all the same. Data that cannot
 * be written are a loss.
 */
static int draw(const struct bench *b, const struct bench_result *result)
{
	char prefix[PATH_MAX], why[8192] = "";
	int ret, length;

	if (!b->request->figure)
		return EXIT_PASS;
	length = snprintf(prefix, sizeof(prefix), "%s-%s", b->request->figure, result->benchmark);
	ret = (size_t)length < sizeof(prefix) ? bench_figure_write(result, prefix, why, sizeof(why))
					      : -ENAMETOOLONG;
	if (ret == 0 && !b->request->json)
		printf("figure: %s.svg, %s.png (data: %s.dat)\n", prefix, prefix, prefix);
	if (ret == 0)
		return EXIT_PASS;
	error(0, 0, "no figure of %s: %s", result->benchmark, why[0] ? why : strerror(-ret));
	return ret == -ENOENT || ret == -EIO || ret == -ENODATA ? EXIT_PASS : EXIT_CANNOT_WRITE;
}

/* The journal comes first: whatever else fails, what was measured is kept. */
static int tell(const struct bench *b, const struct bench_result *result)
{
	json_t *body = bench_to_json(result);
	int status, drawn;

	if (!body) {
		error(0, 0, "%s cannot be told in JSON", result->benchmark);
		return EXIT_INTERNAL;
	}
	status = append(b, body);
	if (b->request->json)
		print_json(b, result, body);
	else
		bench_print(result, stdout);
	json_decref(body);
	drawn = draw(b, result);
	if (!b->request->json)
		putchar('\n');
	fflush(stdout);
	return status != EXIT_PASS ? status : drawn;
}

/* --- Measuring ------------------------------------------------------------------------------ */

static const char *waits_from(const struct bench_request *r, const struct bench_result *result)
{
	if (!result->first_wait)
		return "none";
	return r->have_waits ? "assumed" : "config";
}

static int measure(struct bench *b, const struct bench_entry *entry, struct bench_result *result)
{
	struct bench_watch watch;
	int ret = bench_result_begin(&b->run, entry->name, result, &watch);

	if (ret < 0)
		return ret;
	snprintf(result->waits_from, sizeof(result->waits_from), "%s",
		 waits_from(b->request, result));
	shown.benchmark = entry->name;
	ret = entry->run(&b->run, result);
	end_progress();
	if (ret == 0)
		bench_result_end(&b->run, result, &watch);
	return ret < 0 && interrupted ? -EINTR : ret;
}

/* One that fails does not keep the next from being measured. */
static int measure_and_tell(struct bench *b, const struct bench_entry *entry)
{
	struct bench_result result = { 0 };
	int status = EXIT_PASS, ret = measure(b, entry, &result);

	if (ret == 0)
		status = tell(b, &result);
	bench_result_free(&result);
	if (ret == 0)
		return status;
	if (ret == -EINTR)
		return EXIT_INTERRUPTED;
	error(0, -ret, "%s", entry->name);
	/* Counts that do not come out right are no matter of what the machine lacks. */
	return ret == -EILSEQ || ret == -ENOMEM ? EXIT_INTERNAL : EXIT_MISSING;
}

static int measure_all(struct bench *b)
{
	int status = EXIT_PASS;

	for (unsigned i = 0; i < b->request->entries && !interrupted; i++) {
		int one = measure_and_tell(b, b->request->entry[i]);

		status = status == EXIT_PASS ? one : status;
		if (one == EXIT_CANNOT_WRITE)
			break;
	}
	return interrupted ? EXIT_INTERRUPTED : status;
}

static void print_machine(const struct identity *id)
{
	printf("%s, TSC %.3f GHz, Linux %s\n\n", id->brand, (double)id->tsc_khz / 1e6, id->kernel);
	fflush(stdout);
}

static int run(struct bench *b)
{
	const struct bench_request *r = b->request;
	int status;

	if (r->have_waits)
		library_assume_waits(r->first_wait, r->second_wait, r->stretch);
	if (pc_init() < 0) {
		error(0, 0, "the library cannot be set up");
		return EXIT_INTERNAL;
	}
	if (!r->json)
		print_machine(&b->id);
	peers_open(&b->run, !r->no_peers);
	status = measure_all(b);
	peers_close();
	return status;
}

/* --- Getting ready -------------------------------------------------------------------------- */

static int open_journal(struct bench *b)
{
	const char *path = b->request->journal;
	int ret;

	if (!path)
		return EXIT_PASS;
	ret = journal_open(&b->journal, path);
	if (ret < 0) {
		error(0, -ret, "cannot open journal %s", path);
		return EXIT_CANNOT_CREATE;
	}
	ret = journal_write_run(b->journal, "bench", &b->id, NULL);
	if (ret == 0)
		return EXIT_PASS;
	error(0, -ret, "cannot write journal %s", path);
	return EXIT_CANNOT_WRITE;
}

static int seat(struct bench *b)
{
	char reason[160] = "";
	unsigned most = placement_max(b->run.topology, PLACEMENT_SPREAD, reason, sizeof(reason));
	unsigned executors = b->request->executors ? (unsigned)b->request->executors : most;
	int ret = -ENOENT;

	if (most)
		ret = placement_seat(b->run.topology, PLACEMENT_SPREAD, executors, &b->run.seating,
				     reason, sizeof(reason));
	if (ret == 0)
		return EXIT_PASS;
	error(0, 0, "cannot seat %s: %s", most ? "so many executors" : "a patcher and an executor",
	      reason[0] ? reason : strerror(-ret));
	return EXIT_MISSING;
}

static int draw_seed(struct bench *b)
{
	uint64_t *seed = &b->run.seed;

	*seed = b->request->seed;
	if (*seed == BENCH_NO_SEED && getrandom(seed, sizeof(*seed), 0) != sizeof(*seed)) {
		error(0, 0, "cannot draw a seed: give --seed");
		return EXIT_MISSING;
	}
	*seed &= INT64_MAX;
	return EXIT_PASS;
}

/* All that can be refused, before anything is measured or written. */
static int get_ready(struct bench *b)
{
	int status = seat(b);

	if (status == EXIT_PASS)
		status = draw_seed(b);
	if (status == EXIT_PASS)
		status = machine_here(&b->id);
	return status == EXIT_PASS ? open_journal(b) : status;
}

static int bench(const struct bench_request *r)
{
	static struct bench b;
	int status = topology_here(&b.run.topology);

	if (status != EXIT_PASS)
		return status;
	b.request = r;
	b.run.rounds = (unsigned)r->rounds;
	b.run.stop = &interrupted;
	if (!r->quiet && isatty(STDERR_FILENO))
		b.run.progress = show_progress;
	status = get_ready(&b);
	if (status == EXIT_PASS)
		status = run(&b);
	journal_close(b.journal);
	hwloc_topology_destroy(b.run.topology);
	return status;
}

int cmd_bench(int argc, char **argv)
{
	struct bench_request request;
	int status;

	/* This program, started again by a benchmark. */
	if (argc == 2 + SCALING_NUMBERS && strcmp(argv[1], SCALING_KNOW) == 0)
		return scaling_know(argv + 2) == 0 ? EXIT_PASS : EXIT_INTERNAL;
	status = bench_options(argc, argv, &request);
	return status == EXIT_PASS ? bench(&request) : status;
}
