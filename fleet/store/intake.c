/* SPDX-License-Identifier: MIT */
/* Lines of evidence and journals into the database. */
#include "fleet/store/intake.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/text_file.h"
#include "calibrate/statistics/protocol_rows.h"
#include "results/journal/journal.h"

/* One file on its way in. */
struct taking {
	struct fleet *fleet;
	struct intake *intake;
	const char *path;
	char machine[FLEET_NAME];
	bool is_ours; /* some line was */
	int64_t *run; /* of the evidence since the last epoch began */
	size_t runs;
	bool has_run;		     /* a journal's run line was seen: its cells follow */
	uint64_t seed;		     /* of that line */
	struct evidence_run journal; /* what they add up to */
	struct cell_record *slice;   /* and those of tmax protocols */
	size_t slices;
};

void fleet_machine_of(const char *path, char *name, size_t size)
{
	char copy[PATH_MAX], folder[PATH_MAX];
	const char *base, *own;

	snprintf(copy, sizeof(copy), "%s", path);
	snprintf(folder, sizeof(folder), "%s", path);
	base = basename(copy);
	own = basename(dirname(folder));
	/* What calibrate writes has the same name everywhere. */
	if (strncmp(base, "machine.conf", 12) == 0 && strcmp(own, ".") != 0 &&
	    strcmp(own, "/") != 0)
		snprintf(name, size, "%s", own);
	else
		snprintf(name, size, "%.*s", (int)strcspn(base, "."), base);
}

static int set_aside(struct taking *t, size_t number, const char *line, const char *reason)
{
	int ret = fleet_set_aside(t->fleet, t->path, number, line, reason);

	t->intake->aside += ret >= 0;
	return ret < 0 ? ret : 0;
}

/* --- Runs ------------------------------------------------------------------------------------- */

static int add_run(struct taking *t, const struct evidence_run *run, int64_t *id)
{
	int ret = fleet_add_run(t->fleet, t->machine, run, id);

	t->is_ours = true;
	t->intake->runs += ret > 0;
	t->intake->known += ret == 0;
	return ret < 0 ? ret : 0;
}

static int add_evidence(struct taking *t, const struct evidence_run *run)
{
	int64_t id;
	int ret = add_run(t, run, &id);

	return ret < 0 ? ret : ARRAY_ADD(t->run, t->runs, id);
}

static int begin_epoch(struct taking *t)
{
	int ret = 0;

	for (; t->runs && ret == 0; t->runs--)
		ret = fleet_drop_run(t->fleet, t->run[t->runs - 1]);
	return ret;
}

/* --- Journals --------------------------------------------------------------------------------- */

static int64_t time_of(const json_t *line)
{
	const char *date = json_string_value(json_object_get(line, "date"));
	struct tm tm = { 0 };

	return date && strptime(date, "%Y-%m-%dT%H:%M:%SZ", &tm) ? timegm(&tm) : 0;
}

static int add_protocols(struct taking *t, int64_t run)
{
	struct protocol_rows rows;
	int ret = protocol_rows_make(&rows, t->slice, t->slices);

	/* Without a control that tore nothing is known. */
	for (size_t i = 0; i < rows.count && rows.seen && ret >= 0; i++) {
		const struct protocol_part *part = &rows.row[i].part[PART_CLAIMED];
		struct fleet_protocol protocol = { .changes = part->count.toggles,
						   .tears = part->count.tears,
						   .died = part->died };

		snprintf(protocol.name, sizeof(protocol.name), "%s",
			 protocol_name(rows.row[i].protocol));
		if (part->sites)
			ret = fleet_add_protocol(t->fleet, run, &protocol);
	}
	protocol_rows_free(&rows);
	return ret < 0 ? ret : 0;
}

/* What the cells of a run add up to. */
static int end_journal_run(struct taking *t)
{
	struct evidence_run *run = &t->journal;
	int64_t id;
	int ret = 0;

	if (t->has_run && (run->sums.count || t->slices))
		ret = add_run(t, run, &id);
	if (ret >= 0 && t->slices)
		ret = add_protocols(t, id);
	t->slices = 0;
	sums_free(&run->sums);
	t->has_run = false;
	return ret;
}

