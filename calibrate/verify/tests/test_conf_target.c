/* SPDX-License-Identifier: MIT */
/* Where a machine.conf may be written, and that what was there survives a failure. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>

#include "calibrate/tests/conf_place.h"

#define NOBODY 65534

static int write_limited(const struct place *p, rlim_t bytes)
{
	struct rlimit before, limit;
	int ret;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){ bytes, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ret = write_conf(p);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	return ret;
}

static void a_full_disk_leaves_the_old_one(void **state)
{
	struct place *p = *state;
	struct stat st;
	rlim_t size;

	assert_int_equal(write_conf(p), 0);
	assert_int_equal(stat(p->path, &st), 0);
	size = (rlim_t)st.st_size;
	write_old(p->path);
	for (rlim_t limit = 0; limit < size; limit += limit + 500 < size ? 500 : size - limit) {
		assert_int_equal(write_limited(p, limit), -EFBIG);
		assert_old(p->path);
		assert_int_equal(count_files(p->folder), 1);
	}
	assert_int_equal(write_limited(p, size - 1), -EFBIG);
	assert_old(p->path);
	assert_int_equal(write_limited(p, size), 0);
	assert_int_equal(must_read(p).level[0].waits.first, 100);
}

/* Root may write to a folder that is read-only, so it steps down for a moment. */
static int as_nobody(int (*call)(const struct place *p), const struct place *p)
{
	uid_t user = geteuid();
	int ret;

	if (user == 0)
		assert_int_equal(seteuid(NOBODY), 0);
	ret = call(p);
	if (user == 0)
		assert_int_equal(seteuid(0), 0);
	return ret;
}

static int check(const struct place *p)
{
	char why[200];

	return conf_check(p->path, why, sizeof(why));
}

static void a_read_only_folder_leaves_the_old_one(void **state)
{
	struct place *p = *state;

	write_old(p->path);
	assert_int_equal(chmod(p->folder, 0555), 0);
	assert_int_equal(as_nobody(write_conf, p), -EACCES);
	assert_int_equal(as_nobody(check, p), -EACCES);
	assert_int_equal(chmod(p->folder, 0755), 0);
	assert_old(p->path);
	assert_int_equal(count_files(p->folder), 1);
}

static void assert_refused(const struct place *p, int error)
{
	unsigned files = count_files(p->folder);

	assert_int_equal(check(p), error);
	assert_int_equal(write_conf(p), error);
	assert_int_equal(count_files(p->folder), files);
}

static void a_folder_is_no_target(void **state)
{
	struct place *p = *state;
	struct stat st;

	assert_int_equal(mkdir(p->path, 0755), 0);
	assert_refused(p, -EISDIR);
	assert_int_equal(stat(p->path, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(rmdir(p->path), 0);
	strcat(p->path, "/");
	assert_refused(p, -EISDIR);
	p->path[0] = '\0';
	assert_refused(p, -EISDIR);
}

/* A pipe stands for what must not be renamed over: /dev/null, a terminal. */
static void a_device_is_no_target(void **state)
{
	struct place *p = *state;
	struct stat st;

	assert_int_equal(mkfifo(p->path, 0600), 0);
	assert_refused(p, -ENOTSUP);
	assert_int_equal(stat(p->path, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
}

static void a_file_is_no_folder(void **state)
{
	struct place *p = *state;
	char file[64];

	strcpy(file, p->path);
	write_old(file);
	strcat(p->path, "/machine.conf");
	assert_refused(p, -ENOTDIR);
	strcat(p->path, "/deeper");
	assert_refused(p, -ENOTDIR);
	assert_old(file);
}

static void missing_folders_are_made(void **state)
{
	struct place *p = *state;

	snprintf(p->path, sizeof(p->path), "%s/a//b/./c/machine.conf", p->folder);
	assert_int_equal(write_conf(p), 0);
	assert_int_equal(must_read(p).level[0].waits.first, 100);
}

static void names_that_are_too_long(void **state)
{
	struct place *p = *state;
	char path[2 * PATH_MAX], why[200];

	fill_text(path, sizeof(path));
	memcpy(path, p->folder, strlen(p->folder));
	path[strlen(p->folder)] = '/';
	assert_int_equal(conf_check(path, why, sizeof(why)), -ENAMETOOLONG);
	assert_int_equal(conf_write(path, &p->estimate, &p->from), -ENAMETOOLONG);
	path[300] = '\0';
	assert_int_equal(conf_check(path, why, sizeof(why)), -ENAMETOOLONG);
	assert_int_equal(conf_write(path, &p->estimate, &p->from), -ENAMETOOLONG);
	assert_int_equal(count_files(p->folder), 0);
}

/* In a shared folder another user may guess the name of the temporary file. */
static void a_planted_link_is_not_followed(void **state)
{
	struct place *p = *state;
	char planted[256], victim[128];

	snprintf(planted, sizeof(planted), "%s.%d.tmp", p->path, (int)getpid());
	snprintf(victim, sizeof(victim), "%s/victim", p->folder);
	write_old(victim);
	assert_int_equal(symlink(victim, planted), 0);
	assert_int_equal(conf_write(p->path, &p->estimate, &p->from), 0);
	assert_old(victim);
	assert_int_equal(access(planted, F_OK), -1);
	/* Nor is a file written to that the other user may hold open. */
	assert_int_equal(link(victim, planted), 0);
	assert_int_equal(check(p), 0);
	assert_int_equal(link(victim, planted), 0);
	assert_int_equal(conf_write(p->path, &p->estimate, &p->from), 0);
	assert_old(victim);
}

static void a_check_changes_nothing(void **state)
{
	struct place *p = *state;

	assert_int_equal(check(p), 0);
	assert_int_equal(count_files(p->folder), 0);
	write_old(p->path);
	assert_int_equal(check(p), 0);
	assert_old(p->path);
	assert_int_equal(count_files(p->folder), 1);
}

/* Better to hear of it before a quarter of an hour of work. */
static void a_folder_open_to_others_is_told_of(void **state)
{
	struct place *p = *state;
	char why[200] = "unset";

	assert_int_equal(conf_check(p->path, why, sizeof(why)), 0);
	assert_string_equal(why, "");
	assert_int_equal(chmod(p->folder, 0775), 0);
	assert_int_equal(conf_check(p->path, why, sizeof(why)), 0);
	assert_non_null(strstr(why, "its folder can be written to by others"));
	assert_int_equal(count_files(p->folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(a_full_disk_leaves_the_old_one),
		IN_PLACE(a_read_only_folder_leaves_the_old_one),
		IN_PLACE(a_folder_is_no_target),
		IN_PLACE(a_device_is_no_target),
		IN_PLACE(a_file_is_no_folder),
		IN_PLACE(missing_folders_are_made),
		IN_PLACE(names_that_are_too_long),
		IN_PLACE(a_planted_link_is_not_followed),
		IN_PLACE(a_check_changes_nothing),
		IN_PLACE(a_folder_open_to_others_is_told_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
