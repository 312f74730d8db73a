/* SPDX-License-Identifier: MIT */
/*
 * What threads count is read back, of more threads than a file has slots, and of a child; a file
 * that is not what it should be is passed over, and a value that is being changed is not taken.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "metrics/agent/values.h"

#define VALUES	3
#define THREADS (VALUES_SLOTS + 100)

static char folder[] = "/tmp/test-values-XXXXXX";

struct sums {
	int64_t value[VALUES];
	size_t slots, mine, ended;
	bool named;
};

static void add_slot(const struct values_slot *slot, const struct values_file *file, void *data)
{
	struct sums *sums = data;
	struct value_copy copy;

	for (size_t i = 0; i < VALUES; i++) {
		assert_int_equal(value_read(&slot->value[i], &copy), 0);
		sums->value[i] += copy.value;
	}
	sums->slots++;
	sums->mine += file->pid == (uint32_t)getpid();
	sums->ended += file->ended && file->ended_cpu && slot->was_alive;
	sums->named |= !strcmp(slot->name, "counts");
}

static struct sums read_all(void)
{
	struct sums sums = { 0 };

	assert_int_equal(values_read(folder, VALUES, add_slot, &sums), 0);
	return sums;
}

static void *add_values(void *arg)
{
	struct mdl_value *values = values_own();

	assert_non_null(values);
	assert_ptr_equal(values, values_own());
	values[0].value += 1;
	values[2].value += 3;
	return arg;
}

static void each_thread_has_a_slot(void **state)
{
	pthread_t thread;
	struct sums sums;

	(void)state;
	assert_int_equal(values_start(folder, VALUES), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&thread, NULL, add_values, NULL), 0);
		pthread_join(thread, NULL);
	}
	sums = read_all();
	assert_int_equal(sums.slots, THREADS);
	assert_int_equal(sums.mine, THREADS);
	assert_int_equal(sums.value[0], THREADS);
	assert_int_equal(sums.value[1], 0);
	assert_int_equal(sums.value[2], 3 * THREADS);
	assert_int_equal(values_missed(), 0);
}

/* The parent's slots are not the child's. */
static void a_child_has_slots_of_its_own(void **state)
{
	struct sums before, after;
	int status;
	pid_t child;

	(void)state;
	pthread_setname_np(pthread_self(), "counts");
	add_values(NULL);
	before = read_all();
	assert_true(before.named);
	child = fork();
	if (!child) {
		add_values(NULL);
		_exit(0);
	}
	waitpid(child, &status, 0);
	after = read_all();
	assert_int_equal(after.value[0], before.value[0] + 1);
	assert_int_equal(after.slots, before.slots + 1);
	assert_int_equal(after.mine, before.mine);
}

static void *start_timer(void *arg)
{
	values_own()[0].depth = 1;
	return arg;
}

/* A timer of a thread that is gone is not taken for one that runs until the end. */
static void an_end_is_of_threads_that_are_there(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, start_timer, NULL), 0);
	pthread_join(thread, NULL);
	start_timer(NULL);
	assert_int_equal(read_all().ended, 0);
	values_end(true);
	assert_int_equal(read_all().ended, 1);
	values_end(false);
	assert_int_equal(read_all().ended, 0);
	values_own()[0].depth = 0;
}

static void write_file(const char *name, const struct values_file *file, size_t size)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, file, size), size);
	close(fd);
}

/* A file that counts, then the same with something wrong. */
static void damaged_files_are_passed_over(void **state)
{
	size_t size = values_file_size(VALUES);
	struct values_file *file = calloc(1, size);
	struct sums sums = read_all();
	size_t before = sums.slots;

	(void)state;
	file->magic = VALUES_MAGIC;
	file->values = VALUES;
	file->taken = 1;
	values_slot_at(file, VALUES, 0)->tid = 1;
	write_file("1.0", file, size);
	assert_int_equal(read_all().slots, before + 1);
	write_file("1.0", file, size - 8);
	assert_int_equal(read_all().slots, before);
	file->magic++;
	write_file("1.0", file, size);
	assert_int_equal(read_all().slots, before);
	file->magic = VALUES_MAGIC;
	file->values++;
	write_file("1.0", file, size);
	assert_int_equal(read_all().slots, before);
	file->values = VALUES;
	file->taken = UINT32_MAX;
	write_file("1.0", file, size);
	assert_int_equal(read_all().slots, before + 1);
	free(file);
}

static void a_value_that_changes_is_not_taken(void **state)
{
	struct mdl_value value = { .version = 7, .value = 1 };
	struct value_copy copy;

	(void)state;
	assert_int_equal(value_read(&value, &copy), -EAGAIN);
	value.version++;
	assert_int_equal(value_read(&value, &copy), 0);
	assert_int_equal(copy.value, 1);
}

static int make_folder(void **state)
{
	(void)state;
	return !mkdtemp(folder);
}

static int remove_folder(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_thread_has_a_slot),
		cmocka_unit_test(a_child_has_slots_of_its_own),
		cmocka_unit_test(an_end_is_of_threads_that_are_there),
		cmocka_unit_test(damaged_files_are_passed_over),
		cmocka_unit_test(a_value_that_changes_is_not_taken),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
