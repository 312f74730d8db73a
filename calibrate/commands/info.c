/* SPDX-License-Identifier: MIT */
/*
 * tmax info: which machine this is, what can be tested on it, and what the
 * library makes of its machine.conf.
 */
#include <errno.h>
#include <error.h>
#include <hwloc.h>
#include <inttypes.h>
#include <jansson.h>
#include <libcpuid/libcpuid.h>
#include <linux/membarrier.h>
#include <patchcore/patchcore.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "calibrate/program/command_line.h"
#include "calibrate/program/commands.h"
#include "calibrate/program/exit_status.h"
#include "calibrate/program/here.h"
#include "patchcore/machine/cpus.h"
#include "patchcore/machine/identity.h"
#include "patchcore/machine/tsc.h"
#include "stress/placement/placement.h"

#define INFO_SCHEMA  "tmax-info"
#define INFO_VERSION 1

struct request {
	bool json;
};

static const struct option_row options[] = {
	{ "json", NULL, "print one JSON object instead of text",
	  OPTION_FLAG(struct request, json) },
	{ 0 },
};

static const struct command_line line = {
	.name = "info",
	.about = "Tell which machine this is, which placements can be tested on it, and whether\n"
		 "its machine.conf is in use.\n",
	.options = { options },
	.end = "Exit status: 0, 3 machine.conf found but refused, 64 usage, 69 machine or\n"
	       "topology cannot be read, 70 the library cannot be set up, 74 cannot write.\n",
};

struct report {
	struct identity identity;
	char codename[64]; /* libcpuid's best guess: never to be relied upon */
	hwloc_topology_t topology;
	int foreign;
	bool sync_core;
	char clock[160]; /* why the TSC is not to be waited by, "" if it may be */
	char cpus[256];	 /* that this program may run on */
	struct pc_status status;
};

static const char *policy_name(enum pc_policy policy)
{
	switch (policy) {
	case PC_POLICY_WAIT:
		return "wait";
	case PC_POLICY_MEMBARRIER:
		return "membarrier";
	default:
		return "auto";
	}
}

static bool is_refused(const struct pc_status *s)
{
	return s->conf_path[0] && !s->conf_valid;
}

static const char *verdict(const struct pc_status *s)
{
	if (!s->conf_path[0])
		return "none";
	return is_refused(s) ? "refused" : "valid";
}

static bool query_sync_core(void)
{
	long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	return commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE);
}

static void read_codename(char *codename, size_t size)
{
	struct cpu_raw_data_t raw;
	struct cpu_id_t data;
	bool known =
		cpuid_present() && cpuid_get_raw_data(&raw) == 0 && cpu_identify(&raw, &data) == 0;

	snprintf(codename, size, "%s", known ? data.cpu_codename : "unknown");
}

static void read_clock(char *text, size_t size)
{
	char room[160];
	const char *problem = tsc_problem(room, sizeof(room));

	snprintf(text, size, "%s", problem ? problem : "");
}

static void read_cpus(char *text, size_t size)
{
	struct cpus cpus;

	if (cpus_allowed(&cpus) < 0)
		snprintf(text, size, "unknown");
	else if (cpus_print(&cpus, text, size) >= size)
		strcpy(text + size - 4, "...");
}

static int gather(struct report *r)
{
	int ret = machine_here(&r->identity);

	if (ret != EXIT_PASS)
		return ret;
	read_codename(r->codename, sizeof(r->codename));
	r->sync_core = query_sync_core();
	read_clock(r->clock, sizeof(r->clock));
	read_cpus(r->cpus, sizeof(r->cpus));
	ret = pc_init();
	if (ret == 0)
		ret = pc_get_status(&r->status);
	if (ret < 0) {
		error(0, -ret, "cannot set the library up");
		return EXIT_INTERNAL;
	}
	ret = topology_open(&r->topology, &r->foreign);
	if (ret < 0) {
		error(0, -ret, "cannot read the topology");
		return EXIT_MISSING;
	}
	return EXIT_PASS;
}

static void print_identity(const struct report *r)
{
	char value[128];
	const char *name;

	puts("machine");
	for (unsigned i = 0; identity_field(&r->identity, i, &name, value, sizeof(value)); i++)
		printf("  %-16s %s\n", name, value);
	printf("  %-16s %s (libcpuid's guess, for display only)\n", "codename", r->codename);
}

static void print_sync(const struct report *r)
{
	puts("sync");
	printf("  %-16s %s, %" PRIu64 " kHz\n", "tsc",
	       r->identity.tsc_invariant ? "invariant" : "not invariant", r->identity.tsc_khz);
	printf("  %-16s %s\n", "clock", r->clock[0] ? r->clock : "trusted");
	printf("  %-16s %s\n", "runs_on", r->cpus);
	printf("  %-16s sync-core %s\n", "membarrier",
	       r->sync_core ? "supported" : "not supported");
}

static void print_placements(const struct report *r)
{
	char reason[128];

	printf("placements%s\n", r->foreign ? " (of a described machine, not of this one)" : "");
	for (int p = 0; p < PLACEMENT_COUNT; p++) {
		unsigned n = placement_max(r->topology, (enum placement)p, reason, sizeof(reason));

		printf("  %-16s ", placement_name((enum placement)p));
		if (n)
			printf("%u executor%s\n", n, n == 1 ? "" : "s");
		else
			printf("gap: %s\n", reason);
	}
}

