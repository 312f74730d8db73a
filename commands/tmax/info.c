/* SPDX-License-Identifier: MIT */
/*
 * tmax info: which machine this is, what can be tested on it, and what the
 * library makes of its machine.conf.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <linux/membarrier.h>
#include <patchcore/patchcore.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "base/text.h"
#include "commands/tmax/commands.h"
#include "patchcore/machine/policy.h"
#include "results/figures/markup.h"
#include "results/journal/journal.h"
#include "stress/placement/placement.h"

struct info_request {
	bool json;
	const char *dump; /* of another machine, or NULL */
};

static const struct option_row options[] = {
	{ "cpuid", "FILE", "of the machine where this CPUID dump was taken, what it is",
	  OPTION_FILE(struct info_request, dump) },
	{ "json", NULL, "print one line of JSON instead of text",
	  OPTION_FLAG(struct info_request, json) },
	{ 0 },
};

static const struct command_line line = {
	.about = "Tell which machine this is, which placements can be tested on it, and whether\n"
		 "its machine.conf is in use.\n",
	.options = { options },
	.end = "Exit status: 0, 3 machine.conf found but refused, 64 usage, 69 machine, dump or\n"
	       "topology cannot be read, 70 the library cannot be set up, 74 cannot write.\n",
};

/* What is told of this machine. */
struct machine_report {
	struct identity identity;
	struct cpu_name cpu; /* all 0 if it is not known */
	hwloc_topology_t topology;
	int foreign;
	bool sync_core;
	char clock[160]; /* why the TSC is not to be waited by, "" if it may be */
	char cpus[256];	 /* that this program may run on */
	struct pc_status status;
};

static const char *policy_name(enum pc_policy policy)
{
	return policy == PC_POLICY_WAIT		? "wait"
	       : policy == PC_POLICY_MEMBARRIER ? "membarrier"
						: "auto";
}

static const char *verdict_of(const struct pc_status *s)
{
	if (!s->conf_path[0])
		return "none";
	return s->conf_valid ? "valid" : "refused";
}

static int gather_report(struct machine_report *r)
{
	long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
	char room[160];
	const char *problem = tsc_problem(room, sizeof(room));
	struct cpus cpus;
	int ret = machine_here(&r->identity);

	if (ret != EXIT_PASS)
		return ret;
	if (cpuid_name_here(&r->cpu) < 0)
		r->cpu = (struct cpu_name){ 0 };
	r->sync_core = commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE);
	snprintf(r->clock, sizeof(r->clock), "%s", problem ? problem : "");
	if (cpus_allowed(&cpus) < 0)
		strcpy(r->cpus, "unknown");
	else if (cpus_print(&cpus, r->cpus, sizeof(r->cpus)) >= sizeof(r->cpus))
		strcpy(r->cpus + sizeof(r->cpus) - 4, "...");
	ret = pc_init();
	if (ret == 0)
		ret = pc_get_status(&r->status);
	if (ret < 0)
		return complain(EXIT_INTERNAL, 0, "cannot set the library up: %s",
				pc_strerror(ret));
	ret = topology_open(&r->topology, &r->foreign);
	if (ret < 0)
		return complain(EXIT_MISSING, ret, "cannot read the topology");
	return EXIT_PASS;
}

static void print_machine(const struct machine_report *r)
{
	char text[160];
	const char *name;

	puts("machine");
	for (unsigned i = 0; identity_field(&r->identity, i, &name, text, sizeof(text)); i++)
		printf("  %-16s %s\n", name, text);
	printf("  %-16s %s\n", "codename",
	       r->cpu.codename[0] ? r->cpu.codename : "not known for sure");
	puts("sync");
	printf("  %-16s %s, %" PRIu64 " kHz\n", "tsc",
	       r->identity.tsc_invariant ? "invariant" : "not invariant", r->identity.tsc_khz);
	printf("  %-16s %s\n", "clock", r->clock[0] ? r->clock : "trusted");
	printf("  %-16s %s\n", "runs_on", r->cpus);
	printf("  %-16s sync-core %s\n", "membarrier",
	       r->sync_core ? "supported" : "not supported");
	printf("placements%s\n", r->foreign ? " (of a described machine, not of this one)" : "");
	for (int p = 0; p < PLACEMENT_COUNT; p++) {
		unsigned n = placement_max(r->topology, (enum placement)p, text, sizeof(text));

		printf("  %-16s ", placement_name((enum placement)p));
		if (n)
			printf("%u executor%s\n", n, S(n));
		else
			printf("none: %s\n", text);
	}
}

/* How the library changes sites there, by which level of the config. */
static void print_level(const struct pc_status *s, const char *where, unsigned level, double p)
{
	static struct machine_conf conf;
	const struct machine_conf_level *used = &conf.level[level ? level - 1 : 0];
	uint64_t khz;
	char why[160];

	printf("  %-16s ", where);
	if (!level || machine_conf_read(&conf, s->conf_path, why, sizeof(why)) < 0) {
		puts(s->in_use == PC_POLICY_AUTO ? "no change is safe" : "membarrier");
		return;
	}
	khz = conf.identity.tsc_khz;
	printf("two waits of %s, by level %u; tears below %s per change",
	       WAITS_WORDS(&used->waits, khz), level, NUMBER(p));
	if (used->rest)
		printf(", if unchanged for %s before", TICKS(used->rest, khz));
	putchar('\n');
}

