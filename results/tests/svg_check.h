/* SPDX-License-Identifier: MIT */
/*
 * For tests of figures: a folder of their own with a gnuplot that only tells its arguments, the
 * real one where there is one, and what it drew.
 */
#ifndef RESULTS_TESTS_SVG_CHECK_H
#define RESULTS_TESTS_SVG_CHECK_H

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define FILE_ROOM (1 << 21)

static char gnuplot[256]; /* the real one, empty if there is none */
static char home[4096];

/* --- Files ------------------------------------------------------------------------- */

static inline void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *stream = fopen(path, "w");

	assert_non_null(stream);
	fputs(text, stream);
	fclose(stream);
	assert_int_equal(chmod(path, mode), 0);
}

static inline char *read_file(const char *path)
{
	FILE *stream = fopen(path, "r");
	char *text = calloc(1, FILE_ROOM);

	assert_non_null(stream);
	assert_non_null(text);
	(void)!fread(text, 1, FILE_ROOM - 1, stream);
	fclose(stream);
	return text;
}

static inline bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static inline bool file_has(const char *path, const char *words)
{
	char *text = read_file(path);
	bool has = strstr(text, words);

	free(text);
	return has;
}

static inline void expect_in(const char *path, const char *words)
{
	if (!file_has(path, words))
		fail_msg("nothing of '%s' in %s", words, path);
}

/* --- The folder -------------------------------------------------------------------- */

/* @path: ends with XXXXXX. A folder of its own, entered. 0 or -1. */
static inline int enter_folder(char *path)
{
	/* Draws nothing, but tells what it was asked to draw. */
	static const char fake[] = "#!/bin/sh\n"
				   "printf '%s\\n' \"$@\" >arguments\n"
				   "echo picture >\"$5\"\n";

	if (!mkdtemp(path) || chdir(path))
		return -1;
	write_file("gnuplot", fake, 0755);
	return setenv("TMAX_GNUPLOT", "./gnuplot", 1);
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline int leave_folder(const char *path)
{
	int rc = chdir(home);

	return rc | nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* --- Pictures ---------------------------------------------------------------------- */

static inline void use_gnuplot(void)
{
	if (!gnuplot[0])
		skip();
	setenv("TMAX_GNUPLOT", gnuplot, 1);
}

static inline void expect_pictures(const char *svg, const char *png)
{
	char *text = read_file(png);

	assert_memory_equal(text, "\x89PNG\r\n\x1a\n", 8);
	free(text);
	expect_in(svg, "<svg");
	expect_in(svg, "</svg>");
}

/* --- Around all tests -------------------------------------------------------------- */

/* The gnuplot that the figures will use outside of these tests. */
static inline void find_gnuplot(void)
{
	const char *named = getenv("TMAX_GNUPLOT");
	char *path = strdup(getenv("PATH") ? getenv("PATH") : ""), *rest = path, *folder;

	if (named)
		snprintf(gnuplot, sizeof(gnuplot), "%s", named);
	while (!gnuplot[0] && (folder = strsep(&rest, ":"))) {
		snprintf(gnuplot, sizeof(gnuplot), "%s/gnuplot", folder);
		if (access(gnuplot, X_OK))
			gnuplot[0] = '\0';
	}
	free(path);
}

/* For cmocka: also where the scripts of the figures are. */
static inline int find_things(void **state)
{
	char *absolute = realpath("data", NULL); /* of the build tree */

	(void)state;
	find_gnuplot();
	if (!absolute || !getcwd(home, sizeof(home)))
		return -1;
	setenv("TMAX_DATADIR", absolute, 1);
	free(absolute);
	return 0;
}

#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, enter_place, leave_place)

#endif
