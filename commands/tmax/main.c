/* SPDX-License-Identifier: MIT */
/* tmax: find how long an instruction fetch may lag behind a store to code. */
#include <fcntl.h>
#include <unistd.h>

#include "base/program.h"
#include "base/text_file.h"
#include "commands/tmax/commands.h"
#include "patchcore/machine/kinds.h"

volatile sig_atomic_t interrupted;

static const struct program_command commands[] = {
	{ NULL, NULL, "Qualify a machine", NULL },
	{ "calibrate", cmd_calibrate, "find T_max of this machine and write machine.conf",
	  "calibrate --quick" },
	{ "verify", cmd_verify, "run all placements at the config's waits: does it hold?",
	  "verify --budget 5m --format junit --output verify.xml" },
	{ "conform", cmd_conform, "does each CPU keep what is promised about code that changes?",
	  "conform --budget 10m" },
	{ NULL, NULL, "Look at it", NULL },
	{ "info", cmd_info, "identity, placements, and whether machine.conf fits", "info --json" },
	{ "evidence", cmd_evidence, "what all runs together have counted on this machine",
	  "evidence --verbose" },
	{ "report", cmd_report, "journals as a page with their figures",
	  "report --output page machine.conf.jsonl" },
	{ "export", cmd_export, "this machine's wait, as other patching programs read it",
	  "export --for env --accept 1e-4" },
	{ NULL, NULL, "Many machines", NULL },
	{ "merge", cmd_merge, "evidence of many machines into one database",
	  "merge --output fleet.db node*.evidence" },
	{ "fleet", cmd_fleet, "what that database says of each kind of machine",
	  "fleet report --page fleet fleet.db" },
	{ NULL, NULL, "Research", NULL },
	{ "stress", cmd_stress, "run one cell: toggle a site under executors, count tears",
	  "stress --protocol front-first --toggles 20000" },
	{ "protocols", cmd_protocols, "do protocols by which programs patch code hold here?",
	  "protocols --budget 2m" },
	{ "gaps", cmd_gaps, "measure the gaps between the two fetches of one instruction",
	  "gaps --crossing page --seconds 10s" },
	{ "litmus", cmd_litmus, "litmus tests of instruction fetch, with their outcomes",
	  "litmus CoFF MP.RF+cpuid --times 100000" },
	{ "bench", cmd_bench, "what patching costs here, beside what people use instead",
	  "bench toggle stall --journal bench.jsonl" },
	{ 0 },
};

static void on_signal(int signal)
{
	interrupted = signal;
}

static void take_signals(void)
{
	const struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	/* A reader that goes away, or a file size limit, is a write error to report. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

static const struct program program = {
	.name = "tmax",
	.version = PACKAGE_STRING,
	.about = "Usage: tmax COMMAND [OPTION]...\n"
		 "How long may an instruction fetch lag behind a store to code on this machine?\n",
	.commands = commands,
	.begin = take_signals,
	.unwritten = EXIT_CANNOT_WRITE,
};

int main(int argc, char **argv)
{
	static char kinds[4096];
	int fd;

	/*
	 * A file of ours must not get the number of a closed standard stream, or text for people
	 * would end up in it. What stands in refuses to be written, so that the loss is told.
	 */
	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
	/* The library looks where the package is installed; a build tree has its own. */
	if (data_file("kinds.tsv", kinds, sizeof(kinds)) == 0)
		kinds_path = kinds;
	return program_main(&program, argc, argv);
}
