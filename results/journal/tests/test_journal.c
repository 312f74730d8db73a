/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "results/tests/journal_place.h"

#define NO_ROOT 65534 /* a user without rights */

/* --- The file ------------------------------------------------------------------- */

static void write_small_journal(const char *path)
{
	struct identity id = sample_identity();
	struct journal *journal = must_open(path);
	json_t *body = json_pack("{s:i}", "anything", 1), *gaps = sample_gaps();

	assert_int_equal(journal_write_run(journal, "default", &id, gaps, JOURNAL_NO_SEED), 0);
	must_write_cell(journal, 0);
	must_write_cell(journal, 1);
	assert_int_equal(journal_write_line(journal, "estimate", body), 0);
	must_write_cell(journal, 2);
	assert_int_equal(journal_close(journal), 0);
	json_decref(body);
	json_decref(gaps);
}

static void test_journal_round_trip(void **state)
{
	const struct place *place = *state;
	struct identity id = sample_identity();
	struct journal_data data;

	write_small_journal(place->path);
	data = must_read(place->path);
	assert_int_equal(data.count, 3);
	assert_int_equal(data.skipped, 0);
	assert_true(data.have_identity);
	assert_false(data.mixed);
	assert_null(identity_differs(&data.identity, &id));
	assert_string_equal(data.identity.kernel, id.kernel);
	for (unsigned i = 0; i < 3; i++) {
		struct cell_record record = sample_record(i);

		assert_same_record(&data.records[i], &record);
	}
	journal_free(&data);
}

static void test_lines_as_documented(void **state)
{
	const struct place *place = *state;
	FILE *stream;
	char line[8192];
	json_t *json;

	write_small_journal(place->path);
	stream = fopen(place->path, "r");
	assert_non_null(fgets(line, sizeof(line), stream));
	json = json_loads(line, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(json, "type")), "run");
	assert_string_equal(json_string_value(json_object_get(json, "tool")), PACKAGE_STRING);
	assert_string_equal(json_string_value(json_object_get(json, "plan")), "default");
	assert_int_equal(json_array_size(json_object_get(json, "untested")), 1);
	assert_int_equal(json_integer_value(json_object_get(json, "schema")), JOURNAL_SCHEMA);
	assert_int_equal(strlen(json_string_value(json_object_get(json, "date"))), 20);
	json_decref(json);
	assert_non_null(fgets(line, sizeof(line), stream));
	assert_non_null(strstr(line, "\"command\":\"tmax stress --placement spread "));
	fclose(stream);
}

static const char *type_of(const struct journal_data *data, size_t i)
{
	return json_string_value(json_object_get(json_array_get(data->others, i), "type"));
}

/* Lines of other types are kept as they are, in their order. */
static void test_other_lines_are_kept(void **state)
{
	const struct place *place = *state;
	struct identity id = sample_identity();
	struct journal *journal = must_open(place->path);
	json_t *body = json_pack("{s:i}", "stores", 7);
	struct journal_data data;

	assert_int_equal(journal_write_line(journal, "gaps", body), 0);
	must_write_cell(journal, 0);
	must_write_run(journal, &id);
	assert_int_equal(journal_write_line(journal, "tail", body), 0);
	journal_close(journal);
	data = must_read(place->path);
	assert_int_equal(data.count, 1);
	assert_int_equal(data.skipped, 0);
	assert_int_equal(json_array_size(data.others), 3);
	assert_string_equal(type_of(&data, 0), "gaps");
	assert_string_equal(type_of(&data, 1), "run");
	assert_string_equal(type_of(&data, 2), "tail");
	assert_int_equal(
		json_integer_value(json_object_get(json_array_get(data.others, 0), "stores")), 7);
	journal_free(&data);
	assert_null(data.others);
	json_decref(body);
}

/* The journals of shards: read one after the other, they are one. */
static void test_journals_merge(void **state)
{
	const struct place *place = *state;
	struct identity other = sample_identity();
	struct journal_data data = { 0 };
	struct journal *journal;

	write_small_journal(place->path);
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(journal_read(place->path, &data), 0);
		assert_int_equal(data.count, 3 * i);
		assert_int_equal(json_array_size(data.others), 2 * i);
		assert_false(data.mixed);
	}
	assert_string_equal(data.records[0].key, data.records[6].key);
	assert_int_equal(ftruncate(place->fd, 0), 0);
	strcpy(other.microcode, "0x1");
	journal = must_open(place->path);
	must_write_run(journal, &other);
	journal_close(journal);
	assert_int_equal(journal_read(place->path, &data), 0);
	assert_true(data.mixed);
	assert_int_equal(data.count, 9);
	journal_free(&data);
}

