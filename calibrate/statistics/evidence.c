/* SPDX-License-Identifier: MIT */
#include "calibrate/statistics/evidence.h"

#include <errno.h>
#include <error.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "patchcore/machine/identity.h"

#define EVIDENCE_SCHEMA 1
#define HOUR		3600 /* seconds */
#define ALMOST_NONE	0.5  /* added to tears, so that none has a logarithm */

/*
 * FNV-1a, as text: detects damage, not forgery. What the journal adds to each line is not under the
 * seal, and neither is the seal.
 */
static char *seal_of(const json_t *line, char text[EVIDENCE_SEAL])
{
	static const char *const unsealed[] = { "checksum", "type", "schema", "tool", "date" };
	json_t *body = json_copy((json_t *)(uintptr_t)line);
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	char *dump;

	for (size_t i = 0; body && i < sizeof(unsealed) / sizeof(unsealed[0]); i++)
		json_object_del(body, unsealed[i]);
	dump = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
	for (const char *c = dump; c && *c; c++)
		hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	snprintf(text, EVIDENCE_SEAL, "%016llx", (unsigned long long)hash);
	free(dump);
	json_decref(body);
	return text;
}

static bool is_sealed(const json_t *line)
{
	char text[EVIDENCE_SEAL];

	return strcmp(json_text_of(line, "checksum"), seal_of(line, text)) == 0;
}

/* --- Writing ---------------------------------------------------------------------------------- */

/* The body is freed. */
static int append_line(const char *path, const char *type, json_t *body)
{
	struct journal *journal;
	char seal[EVIDENCE_SEAL];
	int ret = -ENOMEM;

	if (body && json_object_set_new(body, "checksum", json_string(seal_of(body, seal))) == 0)
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
	return append_line(path, "evidence",
			   json_pack("{s:i, s:s, s:I, s:s, s:s, s:o, s:o}", "evidence",
				     EVIDENCE_SCHEMA, "cpus", cpus, "time", (json_int_t)run->time,
				     "boot", run->boot, "source", run->source, "identity",
				     identity_to_json(&run->identity), "sums",
				     sums_to_json(&run->sums)));
}

int evidence_begin_epoch(const char *path, const char *reason)
{
	return append_line(path, "epoch",
			   json_pack("{s:i, s:s}", "evidence", EVIDENCE_SCHEMA, "reason", reason));
}

void evidence_stamp(struct evidence_run *run, const char *source, const struct identity *id,
		    const struct cpus *cpus)
{
	journal_date(run->date, sizeof(run->date));
	run->time = time(NULL);
	if (!identity_line(&identity_here, "/proc/sys/kernel/random/boot_id", run->boot,
			   sizeof(run->boot)))
		run->boot[0] = '\0';
	snprintf(run->source, sizeof(run->source), "%s", source);
	run->identity = *id;
	run->cpus = *cpus;
}

int evidence_add(const char *path, const char *source, const struct identity *id,
		 const struct cpus *cpus, const struct cell_record *records, size_t count)
{
	struct evidence_run run = { 0 };
	int ret = 0;

	for (size_t i = 0; i < count && ret == 0; i++)
		ret = sums_add_record(&run.sums, &records[i]);
	evidence_stamp(&run, source, id, cpus);
	if (ret == 0 && run.sums.count)
		ret = evidence_append(path, &run);
	if (ret < 0)
		error(0, -ret, "not added to the evidence %s", path);
	sums_free(&run.sums);
	return ret;
}

/* --- Reading ---------------------------------------------------------------------------------- */

enum evidence_line evidence_take_line(const json_t *line, struct evidence_run *run)
{
	const char *type = json_string_value(json_object_get(line, "type"));
	const char *cpus, *date, *boot, *source;
	json_int_t time, schema;
	json_t *identity, *sums;

