/* SPDX-License-Identifier: MIT */
#include "calibrate/statistics/evidence.h"

#include <errno.h>
#include <error.h>
#include <gsl/gsl_cdf.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/text_file.h"
#include "patchcore/machine/identity.h"

#define EVIDENCE_SCHEMA 1
#define HOUR		3600 /* seconds */
#define ALMOST_NONE	0.5  /* added to tears, so that none has a logarithm */
#define AGREED		1e-6 /* of logarithms: what rounding leaves between equal ones */

uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

/*
 * Of a line, as text: detects damage, not forgery. What the journal adds to each line is not under
 * the seal, and neither is the seal.
 */
static char *seal_of(const json_t *line, char text[EVIDENCE_PRINT])
{
	static const char *const unsealed[] = { "checksum", "type", "schema", "tool", "date" };
	json_t *body = json_copy((json_t *)(uintptr_t)line);
	char *dump;

	for (size_t i = 0; body && i < sizeof(unsealed) / sizeof(unsealed[0]); i++)
		json_object_del(body, unsealed[i]);
	dump = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
	snprintf(text, EVIDENCE_PRINT, "%016" PRIx64, hash_text(HASH_START, dump ? dump : ""));
	free(dump);
	json_decref(body);
	return text;
}

static bool is_sealed(const json_t *line)
{
	char text[EVIDENCE_PRINT];

	return strcmp(json_text_of(line, "checksum"), seal_of(line, text)) == 0;
}

/* --- Writing ---------------------------------------------------------------------------------- */

int evidence_check(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (st.st_uid != 0 && st.st_uid != geteuid())
		error(0, 0, "%s belongs to user %u, who may claim anything: chown it", path,
		      st.st_uid);
	else if (st.st_mode & (S_IWGRP | S_IWOTH))
		error(0, 0, "%s can be written to by others (mode %04o): chmod go-w it", path,
		      (unsigned)(st.st_mode & 07777));
	else
		return 0;
	return -EPERM;
}

/* The body is freed. */
static int append_line(const char *path, const char *type, json_t *body)
{
	struct journal *journal;
	char seal[EVIDENCE_PRINT];
	int ret = evidence_check(path);

	if (!body || json_object_set_new(body, "checksum", json_string(seal_of(body, seal))))
		ret = -ENOMEM;
	if (ret == 0)
		ret = journal_open(&journal, path);
	if (ret == 0) {
		ret = journal_write_line(journal, type, body);
		journal_close(journal);
	}
	json_decref(body);
	return ret;
}

int evidence_append(const char *path, const struct evidence_run *run)
{
	char cpus[CPUS_TEXT];

	cpus_print(&run->cpus, cpus, sizeof(cpus));
	return append_line(
		path, "evidence",
		json_pack("{s:i, s:s, s:I, s:o*, s:s, s:s*, s:s, s:o, s:o}", "evidence",
			  EVIDENCE_SCHEMA, "cpus", cpus, "time", (json_int_t)run->time, "up",
			  run->up < 0 ? NULL : json_integer(run->up), "boot", run->boot, "start",
			  run->start[0] ? run->start : NULL, "source", run->source, "identity",
			  identity_to_json(&run->identity), "sums", sums_to_json(&run->sums)));
}

int evidence_begin_epoch(const char *path, const char *reason)
{
	return append_line(path, "epoch",
			   json_pack("{s:i, s:s}", "evidence", EVIDENCE_SCHEMA, "reason", reason));
}

/* By what a reader of the journal finds there, too. */
void evidence_start(char start[EVIDENCE_PRINT], const struct cell_record *first)
{
	const struct cell_result *r = &first->result;
	char text[128];

	snprintf(text, sizeof(text), " %s %" PRIu64 " %" PRIu64 " %" PRIu64, first->date,
		 r->toggles, r->exposed, r->ticks);
	snprintf(start, EVIDENCE_PRINT, "%016" PRIx64,
		 hash_text(hash_text(HASH_START, first->key), text));
}

void evidence_stamp(struct evidence_run *run, const char *source, const struct identity *id,
		    const struct cpus *cpus, const struct cell_record *first)
{
	struct timespec now = { .tv_sec = -1 };

	clock_gettime(CLOCK_BOOTTIME, &now);
	date_text(time(NULL), false, run->date);
	run->time = time(NULL);
	run->up = now.tv_sec;
	if (!identity_line(&identity_here, "/proc/sys/kernel/random/boot_id", run->boot,
			   sizeof(run->boot)))
		run->boot[0] = '\0';
	snprintf(run->source, sizeof(run->source), "%s", source);
	run->identity = *id;
	run->cpus = *cpus;
	if (first)
		evidence_start(run->start, first);
}

int evidence_add(const char *path, const char *source, const struct identity *id,
		 const struct cpus *cpus, const struct cell_record *records, size_t count)
{
	struct evidence_run run = { 0 };
	int ret = 0;

	for (size_t i = 0; i < count && ret == 0; i++)
		ret = sums_add_record(&run.sums, &records[i]);
	evidence_stamp(&run, source, id, cpus, records);
	if (ret == 0 && run.sums.count)
		ret = evidence_append(path, &run);
	if (ret < 0)
		error(0, -ret, "not added to the evidence %s", path);
	sums_free(&run.sums);
	return ret;
}

