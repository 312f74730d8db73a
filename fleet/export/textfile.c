/* SPDX-License-Identifier: MIT */
/*
 * Metrics by the conventions of Prometheus: base units in the names, one HELP and TYPE per name and
 * file, which are the same in every file, and each series marked with its machine.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/text_file.h"
#include "fleet/export/export.h"
#include "fleet/judge/judge.h"
#include "fleet/judge/ladder_of.h"

#define WAIT_P	  1e-4 /* tears per toggle that a wait of a machine stays below */
#define FILE_NAME 64   /* bytes of a machine's name in that of its file */

struct collection {
	const char *folder;
	struct fleet_host *hosts;
	size_t count;
	time_t now;
};

/* --- Texts ------------------------------------------------------------------------------------ */

/* A label's value may be any UTF-8; three characters are escaped. */
static void put_label(FILE *out, const char *name, const char *value)
{
	json_t *valid = json_string(value); /* NULL if it is no UTF-8 */

	fprintf(out, "%s=\"", name);
	for (; *value; value++)
		if (*value == '\n')
			fputs("\\n", out);
		else if (*value == '"' || *value == '\\')
			fprintf(out, "\\%c", *value);
		else
			fputc(valid || !(*value & 0x80) ? *value : '?', out);
	fputc('"', out);
	json_decref(valid);
}

/*
 * The name of a file: a machine's own where that is plain, else what is left of it and its number
 * in the database, so that no two share a file and none leaves the folder.
 */
static void file_of(const struct fleet_host *host, char *name, size_t size)
{
	char text[FILE_NAME];
	size_t length = strlen(host->name);
	bool same = length > 0 && length < sizeof(text);

	snprintf(text, sizeof(text), "%.*s", (int)sizeof(text) - 1, host->name);
	for (char *c = text; *c; c++) {
		if (isalnum((unsigned char)*c) || strchr("-_", *c) || (*c == '.' && c != text))
			continue;
		*c = '_';
		same = false;
	}
	if (same)
		snprintf(name, size, "%s.prom", text);
	else
		snprintf(name, size, "%s~%" PRId64 ".prom", text, host->machine);
}

/* --- Metrics ---------------------------------------------------------------------------------- */

static void put_head(FILE *out, const char *name, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

/* Left out where it is unknown. */
static void put_metric(FILE *out, const struct fleet_host *host, const char *name, const char *help,
		       double value)
{
	if (!isfinite(value))
		return;
	put_head(out, name, help);
	fprintf(out, "%s{", name);
	put_label(out, "machine", host->name);
	fprintf(out, "} %.17g\n", value);
}

/* --- Files ------------------------------------------------------------------------------------ */

static int write_file(const struct collection *all, const struct fleet_host *host,
		      const struct kind_report *r, const struct judged *judged, size_t looked_at)
{
	char name[FILE_NAME + 32], path[PATH_MAX], fresh[PATH_MAX + 8];
	static const char seconds[] = "tmax_machine_change_seconds";
	const struct identity *id = &r->kind->identity;
	const struct estimate *e = &r->estimate;
	const char *const labels[][2] = {
		{ "machine", host->name },	  { "vendor", id->vendor },
		{ "brand", id->brand },		  { "microcode", id->microcode },
		{ "hypervisor", id->hypervisor }, { "kernel", host->kernel },
	};
	double p = fmin(1, judged->p * (double)looked_at);
	bool some = false;
	FILE *out;

	file_of(host, name, sizeof(name));
	if (snprintf(path, sizeof(path), "%s/%s", all->folder, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	/* The collector reads what ends with .prom. */
	snprintf(fresh, sizeof(fresh), "%s.tmp", path);
	out = fopen(fresh, "we");
	if (!out)
		return -errno;
	put_head(out, "tmax_machine_info", "What the machine was in its latest run.");
	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
		fputs(i ? "," : "tmax_machine_info{", out);
		put_label(out, labels[i][0], labels[i][1]);
	}
	fprintf(out, ",family=\"%u\",model=\"%u\",stepping=\"%u\",cpus=\"%u\"} 1\n", id->family,
		id->model, id->stepping, id->cpus);
	put_metric(out, host, "tmax_machine_runs", "Runs that are known of the machine.",
		   (double)host->runs);
	put_metric(out, host, "tmax_machine_last_run_timestamp_seconds",
		   "When its latest run ended.", (double)host->time);
	put_metric(out, host, "tmax_machine_toggles", "Toggles by waits, as the kind that it is.",
		   (double)judged->toggles);
	put_metric(out, host, "tmax_machine_tears", "Toggles of these that tore.",
		   (double)judged->tears);
	put_metric(out, host, "tmax_machine_tears_to_kind_ratio",
		   "Times as often as its kind that the machine tears.",
		   judged->hours ? judged->times : NAN);
	put_metric(out, host, "tmax_machine_luck_ratio",
		   "The chance of that or more on a machine like its kind, corrected for looking "
		   "at all.",
		   p);
	put_metric(out, host, "tmax_machine_suspect",
		   "Is the machine worse than its kind by more than luck explains?", p < SUSPECT);
	put_metric(out, host, "tmax_kind_machines", "Machines of its kind.",
		   (double)r->kind->machines);
	for (int c = 0; c < CLAIMS && host->khz; c++) {
		int best = estimate_best(e, c, WAIT_P);

		if (best < 0 || !(e->level[best].ticks > 0))
			continue;
		if (!some)
			put_head(out, seconds,
				 "What a change takes at the cheapest wait whose bound on tears is "
				 "below 1e-4 for the kind of this machine.");
		some = true;
		fprintf(out, "%s{", seconds);
		put_label(out, "machine", host->name);
		fprintf(out, ",crossing=\"%s\"} %.9g\n", claim_name(c),
			e->level[best].ticks / (double)host->khz / 1000);
	}
	put_metric(out, host, "tmax_export_completion_timestamp_seconds",
		   "When this file was completed.", (double)all->now);
	return text_file_end(out, fresh, path, 0);
}

static int by_machine(const void *a, const void *b)
{
	const struct fleet_host *x = a, *y = b;

	return (x->machine > y->machine) - (x->machine < y->machine);
}

/* The machines that are of this kind now. How many. */
static int put_machines(const struct kind_report *r, void *arg)
{
	const struct collection *all = arg;
	struct judged *judged;
	size_t n;
	int ret = judge_machines(r->runs, r->count, &judged, &n), written = 0;

	for (size_t i = 0; i < n && ret == 0; i++) {
		const struct fleet_host key = { .machine = judged[i].machine },
					*host = bsearch(&key, all->hosts, all->count, sizeof(*host),
							by_machine);

		if (!host || host->kind != r->kind->id)
			continue;
		ret = write_file(all, host, r, &judged[i], n);
		written += ret == 0;
	}
	free(judged);
	return ret < 0 ? ret : written;
}

int export_textfile(const char *folder, struct fleet *fleet)
{
	struct collection all = { .folder = folder, .now = time(NULL) };
	int ret = mkdir(folder, 0777) < 0 && errno != EEXIST ? -errno : 0;

	if (ret == 0)
		ret = fleet_hosts(fleet, &all.hosts, &all.count);
	if (ret == 0)
		ret = each_kind(fleet, put_machines, &all);
	free(all.hosts);
	return ret == -ENODATA ? 0 : ret;
}