/* The body cannot pass for another type of line. */
static void test_estimate_keeps_its_type(void **state)
{
	const struct place *place = *state;
	struct journal *journal = must_open(place->path);
	json_t *body = json_pack("{s:s, s:i}", "type", "cell", "schema", 7);
	struct journal_data data;

	assert_int_equal(journal_write_line(journal, "estimate", body), 0);
	data = must_read(place->path);
	assert_int_equal(data.skipped, 0);
	journal_free(&data);
	journal_close(journal);
	json_decref(body);
}

static void test_unwritable_lines(void **state)
{
	const struct place *place = *state;
	struct identity id = sample_identity();
	struct cell_record record = sample_record(0);
	struct journal *journal = must_open(place->path);
	json_t *list = json_array(), *object = json_object();

	record.cell.split = SITE_BYTES;
	assert_int_equal(journal_write_cell(journal, &record), -EINVAL);
	assert_int_equal(journal_write_line(journal, "estimate", list), -EINVAL);
	assert_int_equal(journal_write_line(journal, "estimate", NULL), -EINVAL);
	assert_int_equal(journal_write_run(journal, NULL, &id, NULL, JOURNAL_NO_SEED), -EINVAL);
	assert_int_equal(journal_write_run(journal, "default", &id, object, JOURNAL_NO_SEED),
			 -EINVAL);
	assert_int_equal(size_of(place), 0);
	journal_close(journal);
	json_decref(list);
	json_decref(object);
}

static void test_longest_line_written_can_be_read(void **state)
{
	const struct place *place = *state;
	struct journal *journal = must_open(place->path);
	char *text = calloc(1, JOURNAL_LINE_MAX);
	struct journal_data data;
	json_t *body;
	off_t frame;

	body = json_pack("{s:s}", "x", "");
	assert_int_equal(journal_write_line(journal, "estimate", body), 0);
	json_decref(body);
	frame = size_of(place);

	memset(text, 'x', JOURNAL_LINE_MAX - (size_t)frame + 1);
	body = json_pack("{s:s}", "x", text);
	assert_int_equal(journal_write_line(journal, "estimate", body), -EMSGSIZE);
	assert_int_equal(size_of(place), frame);
	json_decref(body);

	text[JOURNAL_LINE_MAX - (size_t)frame] = '\0';
	body = json_pack("{s:s}", "x", text);
	assert_int_equal(journal_write_line(journal, "estimate", body), 0);
	assert_int_equal(size_of(place), frame + (off_t)JOURNAL_LINE_MAX);
	json_decref(body);

	data = must_read(place->path);
	assert_int_equal(data.skipped, 0);
	journal_free(&data);
	journal_close(journal);
	free(text);
}

static void test_new_file_is_made(void **state)
{
	char path[] = "/tmp/test_journal.XXXXXX";
	struct journal *journal;

	(void)state;
	close(mkstemp(path));
	unlink(path);
	journal = must_open(path);
	assert_int_equal(access(path, R_OK | W_OK), 0);
	journal_close(journal);
	unlink(path);
}

struct cut {
	const char *text;
	size_t size, cells, lines; /* complete ones, with their newline */
};

/* Cut at one offset: what was complete survives, and so does what follows. */
static void check_cut(const struct place *place, const struct cut *cut)
{
	/* Only the newline is missing: the line itself is whole. */
	bool whole = cut->text[cut->size] == '\n';
	bool broken = !whole && cut->size && cut->text[cut->size - 1] != '\n';
	bool cell = whole && cut->size && strncmp(cut->text + cut->size - 2, "}}", 2) == 0;
	struct cell_record last = sample_record(3);
	struct journal_data data;
	struct journal *journal;

	assert_int_equal(ftruncate(place->fd, 0), 0);
	assert_int_equal(pwrite(place->fd, cut->text, cut->size, 0), cut->size);
	data = must_read(place->path);
	assert_true(data.count == cut->cells + (whole && cell));
	assert_int_equal(data.skipped, broken);
	assert_int_equal(data.first_bad, broken ? cut->lines + 1 : 0);
	journal_free(&data);

	journal = must_open(place->path);
	assert_int_equal(journal_write_cell(journal, &last), 0);
	journal_close(journal);
	data = must_read(place->path);
	assert_int_equal(data.count, cut->cells + (whole && cell) + 1);
	assert_int_equal(data.skipped, broken);
	assert_same_record(&data.records[data.count - 1], &last);
	journal_free(&data);
}

