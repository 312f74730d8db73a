/* SPDX-License-Identifier: MIT */
/*
 * Where data files are looked for. The program stands in for tmax, with a folder data/ beside it.
 */
#include "base/text_file.h"

#include <errno.h>
#include <libgen.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define NAME	"test_data_file.gp"
#define PROGRAM 1024
#define FOLDER	(PROGRAM + 8)
#define PATH	(FOLDER + 32)

static char folder[FOLDER]; /* data/, beside this program */

static void make_file(char *path)
{
	FILE *f;

	snprintf(path, PATH, "%s/%s", folder, NAME);
	f = fopen(path, "we");
	assert_non_null(f);
	fclose(f);
}

static void test_beside_the_program(void **state)
{
	char made[PATH], found[PATH], small[8];

	(void)state;
	make_file(made);
	assert_int_equal(data_file(NAME, found, sizeof(found)), 0);
	assert_string_equal(found, made);
	assert_int_equal(data_file(NAME, small, sizeof(small)), -ENAMETOOLONG);
	unlink(made);
}

static void test_installed(void **state)
{
	char found[PATH];

	(void)state;
	assert_int_equal(data_file(NAME, found, sizeof(found)), -ENOENT);
	assert_string_equal(found, PKGDATADIR "/" NAME);
}

/* Who names a folder wants that one or none. */
static void test_named(void **state)
{
	char made[PATH], found[PATH];

	(void)state;
	make_file(made);
	setenv("TMAX_DATADIR", "/nonexistent", 1);
	assert_int_equal(data_file(NAME, found, sizeof(found)), -ENOENT);
	assert_string_equal(found, "/nonexistent/" NAME);
	setenv("TMAX_DATADIR", folder, 1);
	assert_int_equal(data_file(NAME, found, sizeof(found)), 0);
	assert_string_equal(found, made);
	unsetenv("TMAX_DATADIR");
	unlink(made);
}

static int make_folder(void **state)
{
	char program[PROGRAM];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

	(void)state;
	unsetenv("TMAX_DATADIR");
	if (length < 0)
		return -1;
	program[length] = '\0';
	snprintf(folder, sizeof(folder), "%s/data", dirname(program));
	return mkdir(folder, 0777) && errno != EEXIST ? -1 : 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_beside_the_program),
		cmocka_unit_test(test_installed),
		cmocka_unit_test(test_named),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