/* A start of the program that resumes one which was killed has its seed, and is the same run. */
static int begin_journal_run(struct taking *t, const json_t *line)
{
	struct evidence_run run = { .source = "journal", .time = time_of(line), .up = -1 };
	uint64_t seed = JOURNAL_NO_SEED;
	bool is_known = identity_from_json(json_object_get(line, "identity"), &run.identity) == 0;
	bool has_seed = seed_from_json(json_object_get(line, "seed"), &seed) == 0;
	int ret;

	if (t->has_run && is_known && has_seed && seed == t->seed &&
	    !identity_differs(&run.identity, &t->journal.identity))
		return 0;
	ret = end_journal_run(t);
	t->journal = run;
	t->has_run = is_known;
	t->seed = seed;
	t->is_ours |= is_known;
	return ret;
}

static int add_cell(struct taking *t, const json_t *line)
{
	struct evidence_run *run = &t->journal;
	struct cell_record record;

	if (!t->has_run || record_from_json(line, &record) < 0)
		return -EINVAL;
	if (!run->print[0])
		evidence_start(run->print, &record);
	if (time_of(line) > run->time)
		run->time = time_of(line);
	if (strncmp(record.stage, STAGE_CLAIMED, strlen(STAGE_CLAIMED)) == 0)
		return ARRAY_ADD(t->slice, t->slices, record);
	return sums_add_record(&run->sums, &record);
}

/* --- Lines ------------------------------------------------------------------------------------ */

static int take_journal_line(struct taking *t, size_t number, const char *text, const json_t *line)
{
	const char *type = json_text_of(line, "type");
	int ret = 0;

	if (strcmp(type, "run") == 0)
		ret = begin_journal_run(t, line);
	else if (strcmp(type, "estimate") == 0)
		ret = end_journal_run(t);
	else if (strcmp(type, "cell") == 0)
		ret = add_cell(t, line);
	return ret == -EINVAL ? set_aside(t, number, text, "a cell that cannot be read") : ret;
}

static int take_line(void *arg, size_t number, const char *text, size_t length)
{
	const char *why = text ? "its checksum or a field is wrong" : "too long a line";
	struct taking *t = arg;
	struct evidence_run run;
	json_t *other;
	int ret = 0;

	if (text && !length)
		return 0;
	switch (evidence_take_line(text, length, &run, &other)) {
	case EVIDENCE_RUN:
		ret = add_evidence(t, &run);
		sums_free(&run.sums);
		break;
	case EVIDENCE_EPOCH:
		ret = begin_epoch(t);
		t->is_ours = true;
		break;
	case EVIDENCE_LOST:
		ret = begin_epoch(t);
		if (ret == 0)
			ret = set_aside(t, number, text ? text : t->path, why);
		break;
	case EVIDENCE_BROKEN:
		t->is_ours = true;
		ret = set_aside(t, number, text, why);
		break;
	case EVIDENCE_OTHER:
		ret = take_journal_line(t, number, text, other);
		json_decref(other);
		break;
	}
	return ret;
}

int fleet_take_file(struct fleet *fleet, const char *path, const char *machine,
		    struct intake *intake)
{
	struct taking t = { .fleet = fleet, .intake = intake, .path = path };
	const struct intake before = *intake;
	FILE *file = text_file_open(path);
	int ret = file ? fleet_begin_file(fleet) : -errno, ended = 0;

	if (machine)
		snprintf(t.machine, sizeof(t.machine), "%s", machine);
	else
		fleet_machine_of(path, t.machine, sizeof(t.machine));
	if (ret == 0)
		ret = journal_each_line(file, take_line, &t);
	if (ret == 0)
		ret = end_journal_run(&t);
	if (ret == 0 && !t.is_ours)
		ret = -ENOMSG;
	/* Where a file is cut an epoch may have begun. */
	if (file)
		ended = fleet_end_file(fleet, ret == 0);
	if (ret < 0)
		*intake = before;
	else
		ret = ended;
	sums_free(&t.journal.sums);
	free(t.run);
	free(t.slice);
	if (file)
		fclose(file);
	return ret;
}