static void test_cut_at_every_byte(void **state)
{
	const struct place *place = *state;
	struct cut cut = { 0 };
	size_t size;
	char *text;

	write_small_journal(place->path);
	size = (size_t)size_of(place);
	text = calloc(1, size + 1);
	assert_int_equal(pread(place->fd, text, size, 0), size);
	cut.text = text;
	for (cut.size = 0; cut.size <= size; cut.size++) {
		if (cut.size && text[cut.size - 1] == '\n') {
			cut.lines++;
			/* run, cell, cell, estimate, cell */
			cut.cells += cut.lines == 2 || cut.lines == 3 || cut.lines == 5;
		}
		check_cut(place, &cut);
	}
	assert_int_equal(cut.lines, 5);
	free(text);
}

/* Another run may die in the middle of a line while this one has the file open. */
static void test_cut_by_another_run(void **state)
{
	const struct place *place = *state;
	struct journal *journal = must_open(place->path);
	struct journal_data data;

	must_write_cell(journal, 0);
	assert_int_equal(pwrite(place->fd, "{\"type\"", 7, size_of(place)), 7);
	must_write_cell(journal, 1);
	data = must_read(place->path);
	assert_int_equal(data.count, 2);
	assert_int_equal(data.skipped, 1);
	assert_int_equal(data.first_bad, 2);
	journal_free(&data);
	journal_close(journal);
}

static void test_two_runs_append_to_one(void **state)
{
	const struct place *place = *state;
	struct journal *first = must_open(place->path), *second = must_open(place->path);
	struct journal_data data;

	for (unsigned i = 0; i < 8; i += 2) {
		must_write_cell(first, i);
		must_write_cell(second, i + 1);
	}
	data = must_read(place->path);
	assert_int_equal(data.count, 8);
	assert_string_equal(data.records[5].key, "bracket/5");
	journal_free(&data);
	journal_close(first);
	journal_close(second);
}

/* A waiting flock() shows in /proc/locks as "N: -> FLOCK ADVISORY WRITE PID ...". */
static bool waits_for_lock(pid_t pid)
{
	FILE *locks = fopen("/proc/locks", "r");
	char line[256], word[64];
	bool waits = false;

	snprintf(word, sizeof(word), "-> FLOCK  ADVISORY  WRITE %d ", (int)pid);
	while (locks && fgets(line, sizeof(line), locks))
		waits |= strstr(line, word) != NULL;
	if (locks)
		fclose(locks);
	return waits;
}

/* Or else taking back a line that did not fit could take another run's. */
static void test_writing_waits_for_the_other_run(void **state)
{
	const struct place *place = *state;
	struct journal *journal = must_open(place->path);
	struct cell_record record = sample_record(0);
	bool waited = false;
	int status;
	pid_t pid;

	if (access("/proc/locks", R_OK)) {
		journal_close(journal);
		skip();
	}
	assert_int_equal(flock(place->fd, LOCK_EX), 0);
	pid = fork();
	if (pid == 0)
		_exit(journal_write_cell(journal, &record) != 0);
	while (!waited && waitpid(pid, &status, WNOHANG) == 0) {
		usleep(1000);
		waited = waits_for_lock(pid);
	}
	assert_true(waited);
	assert_int_equal(size_of(place), 0);
	assert_int_equal(flock(place->fd, LOCK_UN), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(size_of(place) > 0);
	journal_close(journal);
}

/* --- Full disks and closed doors -------------------------------------------------- */

static void test_full_device(void **state)
{
	struct cell_record record = sample_record(0);
	struct journal *journal = must_open("/dev/full");

	(void)state;
	assert_int_equal(journal_write_cell(journal, &record), -ENOSPC);
	journal_close(journal);
}

/* Where it could read from the pipe, its writes would wait for itself. */
static void test_pipe_that_nobody_reads(void **state)
{
	struct cell_record record = sample_record(0);
	struct journal *journal;
	char path[64];
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[1]);
	journal = must_open(path);
	assert_int_equal(journal_write_cell(journal, &record), 0);
	close(ends[0]);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(journal_write_cell(journal, &record), -EPIPE);
	signal(SIGPIPE, SIG_DFL);
	journal_close(journal);
	close(ends[1]);
}

