/* SPDX-License-Identifier: MIT */
/* Lines of evidence and journals, and dumps of CPUID, into the database. */
#include "fleet/store/intake.h"

#include <ctype.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text_file.h"
#include "results/journal/journal.h"
#include "stress/placement/placement.h"

#define DUMP_MAX (1 << 20) /* bytes; libcpuid writes some 20 thousand */

/* One file on its way in. */
struct taking {
	struct fleet *fleet;
	struct intake *intake;
	const char *path;
	char machine[FLEET_NAME];
	unsigned epoch;		     /* that the lines so far have begun */
	bool has_run;		     /* a journal's run line was seen: its cells follow */
	struct evidence_run journal; /* what they add up to */
	int64_t begin;		     /* when it began */
	char processor[64];	     /* whose dump was looked for last */
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

/* --- Dumps of CPUID --------------------------------------------------------------------------- */

/* Beside the file, as calibrate leaves it there. */
static int look_for_dump(struct taking *t, const struct identity *id)
{
	char name[sizeof(t->processor)], path[PATH_MAX], *text;
	struct cpu_name cpu;
	int ret;

	snprintf(name, sizeof(name), "%s-%u-%u-%u", id->vendor, id->family, id->model,
		 id->stepping);
	if (strcmp(name, t->processor) == 0)
		return 0;
	strcpy(t->processor, name);
	for (const char *c = id->vendor; *c; c++)
		if (!isalnum((unsigned char)*c))
			return 0; /* what a line says is no path */
	if (snprintf(path, sizeof(path), "%s.%s.cpuid", t->path, name) >= (int)sizeof(path))
		return 0;
	/* One that libcpuid cannot read is none. */
	ret = cpuid_name_of(path, &cpu);
	if (ret == -EINVAL)
		return set_aside(t, 0, path, "no dump of CPUID that libcpuid can read");
	text = ret == 0 ? text_file_read(path) : NULL;
	ret = 0;
	if (text && strlen(text) < DUMP_MAX)
		ret = fleet_add_cpuid(t->fleet, name, text);
	free(text);
	return ret < 0 ? ret : 0;
}

/* --- Runs ------------------------------------------------------------------------------------- */

static int add_run(struct taking *t, struct evidence_run *run)
{
	int ret;

	run->epoch = t->epoch;
	ret = fleet_add_run(t->fleet, t->machine, run);
	t->intake->runs += ret > 0;
	t->intake->known += ret == 0;
	return ret < 0 ? ret : look_for_dump(t, &run->identity);
}

/* --- Journals --------------------------------------------------------------------------------- */

static int64_t time_of(const json_t *line)
{
	const char *date = json_string_value(json_object_get(line, "date"));
	struct tm tm = { 0 };

	return date && strptime(date, "%Y-%m-%dT%H:%M:%SZ", &tm) ? timegm(&tm) : 0;
}

/* What the cells since the last run line add up to, unless the store of evidence has that run. */
static int end_journal_run(struct taking *t)
{
	struct evidence_run *run = &t->journal;
	int ret = 0;

	if (t->has_run && run->sums.count) {
		ret = fleet_has_counted(t->fleet, run, t->begin, run->time + 60);
		if (ret == 0)
			ret = add_run(t, run);
		else
			t->intake->known += ret > 0;
	}
	sums_free(&run->sums);
	t->has_run = false;
	return ret < 0 ? ret : 0;
}

/* --- Lines ------------------------------------------------------------------------------------ */

static int take_json(struct taking *t, size_t number, const char *text, const json_t *line)
{
	const char *type = json_string_value(json_object_get(line, "type"));
	struct evidence_run run, *journal = &t->journal;
	struct cell_record record;
	int ret;

	switch (evidence_take_line(line, &run)) {
	case EVIDENCE_RUN:
		ret = add_run(t, &run);
		sums_free(&run.sums);
		return ret;
	case EVIDENCE_EPOCH:
		t->epoch++;
		return 0;
	case EVIDENCE_BROKEN:
		return set_aside(t, number, text,
				 type ? "its checksum or a field is wrong" : "no type");
	case EVIDENCE_OTHER:
		break;
	}
	if (strcmp(type, "run") == 0) {
		ret = end_journal_run(t);
		if (ret < 0)
			return ret;
		*journal = (struct evidence_run){ .source = "journal" };
		t->begin = journal->time = time_of(line);
		t->has_run = identity_from_json(json_object_get(line, "identity"),
						&journal->identity) == 0;
		return 0;
	}
	if (strcmp(type, "cell") != 0)
		return 0;
	ret = -EINVAL;
	if (t->has_run && record_from_json(line, &record) == 0) {
		if (time_of(line) > journal->time)
			journal->time = time_of(line);
		ret = sums_add_record(&journal->sums, &record);
	}
	return ret == -EINVAL ? set_aside(t, number, text, "a cell that cannot be read") : ret;
}

int fleet_take_file(struct fleet *fleet, const char *path, const char *machine,
		    struct intake *intake)
{
	struct taking t = { .fleet = fleet, .intake = intake, .path = path };
	char *text = malloc(JOURNAL_LINE_MAX);
	FILE *file = text_file_open(path);
	int ret = file ? text ? 0 : -ENOMEM : -errno;
	size_t number = 0;

	if (machine)
		snprintf(t.machine, sizeof(t.machine), "%s", machine);
	else
		fleet_machine_of(path, t.machine, sizeof(t.machine));
	while (ret == 0 && fgets(text, JOURNAL_LINE_MAX, file)) {
		size_t length = strlen(text);

		number++;
		if (length == JOURNAL_LINE_MAX - 1 && text[length - 1] != '\n') {
			for (int c = 0; c != '\n' && c != EOF;)
				c = getc(file);
			ret = set_aside(&t, number, text, "too long a line");
		} else if (length > 1) {
			json_t *line = json_loadb(text, length, 0, NULL);

			if (json_is_object(line))
				ret = take_json(&t, number, text, line);
			else
				ret = set_aside(&t, number, text, "no JSON object");
			json_decref(line);
		}
	}
	if (ret == 0 && ferror(file))
		ret = -EIO;
	if (ret == 0)
		ret = end_journal_run(&t);
	sums_free(&t.journal.sums);
	if (file)
		fclose(file);
	free(text);
	return ret;
}
