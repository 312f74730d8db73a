/* SPDX-License-Identifier: MIT */
/*
 * A journal is a file that anything may have written to: reading one must not
 * fail, and what it gives must be whole enough to be written again.
 */
#define _GNU_SOURCE /* memfd_create() */
#define FUZZ_RUNS   19500

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/record/bench_record.h"
#include "results/journal/journal.h"
#include "results/tests/fuzz.h"

static size_t lines_in(const uint8_t *data, size_t size)
{
	size_t lines = size && data[size - 1] != '\n';

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	return lines;
}

static void check_record(const struct cell_record *record)
{
	json_t *line = record_to_json(record), *again;
	struct cell_record back;

	must(line && record_from_json(line, &back) == 0);
	again = record_to_json(&back);
	must(json_equal(line, again));
	json_decref(line);
	json_decref(again);
}

/* What is read as a benchmark can be written and reads back. */
static void check_bench(const json_t *line)
{
	struct bench_result result, again;
	json_t *body;

	if (bench_from_json(line, &result))
		return;
	body = bench_to_json(&result);
	must(body && json_object_set(body, "type", json_object_get(line, "type")) == 0 &&
	     json_object_set(body, "schema", json_object_get(line, "schema")) == 0 &&
	     json_object_set(body, "date", json_object_get(line, "date")) == 0);
	must(bench_from_json(body, &again) == 0 && again.rows == result.rows);
	bench_result_free(&again);
	bench_result_free(&result);
	json_decref(body);
}

static void check_data(const struct journal_data *data, size_t lines)
{
	must(data->count + json_array_size(data->others) + data->skipped <= lines);
	must(data->newer <= data->skipped);
	must(data->first_bad <= lines);
	must((data->first_bad != 0) == (data->skipped != 0));
	must(data->have_identity || !data->mixed);
	for (size_t i = 0; i < data->count; i++)
		check_record(&data->records[i]);
	for (size_t i = 0; i < json_array_size(data->others); i++)
		check_bench(json_array_get(data->others, i));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct journal_data journal = { 0 };
	FILE *stream = fuzz_open(data, size);

	must(journal_read_stream(stream, &journal) == 0);
	check_data(&journal, lines_in(data, size));
	journal_free(&journal);
	fclose(stream);
	return 0;
}

#ifndef TMAX_LIBFUZZER
#include <sys/mman.h>

#include "bench/tests/sample_bench.h"
#include "results/tests/sample.h"

/* The last one has as many executors as there can be. */
#define RECORDS 4

static const char *const tokens[] = {
	"{",
	"}",
	"[",
	"]",
	"\"",
	":",
	",",
	"\n",
	"\\u0000",
	"\\ud800",
	"null",
	"true",
	"\"schema\":2",
	"\"schema\":3",
	"\"type\":\"run\"",
	"\"type\":\"estimate\"",
	"\"type\":\"bench\"",
	"\"inf\"",
	"\"skipped\":\"why\"",
	"\"page\"",
	"\"crash\"",
	"\"executors\":[1,2]",
	"[[[[[[[[",
	NULL,
};

static int write_bench(struct journal *journal)
{
	struct bench_result result = sample_bench();
	json_t *body = bench_to_json(&result);
	int rc = journal_write_line(journal, "bench", body);

	json_decref(body);
	bench_result_free(&result);
	return rc;
}

static int write_sample(const char *path)
{
	const struct identity id = sample_identity();
	json_t *gaps = sample_gaps();
	struct journal *journal;
	int rc = journal_open(&journal, path);

	if (rc)
		return rc;
	rc = journal_write_run(journal, "default", &id, gaps, JOURNAL_NO_SEED);
	for (unsigned i = 0; i < RECORDS && !rc; i++) {
		struct cell_record record = sample_record(i);

		if (i == RECORDS - 1)
			record.result.seating.executors = PLACEMENT_EXECUTORS_MAX;
		rc = journal_write_cell(journal, &record);
	}
	if (!rc)
		rc = write_bench(journal);
	json_decref(gaps);
	journal_close(journal);
	return rc;
}

/* A corpus that the reader refuses would fuzz nothing but the refusal. */
static void check_sample(const char *path)
{
	struct journal_data data = { 0 };

	must(journal_read(path, &data) == 0);
	must(data.count == RECORDS && data.have_identity && !data.skipped);
	must(json_array_size(data.others) == 2);
	journal_free(&data);
}

/* The whole, and each line alone: a line of its own is changed more often. */
static size_t split(const char *sample, size_t size, struct fuzz_input inputs[RECORDS + 3])
{
	const char *end = sample + size;
	size_t count = 1;

	inputs[0] = (struct fuzz_input){ sample, size };
	for (const char *line = sample, *next; line < end; line = next) {
		next = (const char *)memchr(line, '\n', (size_t)(end - line)) + 1;
		inputs[count++] = (struct fuzz_input){ line, (size_t)(next - line) };
	}
	return count;
}

int main(int argc, char **argv)
{
	static char sample[FUZZ_INPUT_MAX];
	int fd = memfd_create("corpus", MFD_CLOEXEC);
	struct fuzz_input inputs[RECORDS + 3];
	struct fuzz_corpus corpus = { .inputs = inputs, .tokens = tokens };
	char path[64];
	ssize_t size;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	must(write_sample(path) == 0);
	check_sample(path);
	size = pread(fd, sample, sizeof(sample), 0);
	must(size > 0 && (size_t)size < sizeof(sample));
	corpus.count = split(sample, (size_t)size, inputs);
	return fuzz_main(argc, argv, &corpus);
}
#endif