/* How old what is claimed is, and of what time it speaks. */
static void print_evidence(const struct pc_status *s)
{
	time_t when = (time_t)s->measured;
	char date[32] = "at an unknown time";

	if (!s->runs)
		return;
	if (when)
		strftime(date, sizeof(date), "%Y-%m-%d", gmtime(&when));
	printf("  %-16s %" PRIu64 " run%s, the latest %s; speaks for %s\n", "evidence", s->runs,
	       s->runs == 1 ? "" : "s", date, s->long_run ? "the long run" : "that time only");
}

static void print_status(const struct pc_status *s)
{
	puts("machine.conf");
	printf("  %-16s %s\n", "path", s->conf_path[0] ? s->conf_path : "none");
	printf("  %-16s %s\n", "verdict", verdict(s));
	printf("  %-16s %s (asked: %s)\n", "policy",
	       s->in_use == PC_POLICY_AUTO ? "none is safe" : policy_name(s->in_use),
	       policy_name(s->asked));
	printf("  %-16s %" PRIu64 " ticks\n", "first_wait", s->first_wait);
	printf("  %-16s %" PRIu64 " ticks\n", "second_wait", s->second_wait);
	if (s->level || s->line_level)
		printf("  %-16s %u across pages (below %.3g), %u across lines (below %.3g)\n",
		       "level", s->level, s->page_p, s->line_level, s->line_p);
	print_evidence(s);
	printf("  %-16s %u bytes\n", "window", s->atomic_window);
	printf("  %-16s %.3g per toggle\n", "upper_p", s->upper_p);
	printf("  %-16s %.3g per toggle\n", "accept_p", s->accept_p);
	printf("  %-16s %s\n", "reason", s->reason);
}

static int print_text(const struct report *r)
{
	print_identity(r);
	print_sync(r);
	print_placements(r);
	print_status(&r->status);
	return EXIT_PASS;
}

/* Paths may hold any bytes, JSON may not. */
static json_t *json_text(const char *text)
{
	json_t *string = json_string(text);
	char plain[256];
	size_t i;

	if (string)
		return string;
	for (i = 0; text[i] && i + 1 < sizeof(plain); i++)
		plain[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
	plain[i] = '\0';
	return json_string(plain);
}

/* Every value as text, just as machine.conf spells it. */
static json_t *json_identity(const struct identity *id)
{
	json_t *object = json_object();
	char value[128];
	const char *name;

	for (unsigned i = 0; identity_field(id, i, &name, value, sizeof(value)); i++)
		json_object_set_new(object, name, json_text(value));
	return object;
}

static json_t *json_placements(const struct report *r)
{
	json_t *array = json_array();
	char reason[128];

	for (int p = 0; p < PLACEMENT_COUNT; p++) {
		unsigned n = placement_max(r->topology, (enum placement)p, reason, sizeof(reason));

		json_array_append_new(array,
				      json_pack("{s:s, s:i, s:s?}", "name",
						placement_name((enum placement)p), "executors",
						(int)n, "gap", n ? NULL : reason));
	}
	return array;
}

static json_t *json_status(const struct pc_status *s)
{
	return json_pack(
		"{s:o, s:s, s:s, s:s?, s:I, s:I, s:i, s:f, s:f, s:o, s:i, s:i, s:f, s:f, s:b, "
		"s:I, s:I}",
		"path", s->conf_path[0] ? json_text(s->conf_path) : json_null(), "verdict",
		verdict(s), "asked", policy_name(s->asked), "policy",
		s->in_use == PC_POLICY_AUTO ? NULL : policy_name(s->in_use), "first_wait",
		(json_int_t)s->first_wait, "second_wait", (json_int_t)s->second_wait, "window",
		(int)s->atomic_window, "upper_p", s->upper_p, "accept_p", s->accept_p, "reason",
		json_text(s->reason), "level", (int)s->level, "line_level", (int)s->line_level,
		"page_p", s->page_p, "line_p", s->line_p, "long_run", s->long_run, "runs",
		(json_int_t)s->runs, "measured", (json_int_t)s->measured);
}

static json_t *json_report(const struct report *r)
{
	return json_pack("{s:s, s:i, s:o, s:o, s:{s:b, s:I, s:s?}, s:s, s:{s:b}, s:b, s:o, s:o}",
			 "schema", INFO_SCHEMA, "version", INFO_VERSION, "machine",
			 json_identity(&r->identity), "codename_display_only",
			 json_text(r->codename), "tsc", "invariant", r->identity.tsc_invariant,
			 "khz", (json_int_t)r->identity.tsc_khz, "problem",
			 r->clock[0] ? r->clock : NULL, "runs_on", r->cpus, "membarrier",
			 "sync_core", r->sync_core, "topology_described", r->foreign, "placements",
			 json_placements(r), "machine_conf", json_status(&r->status));
}

static int print_json(const struct report *r)
{
	json_t *object = json_report(r);
	int ret = EXIT_INTERNAL;

	if (object && json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) == 0 &&
	    putchar('\n') != EOF)
		ret = EXIT_PASS;
	else if (object)
		ret = EXIT_CANNOT_WRITE;
	json_decref(object);
	return ret;
}

int cmd_info(int argc, char **argv)
{
	struct request r = { .json = false };
	struct report report;
	int ret = command_line_parse(&line, argc, argv, &r, NULL);

	if (ret == EXIT_PASS)
		ret = gather(&report);
	if (ret != EXIT_PASS)
		return ret;
	ret = r.json ? print_json(&report) : print_text(&report);
	hwloc_topology_destroy(report.topology);
	if (ret != EXIT_PASS || !is_refused(&report.status))
		return ret;
	error(0, 0, "%s: %s", report.status.conf_path, report.status.reason);
	return EXIT_NO_CONF;
}