/* --- Reading ---------------------------------------------------------------------------------- */

/* Texts are printed: what a terminal takes for a command is none. */
static bool take_run(const json_t *line, struct evidence_run *run)
{
	const char *cpus, *date, *boot, *source, *start = "";
	json_int_t time, schema, up = -1;
	char seal[EVIDENCE_PRINT];
	json_t *identity, *sums;

	*run = (struct evidence_run){ 0 };
	if (is_sealed(line) &&
	    json_unpack((json_t *)(uintptr_t)line,
			"{s:I, s:s, s:I, s?:I, s:s, s:s, s?:s, s:s, s:o, s:o}", "evidence", &schema,
			"cpus", &cpus, "time", &time, "up", &up, "date", &date, "boot", &boot,
			"start", &start, "source", &source, "identity", &identity, "sums",
			&sums) == 0 &&
	    schema == EVIDENCE_SCHEMA && time >= 0 && up >= -1 &&
	    cpus_parse(&run->cpus, cpus, strlen(cpus)) == 0 &&
	    text_take(date, run->date, sizeof(run->date)) == 0 &&
	    text_take(boot, run->boot, sizeof(run->boot)) == 0 &&
	    text_take(start, run->start, sizeof(run->start)) == 0 &&
	    text_take(source, run->source, sizeof(run->source)) == 0 &&
	    identity_from_json(identity, &run->identity) == 0 &&
	    sums_from_json(sums, &run->sums) == 0) {
		run->time = time;
		run->up = up;
		strcpy(run->print, run->start[0] ? run->start : seal_of(line, seal));
		return true;
	}
	sums_free(&run->sums);
	return false;
}

/* A line that is cut or damaged. Two lines may have become one. */
static bool may_be_epoch(const char *text, size_t length)
{
	static const char run[] = "{\"type\":\"evidence\"", epoch[] = "\"type\":\"epoch\"";

	return !text || length < strlen(run) || memcmp(text, run, strlen(run)) != 0 ||
	       memmem(text, length, epoch, strlen(epoch));
}

enum evidence_line evidence_take_line(const char *text, size_t length, struct evidence_run *run,
				      json_t **other)
{
	json_t *line = text ? json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL) : NULL;
	json_int_t schema = json_integer_value(json_object_get(line, "schema"));
	const char *type = json_text_of(line, "type");
	enum evidence_line kind = may_be_epoch(text, length) ? EVIDENCE_LOST : EVIDENCE_BROKEN;

	*other = NULL;
	if (schema == JOURNAL_SCHEMA && strcmp(type, "epoch") == 0 && is_sealed(line))
		kind = EVIDENCE_EPOCH;
	else if (schema == JOURNAL_SCHEMA && strcmp(type, "evidence") == 0 && take_run(line, run))
		kind = EVIDENCE_RUN;
	/* With a checksum it is one of ours, whose type is damaged. */
	else if (strcmp(type, "?") != 0 && strcmp(type, "epoch") != 0 &&
		 strcmp(type, "evidence") != 0 && !json_object_get(line, "checksum"))
		kind = EVIDENCE_OTHER;
	if (kind == EVIDENCE_OTHER)
		*other = line;
	else
		json_decref(line);
	return kind;
}

/* Bounds hold for one kernel, too, though no config is refused for another. */
static bool is_same_machine(const struct identity *a, const struct identity *b)
{
	return !identity_differs(a, b) && strcmp(a->kernel, b->kernel) == 0;
}

struct store_reading {
	struct evidence *evidence;
	json_t *known; /* prints of its runs */
	bool begins;   /* an epoch did, and had no run yet */
};

static int add_run(struct store_reading *r, struct evidence_run *run)
{
	struct evidence *e = r->evidence;

	if (e->count == 0 || r->begins ||
	    !is_same_machine(&e->run[e->count - 1].identity, &run->identity))
		e->epoch++;
	run->epoch = e->epoch;
	r->begins = false;
	if (json_object_set_new(r->known, run->print, json_true()) < 0)
		return -ENOMEM;
	return ARRAY_ADD(e->run, e->count, *run);
}

static int take_line(void *arg, size_t number, const char *text, size_t length)
{
	struct store_reading *r = arg;
	struct evidence_run run;
	enum evidence_line kind;
	json_t *other;
	int ret = 0;

	(void)number;
	if (text && !length)
		return 0;
	kind = evidence_take_line(text, length, &run, &other);
	if (kind == EVIDENCE_RUN && !json_object_get(r->known, run.print)) {
		ret = add_run(r, &run);
		if (ret == 0)
			return 0;
	}
	if (kind == EVIDENCE_RUN)
		sums_free(&run.sums);
	r->begins |= kind == EVIDENCE_EPOCH || kind == EVIDENCE_LOST;
	r->evidence->broken += kind != EVIDENCE_EPOCH && kind != EVIDENCE_RUN;
	json_decref(other);
	return ret;
}

