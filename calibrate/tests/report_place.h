/* SPDX-License-Identifier: MIT */
/* For tests of the report: a folder with a journal, and the page of it, without gnuplot. */
#ifndef CALIBRATE_TESTS_REPORT_PLACE_H
#define CALIBRATE_TESTS_REPORT_PLACE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/cases/benchmarks.h"
#include "calibrate/tests/report_sample.h"
#include "commands/report/report.h"

struct place {
	char folder[32];
	char path[64];
	struct journal_data data;
	struct report report;
	char error[256];
};

static inline int new_place(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	strcpy(place->folder, "/tmp/test_report.XXXXXX");
	*state = place;
	if (!mkdtemp(place->folder))
		return -1;
	snprintf(place->path, sizeof(place->path), "%s/journal", place->folder);
	place->report = (struct report){ .data = &place->data, .folder = place->folder };
	return setenv("TMAX_DATADIR", "/nonexistent", 1);
}

static inline int leave_place(void **state)
{
	static const char *const names[] = {
		"journal",    "index.html", "figure9.dat",   "figure9-crash.dat",
		"ladder.dat", "gaps.dat",   "witnesses.dat", "events.dat",
	};
	struct place *place = *state;
	char path[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", place->folder, names[i]);
		unlink(path);
	}
	for (unsigned i = 0; benchmarks[i]; i++) {
		snprintf(path, sizeof(path), "%s/bench-%s.dat", place->folder, benchmarks[i]->name);
		unlink(path);
	}
	journal_free(&place->data);
	/* Any other file there is a mistake of the test: rmdir() fails. */
	if (rmdir(place->folder))
		return -1;
	free(place);
	return 0;
}

static inline void fill(struct place *place, int (*write)(struct journal *journal))
{
	struct journal *journal;

	assert_int_equal(journal_open(&journal, place->path), 0);
	assert_int_equal(write(journal), 0);
	journal_close(journal);
	journal_free(&place->data);
	assert_int_equal(journal_read(place->path, &place->data), 0);
	assert_int_equal(place->data.skipped, 0);
}

/* The page of what is in the place. */
static inline char *page_of(struct place *place)
{
	char path[64], *text;
	struct stat st;
	FILE *file;

	assert_int_equal(report_write(&place->report, place->error, sizeof(place->error)), 0);
	snprintf(path, sizeof(path), "%s/index.html", place->folder);
	assert_int_equal(stat(path, &st), 0);
	text = calloc(1, (size_t)st.st_size + 1);
	file = fopen(path, "re");
	assert_int_equal(fread(text, 1, (size_t)st.st_size, file), st.st_size);
	fclose(file);
	return text;
}

/* The page after that was added to the journal. */
static inline char *page_with(struct place *place, int (*write)(struct journal *journal))
{
	fill(place, write);
	return page_of(place);
}

static inline void assert_has(const char *page, const char *text)
{
	if (!page || !strstr(page, text))
		fail_msg("not on the page: %s", text);
}

static inline void assert_has_all(const char *page, const char *const *texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_has(page, texts[i]);
}

static inline void assert_has_not(const char *page, const char *text)
{
	if (strstr(page, text))
		fail_msg("on the page: %s", text);
}

#define ON_PAGE(test) cmocka_unit_test_setup_teardown(test, new_place, leave_place)

#endif
