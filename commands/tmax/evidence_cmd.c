/* SPDX-License-Identifier: MIT */
/* tmax evidence: what all runs together have counted on this machine. */
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "base/text.h"
#include "calibrate/statistics/evidence.h"
#include "calibrate/verify/conf_write.h"
#include "commands/tmax/commands.h"
#include "patchcore/machine/kinds.h"
#include "patchcore/machine/machine_conf.h"
#include "stress/placement/placement.h"

struct evidence_request {
	const char *store, *from;
	char default_store[PATH_MAX + 16];
	bool drop, verbose, json;
};

static const struct option_row options[] = {
	{ "evidence", "FILE", "the store (default: beside the config that calibrate writes)",
	  OPTION_FILE(struct evidence_request, store) },
	{ "verbose", NULL, "every rung and placement, too",
	  OPTION_FLAG(struct evidence_request, verbose) },
	{ "json", NULL, "print one line of JSON instead of text",
	  OPTION_FLAG(struct evidence_request, json) },
	{ "drop", NULL, "begin a new epoch: what was counted so far counts no more",
	  OPTION_FLAG(struct evidence_request, drop) },
	{ "import", "FILE", "add the runs of a store's present epoch that are not in this one",
	  OPTION_FILE(struct evidence_request, from) },
	{ 0 },
};

static const struct command_line line = {
	.about = "Show what all calibrations together have counted on this machine: how much, how\n"
		 "old, in how many runs and boots, and what it supports.\n",
	.options = { options },
	.end = "Exit status: 0, 3 nothing is known, 64 usage, 69 it cannot be read, 74 cannot\n"
	       "write.\n",
};

static unsigned count_boots(const struct evidence *e)
{
	json_t *boots = json_object();
	size_t count;

	for (const struct evidence_run *run = e->run; run < e->run + e->count; run++)
		if (run->epoch == e->epoch)
			json_object_set_new(boots, run->boot, json_true());
	count = json_object_size(boots);
	json_decref(boots);
	return (unsigned)count;
}

/* A row of text, or a member of the JSON array. */
static void show_runs(const struct evidence *e, json_t *array)
{
	for (size_t i = 0; i < e->count; i++) {
		const struct evidence_run *run = &e->run[i];
		uint64_t toggles = 0, tears = 0;

		for (size_t k = 0; k < run->sums.count; k++) {
			toggles += run->sums.sum[k].count.toggles;
			tears += run->sums.sum[k].count.tears;
		}
		if (array)
			json_array_append_new(array, json_pack("{s:i, s:s, s:s, s:I, s:I}", "epoch",
							       (int)run->epoch, "date", run->date,
							       "source", run->source, "toggles",
							       (json_int_t)toggles, "tears",
							       (json_int_t)tears));
		else
			printf("  epoch %u  %s  %-8s  %s toggles, %s %s, %s\n", run->epoch,
			       run->date, run->source, NUMBER(toggles), NUMBER(tears),
			       tears_word(tears), run->identity.brand);
	}
}

static int show_evidence(const struct evidence_request *r, const struct evidence *e)
{
	struct plan plan = *plan_find("default");
	struct estimate estimate;
	struct knowledge known;
	hwloc_topology_t topology;
	struct identity id;
	struct cpus cpus;
	struct provenance from = { .identity = &id, .plan = &plan, .cpus = &cpus };
	unsigned boots = count_boots(e);
	int ret, status = machine_here(&id);

	if (status == EXIT_PASS)
		status = topology_here(&topology);
	if (status != EXIT_PASS)
		return status;
	plan_seat(&plan, topology);
	plan.widest = kind_read(&id).widest;
	cpus_here(topology, &cpus);
	hwloc_topology_destroy(topology);
	ret = knowledge_of(&known, e, &id, &cpus);
	if (ret < 0)
		return complain(EXIT_MISSING, ret, "cannot read %s", r->store);
	if (known.latest)
		estimate_make(&estimate, known.runs, known.count, &plan);
	if (r->json) {
		json_t *runs = json_array(), *body;
		char store[PATH_MAX];

		text_printable(store, sizeof(store), r->store);
		show_runs(e, runs);
		body = json_pack("{s:s, s:i, s:I, s:i, s:i, s:i, s:s?, s:o, s:o}", "store", store,
				 "epoch", (int)e->epoch, "broken", (json_int_t)e->broken,
				 "known_runs", (int)known.all, "hours", (int)known.count, "boots",
				 (int)boots, "latest", known.latest ? known.latest->date : NULL,
				 "runs", runs, "estimate",
				 known.latest ? estimate_to_json(&estimate) : json_null());
		if (body)
			journal_tell(stdout, journal_line("store", body));
		json_decref(body);
	} else if (!known.latest) {
		printf("Nothing is known of these CPUs as they are now (%s: %zu run%s of others or "
		       "of before): run tmax calibrate.\n",
		       r->store, e->count, S(e->count));
		show_runs(e, NULL);
	} else {
		printf("Evidence: %s: %zu run%s in %zu hour%s and %u boot%s, the latest %s; epoch "
		       "%u\n",
		       r->store, known.all, S(known.all), known.count, S(known.count), boots,
		       S(boots), known.latest->date, e->epoch);
		if (r->verbose)
			show_runs(e, NULL);
		summary_print(stdout, &estimate, &from);
		if (r->verbose)
			summary_details(stdout, &estimate, &from);
	}
	status = known.latest ? EXIT_PASS : EXIT_NO_CONF;
	knowledge_free(&known);
	return status;
}