	if (!type)
		return EVIDENCE_BROKEN;
	if (strcmp(type, "epoch") == 0)
		return is_sealed(line) ? EVIDENCE_EPOCH : EVIDENCE_BROKEN;
	if (strcmp(type, "evidence") != 0)
		return EVIDENCE_OTHER;
	*run = (struct evidence_run){ 0 };
	/* Texts are printed: what a terminal takes for a command is none. */
	if (is_sealed(line) &&
	    json_unpack((json_t *)(uintptr_t)line, "{s:I, s:s, s:I, s:s, s:s, s:s, s:o, s:o}",
			"evidence", &schema, "cpus", &cpus, "time", &time, "date", &date, "boot",
			&boot, "source", &source, "identity", &identity, "sums", &sums) == 0 &&
	    schema == EVIDENCE_SCHEMA && time >= 0 &&
	    cpus_parse(&run->cpus, cpus, strlen(cpus)) == 0 &&
	    text_take(date, run->date, sizeof(run->date)) == 0 &&
	    text_take(boot, run->boot, sizeof(run->boot)) == 0 &&
	    text_take(source, run->source, sizeof(run->source)) == 0 &&
	    identity_from_json(identity, &run->identity) == 0 &&
	    sums_from_json(sums, &run->sums) == 0) {
		run->time = time;
		seal_of(line, run->seal);
		return EVIDENCE_RUN;
	}
	sums_free(&run->sums);
	return EVIDENCE_BROKEN;
}

/* Bounds hold for one kernel, too, though no config is refused for another. */
static bool is_same_machine(const struct identity *a, const struct identity *b)
{
	return !identity_differs(a, b) && strcmp(a->kernel, b->kernel) == 0;
}

int evidence_read(const char *path, struct evidence *e)
{
	struct journal_data data = { 0 };
	int ret = journal_read(path, &data);
	bool begins = false;
	json_t *line;
	size_t i;

	*e = (struct evidence){ .broken = data.skipped };
	json_array_foreach(data.others, i, line)
	{
		struct evidence_run run, *more;
		enum evidence_line kind;

		if (ret < 0)
			break;
		kind = evidence_take_line(line, &run);
		begins |= kind == EVIDENCE_EPOCH;
		e->broken += kind != EVIDENCE_EPOCH && kind != EVIDENCE_RUN;
		if (kind != EVIDENCE_RUN)
			continue;
		more = realloc(e->run, (e->count + 1) * sizeof(*more));
		if (!more) {
			sums_free(&run.sums);
			ret = -ENOMEM;
			break;
		}
		e->run = more;
		if (e->count == 0 || begins ||
		    !is_same_machine(&more[e->count - 1].identity, &run.identity))
			e->epoch++;
		run.epoch = e->epoch;
		more[e->count++] = run;
		begins = false;
	}
	/* What comes next is a new one, although no run has begun it. */
	e->epoch += begins && e->count;
	journal_free(&data);
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

int knowledge_of(struct knowledge *k, const struct evidence *e, const struct identity *here,
		 const struct cpus *cpus)
{
	int ret = 0;

	*k = (struct knowledge){ .runs = calloc(e->count + 1, sizeof(*k->runs)) };
	if (!k->runs)
		return -ENOMEM;
	for (size_t i = 0; i < e->count && ret == 0; i++) {
		const struct evidence_run *run = &e->run[i];

		if (run->epoch != e->epoch || !is_same_machine(&run->identity, here) ||
		    memcmp(&run->cpus, cpus, sizeof(*cpus)) != 0)
			continue;
		if (!k->latest || k->latest->time / HOUR != run->time / HOUR)
			k->count++;
		ret = sums_add_all(&k->runs[k->count - 1], &run->sums);
		k->all++;
		k->latest = run;
	}
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
 * The logarithm of a run's tears at waits, divided by the number that the rates of all runs predict
 * for its toggles. False: no run tore where this one looked, and there is nothing to compare.
 */
static bool find_excess(const struct sums *run, const struct sums *all, size_t count,
			double *excess)
{
	double tears = ALMOST_NONE, expected = ALMOST_NONE;
	bool some = false;

	for (size_t i = 0; i < run->count; i++) {
		const struct sum *s = &run->sum[i];
		double all_tears = 0, all_toggles = 0;

		if (!sum_is_wait(s) || !s->count.toggles)
			continue;
		for (size_t k = 0; k < count; k++) {
			const struct sum *like = sums_find(&all[k], s);

			all_tears += like ? (double)like->count.tears : 0;
			all_toggles += like ? (double)like->count.toggles : 0;
		}
		if (!(all_tears > 0) || !(all_toggles > 0))
			continue;
		some = true;
		tears += (double)s->count.tears;
		expected += all_tears / all_toggles * (double)s->count.toggles;
	}
	*excess = log(tears / expected);
	return some;
}

double evidence_strangeness(const struct sums *before, size_t count, const struct sums *run)
{
	double sum = 0, squares = 0, ratio, mean, deviation, n = 0;

	if (count < EVIDENCE_KNOWN)
		return 1;
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
	if (!(deviation > 0))
		return 1;
	return 2 * gsl_cdf_tdist_Q(fabs(ratio - mean) / deviation, n - 1);
}