static void print_status(const struct pc_status *s)
{
	time_t when = (time_t)s->measured;
	char date[32] = "at an unknown time";

	puts("machine.conf");
	printf("  %-16s %s\n", "path", s->conf_path[0] ? s->conf_path : "none");
	printf("  %-16s %s\n", "verdict", verdict_of(s));
	printf("  %-16s %s (asked: %s)\n", "policy",
	       s->in_use == PC_POLICY_AUTO ? "none is safe" : policy_name(s->in_use),
	       policy_name(s->asked));
	print_level(s, "across_lines", s->line_level, s->line_p);
	print_level(s, "across_pages", s->level, s->page_p);
	/* How old the claim is, and for which time it speaks. */
	if (when)
		strftime(date, sizeof(date), "%Y-%m-%d", gmtime(&when));
	if (s->runs)
		printf("  %-16s %s\n  %-16s %" PRIu64 " run%s, the latest %s; speaks for %s\n",
		       "source", s->fleet ? "a fleet: other machines of this kind" : "calibration",
		       "evidence", s->runs, S(s->runs), date,
		       s->long_run ? "the long run" : "that time only");
	printf("  %-16s %u bytes%s%s\n", "window", s->atomic_window,
	       s->window_p > 0 ? ", below " : "", s->window_p > 0 ? NUMBER(s->window_p) : "");
	printf("  %-16s %s tears per change\n", "upper_p", NUMBER(s->upper_p));
	printf("  %-16s %s tears per change\n", "accept_p", NUMBER(s->accept_p));
	printf("  %-16s %s tears per store\n", "accept_window_p", NUMBER(s->accept_window_p));
	printf("  %-16s %s\n", "reason", s->reason);
}

static json_t *report_json(const struct machine_report *r)
{
	const struct pc_status *s = &r->status;
	char path[sizeof(s->conf_path)], reason[sizeof(s->reason)];
	json_t *placements = json_array();

	for (int p = 0; p < PLACEMENT_COUNT; p++) {
		unsigned n = placement_max(r->topology, (enum placement)p, reason, sizeof(reason));

		json_array_append_new(placements,
				      json_pack("{s:s, s:i, s:s*}", "placement",
						placement_name((enum placement)p), "executors",
						(int)n, "reason", n ? NULL : reason));
	}
	/* Paths may hold any bytes, JSON may not. */
	text_printable(path, sizeof(path), s->conf_path);
	text_printable(reason, sizeof(reason), s->reason);
	return json_pack(
		"{s:o, s:s?, s:{s:b, s:I, s:s?}, s:s, s:{s:b}, s:b, s:o, s:{s:s?, s:s, s:s, s:s?, "
		"s:I, s:I, s:I, s:i, s:f, s:f, s:s, s:i, s:i, s:f, s:f, s:b, s:I, s:I, s:b, s:f, "
		"s:f, s:I, s:I}}",
		"identity", identity_to_json(&r->identity), "codename",
		r->cpu.codename[0] ? r->cpu.codename : NULL, "tsc", "invariant",
		r->identity.tsc_invariant, "khz", (json_int_t)r->identity.tsc_khz, "problem",
		r->clock[0] ? r->clock : NULL, "runs_on", r->cpus, "membarrier", "sync_core",
		r->sync_core, "topology_described", r->foreign, "placements", placements,
		"machine_conf", "path", path[0] ? path : NULL, "verdict", verdict_of(s), "asked",
		policy_name(s->asked), "policy",
		s->in_use == PC_POLICY_AUTO ? NULL : policy_name(s->in_use), "first_wait",
		(json_int_t)s->first_wait, "second_wait", (json_int_t)s->second_wait, "stretch",
		(json_int_t)s->stretch, "window", (int)s->atomic_window, "upper_p", s->upper_p,
		"accept_p", s->accept_p, "reason", reason, "level", (int)s->level, "line_level",
		(int)s->line_level, "page_p", s->page_p, "line_p", s->line_p, "long_run",
		s->long_run, "runs", (json_int_t)s->runs, "measured", (json_int_t)s->measured,
		"fleet", s->fleet, "accept_window_p", s->accept_window_p, "window_p", s->window_p,
		"rest", (json_int_t)s->rest, "line_rest", (json_int_t)s->line_rest);
}

static int tell_json(const char *type, json_t *body)
{
	int ret = body ? journal_tell(stdout, journal_line(type, body)) : -EINVAL;

	json_decref(body);
	return ret == -EIO ? EXIT_CANNOT_WRITE : ret < 0 ? EXIT_INTERNAL : EXIT_PASS;
}

int cmd_info(int argc, char **argv)
{
	struct info_request r = { .json = false };
	struct machine_report report;
	struct cpu_name cpu;
	int ret = command_line_parse(&line, argc, argv, &r, NULL);

	if (ret == EXIT_PASS && r.dump) {
		ret = cpuid_name_of(r.dump, &cpu);
		if (ret == -EINVAL)
			return complain(EXIT_MISSING, 0,
					"%s is no dump of CPUID that libcpuid can read", r.dump);
		if (ret < 0)
			return complain(EXIT_MISSING, ret, "cannot read %s", r.dump);
		if (r.json)
			return tell_json("cpuid", cpu_name_to_json(&cpu));
		cpu_name_print(stdout, &cpu);
		return EXIT_PASS;
	}
	if (ret == EXIT_PASS)
		ret = gather_report(&report);
	if (ret != EXIT_PASS)
		return ret;
	if (r.json) {
		ret = tell_json("info", report_json(&report));
	} else {
		print_machine(&report);
		print_status(&report.status);
	}
	hwloc_topology_destroy(report.topology);
	if (ret != EXIT_PASS || !report.status.conf_path[0] || report.status.conf_valid)
		return ret;
	return complain(EXIT_NO_CONF, 0, "%s: %s", report.status.conf_path, report.status.reason);
}
