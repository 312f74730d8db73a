/* SPDX-License-Identifier: MIT */
/*
 * A store of evidence comes from other machines, too: reading one must not fail. What counts as
 * sums must come back as it was, and no bound may lie below what was seen.
 *
 * A changed line has a wrong seal, so that most inputs end there. Their sums are therefore also
 * read without it.
 */
#define _GNU_SOURCE /* memfd_create() */
#define FUZZ_RUNS   19000

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calibrate/statistics/evidence.h"
#include "results/tests/fuzz.h"

static int64_t rate_is_below(const struct count *count, double p)
{
	return !count->toggles || (double)count->tears <= p * (double)count->toggles || p >= 1;
}

static void check_level(const struct level *level)
{
	for (int claim = 0; claim < CLAIMS; claim++) {
		const struct claim *c = &level->claim[claim];

		must(c->upper_p >= 0 && c->upper_p <= level->upper_p);
		for (unsigned i = 0; i < c->sections; i++)
			must(c->section[i].upper_p <= c->upper_p &&
			     rate_is_below(&c->section[i].count, c->section[i].upper_p));
	}
}

static void check_estimate(const struct sums *runs, size_t count)
{
	static struct estimate estimate;
	struct plan plan = *plan_find("quick");

	plan.seats = 1;
	plan.seat[0] = (struct seat){ PLACEMENT_SAME_L3, 1 };
	estimate_make(&estimate, runs, count, &plan);
	for (unsigned i = 0; i < estimate.levels; i++)
		check_level(&estimate.level[i]);
	must(estimate.window.upper_p > 0 && estimate.window.upper_p <= 1);
	must(!estimate.window.word_tore || estimate.verdict == VERDICT_FAIL);
}

static void check_sums(const json_t *array)
{
	struct sums run = { 0 }, again = { 0 };
	json_t *first, *second;

	if (sums_from_json(array, &run) == 0) {
		first = sums_to_json(&run);
		must(first && sums_from_json(first, &again) == 0);
		second = sums_to_json(&again);
		must(second && json_equal(first, second));
		check_estimate(&run, 1);
		json_decref(first);
		json_decref(second);
	}
	sums_free(&run);
	sums_free(&again);
}

/* The first line's, or the whole. */
static void check_line(const uint8_t *data, size_t size)
{
	json_t *line = json_loadb((const char *)data, size, JSON_DISABLE_EOF_CHECK, NULL);
	const json_t *array = json_object_get(line, "sums");

	check_sums(array ? array : line);
	json_decref(line);
}

static void check_store(const char *path)
{
	struct knowledge known;
	struct evidence e;

	must(evidence_read(path, &e) == 0);
	must(e.epoch <= e.count + 1 && (e.count || !e.epoch));
	for (size_t i = 0; i < e.count; i++)
		must(e.run[i].epoch >= 1 && e.run[i].epoch <= e.epoch);
	if (e.count) {
		const struct evidence_run *last = &e.run[e.count - 1];

		must(knowledge_of(&known, &e, &last->identity, &last->cpus) == 0);
		must(known.count <= known.all && known.all <= e.count);
		check_estimate(known.runs, known.count);
		knowledge_free(&known);
	}
	evidence_free(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	static char path[64];

	if (fd < 0) {
		fd = memfd_create("evidence", MFD_CLOEXEC);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	must(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
	check_store(path);
	check_line(data, size);
	return 0;
}

#ifndef TMAX_LIBFUZZER
#include "calibrate/tests/sums_sample.h"
#include "results/tests/sample.h"

#define RUNS 3

static const char *const tokens[] = {
	"{",	    "}",     "[",
	"]",	    "\"",    ":",
	",",	    "\n",    "-1",
	"1e308",    "0.0",   "\"store\"",
	"\"wait\"", "null",  "9223372036854775807",
	"\"page\"", "\"8\"", "281474976710656",
	NULL,
};

static void fill(struct sums *sums, uint64_t tears)
{
	struct plan plan = sample_plan(1);

	sample_rung(sums, &plan, (struct waits){ 0, 0, 4 }, sample_count(9, 20000, tears + 3));
	sample_rung(sums, &plan, (struct waits){ 400, 400, 4 }, sample_count(9, 20000, tears));
	sample_rung(sums, &plan, (struct waits){ 200, 200, 0 }, sample_count(9, 20000, tears));
	sample_add(sums, SUM_STORE, (struct waits){ 0 }, CROSSING_8, &plan.seat[0],
		   sample_count(9, 90000, 0));
	sample_membarrier(sums, &plan, 60000);
}

static void write_sample(const char *path)
{
	const struct identity id = sample_identity();

	for (unsigned i = 0; i < RUNS; i++) {
		struct evidence_run run = { 0 };

		evidence_stamp(&run, "quick", &id, &(struct cpus){ { 3 } }, NULL);
		run.time += 3600 * (int64_t)i;
		fill(&run.sums, i);
		must(evidence_append(path, &run) == 0);
		sums_free(&run.sums);
	}
	must(evidence_begin_epoch(path, "a reason") == 0);
}

/* A corpus that the reader refuses would fuzz nothing but the refusal. */
static void check_sample(const char *path)
{
	struct evidence e;

	must(evidence_read(path, &e) == 0);
	must(e.count == RUNS && !e.broken && e.epoch == 2);
	evidence_free(&e);
}

int main(int argc, char **argv)
{
	static char sample[FUZZ_INPUT_MAX];
	struct fuzz_input inputs[2] = { { sample, 0 }, { sample, 0 } };
	struct fuzz_corpus corpus = { .inputs = inputs, .count = 2, .tokens = tokens };
	int fd = memfd_create("corpus", MFD_CLOEXEC);
	char path[64];
	ssize_t size;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	must(fchmod(fd, 0600) == 0);
	write_sample(path);
	check_sample(path);
	size = pread(fd, sample, sizeof(sample), 0);
	must(size > 0 && (size_t)size < sizeof(sample));
	inputs[0].size = (size_t)size;
	/* A line alone is changed more often. */
	inputs[1].size = (size_t)((char *)memchr(sample, '\n', (size_t)size) - sample) + 1;
	return fuzz_main(argc, argv, &corpus);
}
#endif