static void limit_file_size(rlim_t size)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = size < limit.rlim_max ? size : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Room for a part of the line: the part is written, and must be taken back. */
static void check_full_disk(const struct place *place, struct journal *journal, rlim_t room)
{
	struct cell_record record = sample_record(1);
	off_t before = size_of(place);
	int rc;

	limit_file_size((rlim_t)before + room);
	rc = journal_write_cell(journal, &record);
	limit_file_size(RLIM_INFINITY);
	assert_int_equal(rc, -EFBIG);
	assert_int_equal(size_of(place), before);
}

static void test_full_disk(void **state)
{
	const struct place *place = *state;
	struct journal *journal = must_open(place->path);
	void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
	struct journal_data data;

	must_write_cell(journal, 0);
	for (rlim_t room = 0; room < 700; room += 100)
		check_full_disk(place, journal, room);
	must_write_cell(journal, 2);
	signal(SIGXFSZ, before);
	data = must_read(place->path);
	assert_int_equal(data.count, 2);
	assert_int_equal(data.skipped, 0);
	journal_free(&data);
	journal_close(journal);
}

/* With no room even to end the line that was cut, the journal must not open. */
static void test_full_disk_with_a_cut_line(void **state)
{
	const struct place *place = *state;
	void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
	struct journal *journal;
	int rc;

	assert_int_equal(pwrite(place->fd, "{", 1, 0), 1);
	limit_file_size(1);
	rc = journal_open(&journal, place->path);
	limit_file_size(RLIM_INFINITY);
	signal(SIGXFSZ, before);
	assert_int_equal(rc, -EFBIG);
	assert_int_equal(size_of(place), 1);
}

static void test_unreadable(void **state)
{
	const struct place *place = *state;
	uid_t self = geteuid();
	struct journal_data data = { 0 };
	struct journal *journal;
	int rc[2];

	assert_int_equal(fchmod(place->fd, 0), 0);
	if (self == 0 && seteuid(NO_ROOT))
		skip();
	rc[0] = journal_read(place->path, &data);
	rc[1] = journal_open(&journal, place->path);
	if (self == 0)
		assert_int_equal(seteuid(self), 0);
	assert_int_equal(rc[0], -EACCES);
	assert_int_equal(rc[1], -EACCES);
	assert_null(data.records);
}

static void test_no_file(void **state)
{
	struct journal_data data = { 0 };
	struct journal *journal;

	(void)state;
	assert_int_equal(journal_read("/nonexistent/journal", &data), -ENOENT);
	assert_int_equal(journal_open(&journal, "/nonexistent/journal"), -ENOENT);
	assert_int_equal(journal_read("/tmp", &data), -EISDIR);
	assert_int_equal(journal_open(&journal, "/tmp"), -EISDIR);
	assert_int_equal(journal_close(NULL), 0);
}

static void *no_memory(size_t size)
{
	(void)size;
	return NULL;
}

/* Out of memory is no broken line: a cell would be measured again for nothing. */
static void test_out_of_memory(void **state)
{
	const struct place *place = *state;
	struct journal_data data = { 0 };
	json_malloc_t allocate;
	json_free_t release;
	int rc;

	write_small_journal(place->path);
	json_get_alloc_funcs(&allocate, &release);
	json_set_alloc_funcs(no_memory, release);
	rc = journal_read(place->path, &data);
	json_set_alloc_funcs(allocate, release);
	assert_int_equal(rc, -ENOMEM);
	assert_null(data.records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_MEMORY(test_journal_round_trip),
		IN_MEMORY(test_lines_as_documented),
		IN_MEMORY(test_other_lines_are_kept),
		IN_MEMORY(test_journals_merge),
		IN_MEMORY(test_estimate_keeps_its_type),
		IN_MEMORY(test_unwritable_lines),
		IN_MEMORY(test_longest_line_written_can_be_read),
		cmocka_unit_test(test_new_file_is_made),
		IN_MEMORY(test_cut_at_every_byte),
		IN_MEMORY(test_cut_by_another_run),
		IN_MEMORY(test_two_runs_append_to_one),
		IN_FILE(test_writing_waits_for_the_other_run),
		cmocka_unit_test(test_full_device),
		cmocka_unit_test(test_pipe_that_nobody_reads),
		IN_FILE(test_full_disk),
		IN_FILE(test_full_disk_with_a_cut_line),
		IN_FILE(test_unreadable),
		cmocka_unit_test(test_no_file),
		IN_MEMORY(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
