/* SPDX-License-Identifier: MIT */
/*
 * tmax stress: one cell.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "calibrate/commands.h"
#include "calibrate/exit_status.h"
#include "calibrate/here.h"
#include "calibrate/options.h"
#include "results/journal.h"
#include "stress/provoker.h"
#include "stress/run.h"

#define EVENTS_SHOWN 4

enum {
	OPTION_JSON = 1,
	OPTION_HELP,
	OPTION_JOURNAL
};

static const char help[] =
	"Usage: tmax stress [OPTION]...\n"
	"Run one cell: toggle a site while executors run it, and count the tears.\n"
	"\n"
	"  --placement NAME   where the executors sit (default spread; see tmax info)\n"
	"  --crossing NAME    line, page, 8, 16, 32 or none (default line)\n"
	"  --split S          bytes of the instruction before the boundary, 1 to 4 (3)\n"
	"  --executors N      (1)\n"
	"  --pair NAME        call-call, call-nop, jmp-nop or word (call-call)\n"
	"  --protocol NAME    wait, membarrier, atomic; broken on purpose: naive,\n"
	"                     no-int3, front-first (wait)\n"
	"  --oracle NAME      count, or crash: a tear kills the child (count)\n"
	"  --first-wait T     ticks between INT3 and back part (3000)\n"
	"  --second-wait T    ticks between back and front part (3000)\n"
	"  --stretch N        each wait is at least N times the latency of the store (0)\n"
	"  --rest T           mean ticks between toggles (2000)\n"
	"  --provoker NAMES   what pulls the fetches apart: none, or names joined by +:\n"
	"                     cold-back, cold-front, shootdown, bandwidth, load, sibling,\n"
	"                     wide, chain, sites (none)\n"
	"  --loop N           filler instructions in the executors' loop (0)\n"
	"  --toggles N        stop after N toggles (1000000)\n"
	"  --seconds T        or after this time, such as 10s; 0 is no limit (0)\n"
	"  --stop-tears N     or after N tears; 0 is no limit (0)\n"
	"  --seed N           of the rests (1)\n"
	"  --journal FILE     append the record to FILE\n"
	"  --json             print the record instead of text\n"
	"  --help\n"
	"\n"
	"Exit status: 0 no tears, 1 tears, 2 no answer (hang, kill), 64 usage,\n"
	"69 the machine cannot seat it, 73/74 journal not writable, 130 interrupted.\n";

static const struct option options[] = {
	CELL_OPTIONS,
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "journal", required_argument, NULL, OPTION_JOURNAL },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ 0 },
};

struct request {
	struct cell cell;
	const char *journal;
	bool json;
	bool help;
};

static int parse(int argc, char **argv, struct request *r)
{
	char reason[160];
	int option;

	cell_defaults(&r->cell);
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == OPTION_JSON)
			r->json = true;
		else if (option == OPTION_HELP)
			r->help = true;
		else if (option == OPTION_JOURNAL)
			r->journal = optarg;
		else if (option < OPTION_CELL_FIRST || !option_cell(option, optarg, &r->cell))
			return EXIT_USAGE;
	}
	if (optind < argc)
		return usage_error("stress", "unexpected argument '%s'", argv[optind]);
	if (!r->help && cell_check(&r->cell, reason, sizeof(reason)) < 0)
		return usage_error("stress", "%s", reason);
	return EXIT_PASS;
}

static void print_event(const struct tear_event *e)
{
	printf("  toggle %" PRIu64 ", executor %u, %s: %" PRId64 " ticks after INT3, %" PRId64
	       " after the patch, latency %" PRIu64 " %" PRIu64 " %" PRIu64 ", waited %" PRIu64
	       " %" PRIu64 ", longest step %" PRIu64 " %" PRIu64 "\n",
	       e->toggle, e->executor, tear_kind_name(e->kind), e->after_int3, e->after_front,
	       e->latency[0], e->latency[1], e->latency[2], e->waited[0], e->waited[1], e->step[0],
	       e->step[1]);
}

static void print_events(const struct cell_result *r)
{
	for (unsigned i = 0; i < r->events && i < EVENTS_SHOWN; i++)
		print_event(&r->event[i]);
	if (r->events > EVENTS_SHOWN)
		printf("  and %u more in the record\n", r->events - EVENTS_SHOWN);
}

static void print_latency(const struct latency *latency)
{
	if (latency->median)
		printf("latency     median %" PRIu64 ", 99th percentile %" PRIu64
		       ", longest %" PRIu64 " ticks\n",
		       latency->median, latency->p99, latency->max);
}

static void print_text(const struct cell_record *record)
{
	const struct cell_result *r = &record->result;
	char command[512], provokers[PROVOKERS_MAX];

	cell_command(&record->cell, command, sizeof(command));
	printf("outcome     %s%s%s\n", outcome_name(r->outcome), r->error ? ": " : "",
	       r->error ? strerror(-r->error) : "");
	if (r->signal)
		printf("signal      %d (%s)\n", r->signal, strsignal(r->signal));
	printf("toggles     %" PRIu64 " in %.2f s\n", r->toggles, r->seconds);
	printf("executions  %" PRIu64 " (first code %" PRIu64 ", others %" PRIu64 ")\n",
	       r->executions, r->old_new[0], r->old_new[1]);
	printf("tears       %" PRIu64 " (old front + new back %" PRIu64
	       ", new front + old back %" PRIu64 ", other %" PRIu64 ")\n",
	       cell_result_tears(r), r->tears[TEAR_OLD_FRONT], r->tears[TEAR_NEW_FRONT],
	       r->tears[TEAR_OTHER]);
	print_events(r);
	printf("provokers   %s\n", provokers_name(record->cell.provokers, provokers));
	print_latency(&r->latency);
	printf("traps       %" PRIu64 "\n", r->traps);
	printf("noise       %" PRIu64 " involuntary switches, %.2f %% steal, %.0f runnable\n",
	       r->witness.involuntary, 100 * r->witness.steal, r->witness.load);
	printf("again       %s\n", command);
}

static int print_json(const struct cell_record *record)
{
	json_t *json = record_to_json(record);
	int ret = json ? json_dumpf(json, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER) : -1;

	json_decref(json);
	putchar('\n');
	return ret;
}

static int append(const char *path, const struct cell_record *record)
{
	struct journal *journal;
	struct identity id;
	int ret = journal_open(&journal, path);

	if (ret < 0) {
		fprintf(stderr, "tmax: cannot open journal %s: %s\n", path, strerror(-ret));
		return EXIT_CANNOT_CREATE;
	}
	ret = identity_read(&id);
	if (ret == 0)
		ret = journal_write_run(journal, "stress", &id, NULL);
	if (ret == 0)
		ret = journal_write_cell(journal, record);
	journal_close(journal);
	if (ret < 0) {
		fprintf(stderr, "tmax: cannot write journal %s: %s\n", path, strerror(-ret));
		return EXIT_CANNOT_WRITE;
	}
	return EXIT_PASS;
}

static int judge(const struct cell_result *r)
{
	if (cell_result_tears(r) > 0)
		return EXIT_TEARS;
	switch (r->outcome) {
	case OUTCOME_DONE:
		return EXIT_PASS;
	case OUTCOME_INTERRUPTED:
		return EXIT_INTERRUPTED;
	case OUTCOME_ERROR:
		return EXIT_MISSING;
	default:
		return EXIT_INCONCLUSIVE;
	}
}

static int finish(const struct request *r, struct cell_record *record)
{
	int status = EXIT_PASS;

	journal_date(record->date, sizeof(record->date));
	if (r->journal)
		status = append(r->journal, record);
	if (r->json)
		print_json(record);
	else
		print_text(record);
	if (interrupted)
		return EXIT_INTERRUPTED;
	return status != EXIT_PASS ? status : judge(&record->result);
}

static int run(const struct request *r)
{
	struct cell_record record = { .stage = "stress", .key = "stress", .cell = r->cell };
	struct run_options how = { .stop = &interrupted };
	struct seating seating;
	char reason[160] = "";
	int ret = topology_here(&how.topology);

	if (ret != EXIT_PASS)
		return ret;
	ret = placement_seat(how.topology, r->cell.placement, r->cell.executors, &seating, reason,
			     sizeof(reason));
	if (ret == 0)
		ret = provokers_possible(&r->cell, how.topology, &seating, reason, sizeof(reason));
	if (ret == 0)
		ret = cell_run(&r->cell, &how, &record.result);
	hwloc_topology_destroy(how.topology);
	if (ret == 0)
		return finish(r, &record);
	fprintf(stderr, "tmax stress: cannot run %s with %u executors: %s\n",
		placement_name(r->cell.placement), r->cell.executors,
		reason[0] ? reason : strerror(-ret));
	return EXIT_MISSING;
}

int cmd_stress(int argc, char **argv)
{
	struct request r = { 0 };
	int status = parse(argc, argv, &r);

	if (status != EXIT_PASS)
		return status;
	if (r.help) {
		fputs(help, stdout);
		return EXIT_PASS;
	}
	return run(&r);
}