/* One import at a time, so that none adds what another one does. Goes with the process. */
static int lock_store(const char *path)
{
	struct flock lock = { .l_type = F_WRLCK, .l_start = INT64_MAX - 1, .l_len = 1 };
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	return fd < 0 || (fcntl(fd, F_OFD_SETLKW, &lock) < 0 && errno != EINVAL) ? -errno : 0;
}

/* Append to a store the runs of `what` that `has` lacks. Returns how many, or -errno. */
static int append_all(const char *path, const struct evidence *what, const struct evidence *has)
{
	unsigned epoch = 0;
	int ret = 0, added = 0;

	for (size_t i = 0; i < what->count && ret == 0; i++) {
		const struct evidence_run *run = &what->run[i];
		bool known = false;

		for (size_t k = 0; k < has->count && !known; k++)
			known = strcmp(has->run[k].print, run->print) == 0;
		/* Runs of an earlier epoch would stand behind those of a later one. */
		if (known || (has->count && run->epoch != what->epoch))
			continue;
		if (epoch && run->epoch != epoch)
			ret = evidence_begin_epoch(path, "as in the store that was imported");
		epoch = run->epoch;
		if (ret == 0)
			ret = evidence_append(path, run);
		added += ret == 0;
	}
	return ret < 0 ? ret : added;
}

int cmd_evidence(int argc, char **argv)
{
	struct evidence_request r = { 0 };
	struct evidence e, other;
	char conf[PATH_MAX];
	int ret, status = command_line_parse(&line, argc, argv, &r, NULL);

	if (status != EXIT_PASS)
		return status;
	if (r.drop + !!r.from + r.json > 1)
		return refuse_usage("one of --drop, --import and --json at a time");
	if (!r.store) {
		if (machine_conf_default_path(conf, sizeof(conf)) < 0)
			return refuse_usage("no home folder to look in: give --evidence");
		snprintf(r.default_store, sizeof(r.default_store), "%s.evidence", conf);
		r.store = r.default_store;
	}
	ret = evidence_check(r.store);
	if (ret == 0 && r.from)
		ret = lock_store(r.store);
	if (ret == 0)
		ret = evidence_read(r.store, &e);
	if (ret < 0)
		return complain(EXIT_MISSING, ret, "cannot read %s", r.store);
	if (e.broken)
		error(0, 0, "%s: %zu unreadable line%s passed over", r.store, e.broken,
		      S(e.broken));
	if (r.drop) {
		ret = evidence_begin_epoch(r.store, "dropped by the user");
		if (ret >= 0)
			printf("What was counted so far counts no more. The next calibration "
			       "begins anew; the config\nstays as it is until then.\n");
	} else if (r.from) {
		ret = access(r.from, R_OK) < 0 ? -errno : evidence_read(r.from, &other);
		if (ret < 0) {
			status = complain(EXIT_MISSING, ret, "cannot read %s", r.from);
			goto out;
		}
		ret = append_all(r.store, &other, &e);
		evidence_free(&other);
		if (ret >= 0)
			printf("%d run%s added to %s\n", ret, S(ret), r.store);
	} else {
		status = show_evidence(&r, &e);
	}
	if (ret < 0)
		status = complain(EXIT_CANNOT_WRITE, ret, "cannot write %s", r.store);
out:
	evidence_free(&e);
	return status;
}
