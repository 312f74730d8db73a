/* SPDX-License-Identifier: MIT */
/* tmax conform: does each CPU of this machine keep what is promised about code that changes? */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/command_line.h"
#include "base/exit_status.h"
#include "base/spelling.h"
#include "base/text.h"
#include "commands/tmax/commands.h"
#include "commands/tmax/conform_print.h"
#include "conform/rounds.h"
#include "results/journal/journal.h"
#include "stress/placement/placement.h"

#define NAMES_MAX   256
#define COMMAND_MAX 512

struct conform_options {
	struct conform_request c;
	const char *only;
	const char *cpus;
	const char *load;
	unsigned format;
	bool how_long;
};

#define NO_SEED	   UINT64_MAX
#define EVERYWHERE UINT_MAX /* any CPU may have the fault */

static const struct option_row options[] = {
	{ "budget", "TIME", "how long, such as 10m (60s)",
	  OPTION_TIME(struct conform_options, c.budget, 1) },
	{ "only", "NAMES", "some promises, joined by commas",
	  OPTION_TEXT(struct conform_options, only) },
	{ "cpus", "PAIR", "writer and executor, as 0,1, or one CPU (default: all in turn)",
	  OPTION_TEXT(struct conform_options, cpus) },
	{ "load", "CPU", "memory traffic there, or none (default: on a third, in turn)",
	  OPTION_TEXT(struct conform_options, load) },
	{ "seed", "N", "of addresses, lengths and times (drawn anew)",
	  OPTION_NUMBER(struct conform_options, c.seed, 0, INT64_MAX) },
	{ "broken", "FAULT",
	  "break it: stale, lost, unsynced, torn, exchanged, unserialized (none)",
	  OPTION_CHOICE(struct conform_options, c.fault, fault_parse) },
	{ "broken-on", "CPU", "only what that CPU does (default: any)",
	  OPTION_NUMBER(struct conform_options, c.fault_on, 0, CPUS_MAX - 1) },
	{ "how-long", NULL, "also tell how long it takes to find rarer defects",
	  OPTION_FLAG(struct conform_options, how_long) },
	{ "format", "NAME", "text, junit, json or opendcdiag (text)",
	  OPTION_CHOICE(struct conform_options, format, conform_format_parse) },
	{ 0 },
};

static const struct command_line line = {
	.about = "Try what processor and kernel promise about code that changes, with every CPU\n"
		 "in turn as the writer and as the executor. One failure is a defect of a core,\n"
		 "its microcode, the hypervisor or the kernel. No wait and no config plays a "
		 "part.\n",
	.options = { options },
	.end = "The promises: flag, moved, self, word, int3, membarrier, fresh, reused,\n"
	       "executable, litmus; see tmax-conform(1).\n"
	       "Exit status: 0 all hold, 1 one is broken, 2 none is, but not all hold, 64 usage,\n"
	       "69 the machine cannot be read, 130 interrupted.\n",
};

/* --- What is asked for ------------------------------------------------------------------------ */

static int choose_promises(struct conform_options *r)
{
	struct conform_request *c = &r->c;
	char names[NAMES_MAX], known[WORD_LIST_ROOM] = "", *rest = names, *name;
	unsigned count = 0;

	for (unsigned i = 0; i < c->promises; i++)
		add_word(known, c->promise[i]->name);
	snprintf(names, sizeof(names), "%s", r->only ? r->only : "");
	if (r->only)
		c->promises = 0;
	while (r->only && (name = strsep(&rest, ",")) && c->promises < PROMISES_MAX) {
		const struct guarantee *g = guarantee_named(name);

		if (!g)
			return refuse_name("promise", name, known);
		for (unsigned i = 0; i < c->promises; i++)
			if (c->promise[i] == g)
				return refuse_usage("--only: '%s' is there twice", name);
		c->promise[c->promises++] = g;
	}
	/* What would not be noticed is no fault of the promise. */
	for (unsigned i = 0; i < c->promises; i++) {
		const struct guarantee *g = c->promise[i];

		if (!c->fault || (g->faults & (1u << c->fault)))
			c->promise[count++] = g;
		else if (r->only)
			return refuse_usage("--broken: '%s' does not apply to '%s'",
					    fault_name(c->fault), g->name);
	}
	c->promises = count;
	return EXIT_PASS;
}

/* Of the first cpus that are asked for. */
static bool has_cpu(const struct conform_request *c, unsigned cpus, uint64_t number)
{
	for (unsigned i = 0; i < cpus; i++)
		if (c->cpu[i] == number)
			return true;
	return false;
}