int evidence_read(const char *path, struct evidence *e)
{
	struct store_reading r = { .evidence = e, .known = json_object() };
	FILE *stream = text_file_open(path);
	int ret = !r.known ? -ENOMEM : !stream ? -errno : 0;

	*e = (struct evidence){ 0 };
	if (ret == 0)
		ret = journal_each_line(stream, take_line, &r);
	if (stream)
		fclose(stream);
	/* What comes next is a new one, although no run has begun it. */
	e->epoch += r.begins && e->count;
	json_decref(r.known);
	if (ret < 0)
		evidence_free(e);
	return ret == -ENOENT ? 0 : ret;
}

void evidence_free(struct evidence *e)
{
	for (size_t i = 0; i < e->count; i++)
		sums_free(&e->run[i].sums);
	free(e->run);
	*e = (struct evidence){ 0 };
}

static int64_t hour_of(const struct evidence *e, const struct evidence_run *run)
{
	for (const struct evidence_run *first = e->run; first < run && run->boot[0]; first++)
		if (first->up >= 0 && run->up >= 0 && strcmp(first->boot, run->boot) == 0)
			return (first->time - first->up + run->up) / HOUR;
	return run->time / HOUR;
}

int knowledge_of(struct knowledge *k, const struct evidence *e, const struct identity *here,
		 const struct cpus *cpus)
{
	int64_t *hours = calloc(e->count + 1, sizeof(*hours));
	int ret = hours ? 0 : -ENOMEM;

	*k = (struct knowledge){ .runs = calloc(e->count + 1, sizeof(*k->runs)) };
	if (!k->runs)
		ret = -ENOMEM;
	for (size_t i = 0; i < e->count && ret == 0; i++) {
		const struct evidence_run *run = &e->run[i];
		size_t at = 0;

		if (run->epoch != e->epoch || !is_same_machine(&run->identity, here) ||
		    memcmp(&run->cpus, cpus, sizeof(*cpus)) != 0)
			continue;
		hours[k->count] = hour_of(e, run);
		while (hours[at] != hours[k->count])
			at++;
		k->count += at == k->count;
		ret = sums_add_all(&k->runs[at], &run->sums);
		k->all++;
		k->latest = run;
	}
	free(hours);
	if (ret < 0)
		knowledge_free(k);
	return ret;
}

void knowledge_free(struct knowledge *k)
{
	for (size_t i = 0; i < k->count; i++)
		sums_free(&k->runs[i]);
	free(k->runs);
	*k = (struct knowledge){ 0 };
}

/* --- Has the machine changed ------------------------------------------------------------------ */

/*
 * The logarithm of a run's tears at waits, divided by the number that the rates of the other runs
 * predict for its toggles. False: none of all tore where this one looked, and there is nothing to
 * compare. A run that were in its own reference would seem less strange than it is.
 */
static bool find_excess(const struct sums *run, const struct sums *all, size_t count,
			double *excess)
{
	double tears = ALMOST_NONE, expected = ALMOST_NONE;
	bool some = false;

	for (size_t i = 0; i < run->count; i++) {
		const struct sum *s = &run->sum[i];
		double others_tears = 0, others_toggles = 0, any = 0;

		if (!sum_is_wait(s) || !s->count.toggles)
			continue;
		for (size_t k = 0; k < count; k++) {
			const struct sum *like = sums_find(&all[k], s);

			any += like ? (double)like->count.tears : 0;
			if (!like || &all[k] == run)
				continue;
			others_tears += (double)like->count.tears;
			others_toggles += (double)like->count.toggles;
		}
		if (!(any > 0) || !(others_toggles > 0))
			continue;
		some = true;
		tears += (double)s->count.tears;
		expected += others_tears / others_toggles * (double)s->count.toggles;
	}
	*excess = log(tears / expected);
	return some;
}

/* The chance of so strange a run, negative if it tore less than those before it; 1: unknown. */
static double find_chance(const struct sums *before, size_t count, const struct sums *run)
{
	double sum = 0, squares = 0, ratio, mean, deviation, n = 0;

	for (size_t i = 0; i < count; i++) {
		if (!find_excess(&before[i], before, count, &ratio))
			continue;
		n++;
		sum += ratio;
		squares += ratio * ratio;
	}
	if (n < EVIDENCE_KNOWN || !find_excess(run, before, count, &ratio))
		return 1;
	mean = sum / n;
	deviation = sqrt(fmax(0, (squares - n * mean * mean) / (n - 1)) * (1 + 1 / n));
	/* Runs that agree to the last tear are made up, and say nothing of others. */
	if (!(deviation > AGREED))
		return 1;
	return copysign(2 * gsl_cdf_tdist_Q(fabs(ratio - mean) / deviation, n - 1), ratio - mean);
}

double evidence_strangeness(const struct sums *before, size_t count, const struct sums *run)
{
	double last, now;

	if (count <= EVIDENCE_KNOWN)
		return 1;
	last = find_chance(before, count - 1, &before[count - 1]);
	now = find_chance(before, count - 1, run);
	return last * now > 0 ? fmax(fabs(last), fabs(now)) : 1;
}
