/* SPDX-License-Identifier: MIT */
/*
 * A journal to test with, in memory, or in a file where a file matters. For
 * cmocka tests, which define _GNU_SOURCE and include cmocka.h first.
 */
#ifndef RESULTS_TESTS_JOURNAL_PLACE_H
#define RESULTS_TESTS_JOURNAL_PLACE_H

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "results/journal/journal.h"
#include "results/tests/sample.h"

struct place {
	int fd;
	char path[64];
};

static inline int memory_place(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	place->fd = memfd_create("journal", MFD_CLOEXEC);
	snprintf(place->path, sizeof(place->path), "/proc/self/fd/%d", place->fd);
	*state = place;
	return place->fd < 0;
}

static inline int file_place(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	strcpy(place->path, "/tmp/test_journal.XXXXXX");
	place->fd = mkstemp(place->path);
	*state = place;
	return place->fd < 0;
}

static inline int leave_place(void **state)
{
	struct place *place = *state;

	if (strncmp(place->path, "/proc/", 6) != 0)
		unlink(place->path);
	close(place->fd);
	free(place);
	return 0;
}

static inline struct journal *must_open(const char *path)
{
	struct journal *journal;

	assert_int_equal(journal_open(&journal, path), 0);
	return journal;
}

static inline void must_write_cell(struct journal *journal, unsigned i)
{
	struct cell_record record = sample_record(i);

	assert_int_equal(journal_write_cell(journal, &record), 0);
}

static inline void must_write_run(struct journal *journal, const struct identity *id)
{
	assert_int_equal(journal_write_run(journal, "default", id, NULL, JOURNAL_NO_SEED), 0);
}

static inline struct journal_data must_read(const char *path)
{
	struct journal_data data = { 0 };

	assert_int_equal(journal_read(path, &data), 0);
	return data;
}

static inline off_t size_of(const struct place *place)
{
	struct stat st;

	assert_int_equal(fstat(place->fd, &st), 0);
	return st.st_size;
}

static inline struct journal_data read_text(const char *text, size_t size)
{
	FILE *stream = fmemopen((void *)(uintptr_t)text, size, "r");
	struct journal_data data = { 0 };

	assert_non_null(stream);
	assert_int_equal(journal_read_stream(stream, &data), 0);
	fclose(stream);
	return data;
}

/* The whole of a line: size bytes in which records were kept and skipped lines were not. */
static inline void expect_text(const char *text, size_t size, size_t records, size_t skipped)
{
	struct journal_data data = read_text(text, size);

	assert_int_equal(data.count, records);
	assert_int_equal(data.skipped, skipped);
	journal_free(&data);
}

static inline void expect_skipped(const char *text)
{
	expect_text(text, strlen(text), 0, 1);
}

static inline void assert_same_record(const struct cell_record *a, const struct cell_record *b)
{
	json_t *first = record_to_json(a), *second = record_to_json(b);

	assert_non_null(first);
	assert_true(json_equal(first, second));
	json_decref(first);
	json_decref(second);
}

static inline char *sample_line(void)
{
	struct cell_record record = sample_record(0);
	json_t *json = record_to_json(&record);
	char *text = json_dumps(json, JSON_COMPACT);

	json_decref(json);
	assert_non_null(text);
	return text;
}

#define IN_MEMORY(test) cmocka_unit_test_setup_teardown(test, memory_place, leave_place)
#define IN_FILE(test)	cmocka_unit_test_setup_teardown(test, file_place, leave_place)

#endif