static int choose_cpu(const struct conform_request *c, unsigned cpus, const char *option,
		      const char *text, unsigned *cpu)
{
	uint64_t number;

	if (!number_in(text, 0, CPUS_MAX - 1, &number))
		return refuse_usage("--%s: the number of a CPU, not '%s'", option, text);
	if (!has_cpu(c, cpus, number))
		return refuse_usage("--%s: there is no CPU %s for this process", option, text);
	*cpu = (unsigned)number;
	return EXIT_PASS;
}

/* Of all that this process may use, which are asked for: one for the load, and one or two. */
static int choose_cpus(struct conform_options *r)
{
	struct conform_request *c = &r->c;
	unsigned all = c->cpus, pair[2] = { 0 }, load = 0;
	char names[NAMES_MAX], *rest = names, *name;
	int status = EXIT_PASS;

	c->load = r->load ? LOAD_NONE : LOAD_IN_TURN;
	if (r->load && strcmp(r->load, "none") != 0) {
		status = choose_cpu(c, all, "load", r->load, &load);
		c->load = (int)load;
	}
	if (!r->cpus || status != EXIT_PASS)
		return status;
	snprintf(names, sizeof(names), "%s", r->cpus);
	for (c->cpus = 0; status == EXIT_PASS && (name = strsep(&rest, ",")); c->cpus++) {
		if (c->cpus == 2)
			return refuse_usage("--cpus: two at most, such as 0,1, not '%s'", r->cpus);
		status = choose_cpu(c, all, "cpus", name, &pair[c->cpus]);
	}
	if (status == EXIT_PASS && c->cpus == 2 && pair[0] == pair[1])
		return refuse_usage("--cpus: CPU %u is there twice", pair[0]);
	memcpy(c->cpu, pair, c->cpus * sizeof(pair[0]));
	c->fixed = true;
	return status;
}

int cmd_conform(int argc, char **argv)
{
	struct conform_options r = {
		.c = { .try_one = conform_run,
		       .stop = &interrupted,
		       .budget = 60,
		       .seed = NO_SEED,
		       .fault_on = EVERYWHERE,
		       .broadcast = has_broadcast_flush() },
	};
	struct conform_request *c = &r.c;
	struct conformance tried = { 0 };
	char command[COMMAND_MAX], all[COMMAND_MAX] = "";
	struct identity identity;
	struct conform_report report = {
		.tried = &tried,
		.asked = c,
		.identity = &identity,
		.command = command,
	};
	struct cpus allowed;
	size_t done = 0;
	int status;

	for (int i = 0; i < argc && done < sizeof(all); i++)
		done += (size_t)snprintf(all + done, sizeof(all) - done, "%s%s", i ? " " : "",
					 argv[i]);
	text_printable(command, COMMAND_MAX, all);
	status = command_line_parse(&line, argc, argv, &r, NULL);
	if (status == EXIT_PASS && optind < argc)
		status = refuse_usage("unexpected argument '%s'", argv[optind]);
	c->fault_on_one = c->fault_on != EVERYWHERE;
	if (status == EXIT_PASS && c->fault_on_one && !c->fault)
		status = refuse_usage("--broken-on: of which fault? It takes --broken");
	if (status != EXIT_PASS)
		return status;
	if (c->seed == NO_SEED) {
		if (getrandom(&c->seed, sizeof(c->seed), 0) != sizeof(c->seed))
			c->seed = (uint64_t)(seconds_now() * 1e9);
		c->seed >>= 1;
	}
	if (cpus_allowed(&allowed) < 0)
		return EXIT_MISSING;
	if (conform_request_all(c, &allowed) < 0)
		return EXIT_INTERNAL;
	status = choose_promises(&r);
	if (status == EXIT_PASS)
		status = choose_cpus(&r);
	if (status == EXIT_PASS && c->fault_on_one && !has_cpu(c, c->cpus, c->fault_on))
		status = refuse_usage("--broken-on: CPU %u is not tried", c->fault_on);
	if (status == EXIT_PASS)
		status = machine_here(&identity);
	date_text(time(NULL), false, report.begun);
	if (status == EXIT_PASS && conformance_try(&tried, c) < 0)
		status = EXIT_INTERNAL;
	if (status == EXIT_PASS) {
		report.how_long = r.how_long;
		report.interrupted = interrupted;
		conform_print(stdout, &report, r.format);
		status = (int)conformance_status(&tried);
		if (interrupted && status != EXIT_TEARS)
			status = EXIT_INTERRUPTED;
	}
	conformance_free(&tried);
	free(c->cpu);
	return status;
}
