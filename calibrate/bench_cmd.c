/* SPDX-License-Identifier: MIT */
/*
 * tmax bench: what patching costs here.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "calibrate/commands.h"
#include "calibrate/exit_status.h"
#include "calibrate/here.h"
#include "calibrate/options.h"
#include "patchcore/identity.h"
#include "results/journal.h"
#include "stress/bench_toggle.h"

enum {
	OPTION_JSON = 1,
	OPTION_ROUNDS,
	OPTION_HELP
};

static const char help[] =
	"Usage: tmax bench toggle [OPTION]...\n"
	"What one change costs the patcher, in TSC ticks, with one executor hot on the\n"
	"site; and as a ratio to the floor, one locked 8-byte exchange on the same line\n"
	"measured in turn.\n"
	"\n"
	"  --rounds N  blocks of 100 changes per operation (40)\n"
	"  --json      one JSON object instead of text\n"
	"  --help\n"
	"\n"
	"Policy wait needs a machine.conf of this machine; what cannot be measured is\n"
	"skipped with its reason. Exit status: 0, 64 usage, 69 needs two CPUs,\n"
	"74 cannot write, 130 interrupted.\n";

static const struct option options[] = {
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "rounds", required_argument, NULL, OPTION_ROUNDS },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ 0 },
};

struct request {
	uint64_t rounds;
	bool json;
	bool help;
};

static int parse(int argc, char **argv, struct request *r)
{
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == OPTION_JSON)
			r->json = true;
		else if (option == OPTION_HELP)
			r->help = true;
		else if (option != OPTION_ROUNDS ||
			 !option_u64("rounds", optarg, 1, 10000, &r->rounds))
			return EXIT_USAGE;
	}
	if (r->help)
		return EXIT_PASS;
	if (optind + 1 != argc || strcmp(argv[optind], "toggle") != 0)
		return usage_error("bench", "say which benchmark: toggle");
	return EXIT_PASS;
}

static double ratio(const struct bench_figures *f)
{
	return f->floor_median > 0 ? f->median / f->floor_median : 0;
}

static void print_text(const struct bench_toggle *b)
{
	printf("TSC ticks per change; patcher on CPU %u, executor on CPU %u\n\n", b->patcher,
	       b->executor);
	printf("%-22s %10s %10s %10s %8s\n", "operation", "median", "p99", "floor", "ratio");
	for (int op = 0; op < BENCH_OPS; op++) {
		const struct bench_figures *f = &b->op[op];

		if (f->samples == 0)
			printf("%-22s skipped: %s\n", bench_op_name((enum bench_op)op), f->why);
		else
			printf("%-22s %10.0f %10.0f %10.0f %8.2f\n",
			       bench_op_name((enum bench_op)op), f->median, f->p99, f->floor_median,
			       ratio(f));
	}
	if (b->op[BENCH_STRADDLER_WAIT].samples)
		printf("\nwaits %" PRIu64 " + %" PRIu64 " ticks; without them the straddler takes "
		       "%.0f\n",
		       b->first_wait, b->second_wait,
		       b->op[BENCH_STRADDLER_WAIT].median - (double)b->first_wait -
			       (double)b->second_wait);
	printf("library start-up %.0f us\n", b->start_median);
}

static json_t *op_json(enum bench_op op, const struct bench_figures *f)
{
	if (f->samples == 0)
		return json_pack("{s:s, s:s}", "op", bench_op_name(op), "skipped", f->why);
	return json_pack("{s:s, s:I, s:f, s:f, s:f, s:f, s:f}", "op", bench_op_name(op), "samples",
			 (json_int_t)f->samples, "median", f->median, "p99", f->p99, "floor_median",
			 f->floor_median, "floor_p99", f->floor_p99, "ratio", ratio(f));
}

static json_t *identity_json(void)
{
	struct identity id;
	json_t *json = json_object();
	const char *name;
	char value[128];

	if (identity_read(&id) < 0)
		return json;
	for (unsigned i = 0; identity_field(&id, i, &name, value, sizeof(value)); i++)
		json_object_set_new(json, name, json_string(value));
	return json;
}

static int print_json(const struct bench_toggle *b)
{
	json_t *ops = json_array(), *json;
	char date[32];
	int ret;

	journal_date(date, sizeof(date));
	for (int op = 0; op < BENCH_OPS; op++)
		json_array_append_new(ops, op_json((enum bench_op)op, &b->op[op]));
	json = json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:o, s:I, s:I, s:f, s:o}", "type", "bench",
			 "schema", JOURNAL_SCHEMA, "date", date, "tool", PACKAGE_STRING,
			 "benchmark", "toggle", "unit", "TSC ticks", "identity", identity_json(),
			 "first_wait", (json_int_t)b->first_wait, "second_wait",
			 (json_int_t)b->second_wait, "start_us", b->start_median, "ops", ops);
	ret = json ? json_dumpf(json, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER) : -1;
	json_decref(json);
	putchar('\n');
	return ret;
}

static int finish(const struct bench_toggle *bench, bool json)
{
	int ret = 0;

	if (json)
		ret = print_json(bench);
	else
		print_text(bench);
	/* main() tells when standard output cannot be written. */
	return ret < 0 && !ferror(stdout) ? EXIT_INTERNAL : EXIT_PASS;
}

static int run(const struct request *r)
{
	struct bench_toggle bench;
	hwloc_topology_t topology;
	char reason[160] = "";
	int ret = topology_here(&topology);

	if (ret != EXIT_PASS)
		return ret;
	ret = bench_toggle_run(&bench, topology, (unsigned)r->rounds, &interrupted, reason,
			       sizeof(reason));
	hwloc_topology_destroy(topology);
	if (ret == 0)
		return finish(&bench, r->json);
	if (ret == -EINTR)
		return EXIT_INTERRUPTED;
	fprintf(stderr, "tmax bench: %s\n", reason[0] ? reason : strerror(-ret));
	return EXIT_MISSING;
}

int cmd_bench(int argc, char **argv)
{
	struct request r = { .rounds = 40 };
	int status = parse(argc, argv, &r);

	if (status != EXIT_PASS)
		return status;
	if (r.help) {
		fputs(help, stdout);
		return EXIT_PASS;
	}
	return run(&r);
}
