/* SPDX-License-Identifier: MIT */
/* A file is read the same plain and packed; a packed one that is damaged or cut says so. */
#include "base/text_file.h"

#include <errno.h>
#include <lzma.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define LINES 100000u

static char folder[] = "/tmp/test_text_file.XXXXXX";

static const char *place(const char *name)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void put(const char *name, const void *bytes, size_t size)
{
	FILE *f = fopen(place(name), "we");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

static char *text;
static size_t length;
static uint8_t *packed;
static size_t packed_length;

/* Two streams, one behind the other, as `cat a.xz b.xz` makes them. */
static int make_files(void **state)
{
	FILE *f = open_memstream(&text, &length);
	size_t half;

	(void)state;
	for (unsigned i = 0; i < LINES; i++)
		fprintf(f, "line %u\n", i);
	fclose(f);
	packed = malloc(2 * lzma_stream_buffer_bound(length));
	half = length / 2;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL,
							 (uint8_t *)text + (i ? half : 0),
							 i ? length - half : half, packed,
							 &packed_length,
							 2 * lzma_stream_buffer_bound(length)),
				 LZMA_OK);
	assert_non_null(mkdtemp(folder));
	put("plain", text, length);
	put("packed.xz", packed, packed_length);
	put("cut.xz", packed, packed_length - 40);
	packed[packed_length / 4] ^= 1;
	put("damaged.xz", packed, packed_length);
	put("none.xz", text, length);
	return 0;
}

static int remove_files(void **state)
{
	static const char *const names[] = { "plain", "packed.xz", "cut.xz", "damaged.xz",
					     "none.xz" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		unlink(place(names[i]));
	rmdir(folder);
	free(text);
	free(packed);
	return 0;
}

/* What was read, and whether all was well. */
static size_t read_all(const char *name, int *error)
{
	FILE *f = text_file_open(place(name));
	char line[64];
	size_t at = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) && !strncmp(text + at, line, strlen(line)))
		at += strlen(line);
	*error = ferror(f);
	fclose(f);
	return at;
}

static void reads_both_alike(void **state)
{
	int error;

	(void)state;
	assert_int_equal(read_all("plain", &error), length);
	assert_false(error);
	assert_int_equal(read_all("packed.xz", &error), length);
	assert_false(error);
}

static void says_what_is_broken(void **state)
{
	static const char *const names[] = { "cut.xz", "damaged.xz", "none.xz" };
	int error;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		assert_true(read_all(names[i], &error) < length);
		assert_true(error);
	}
	assert_null(text_file_open(place("nowhere.xz")));
	assert_int_equal(errno, ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_both_alike),
		cmocka_unit_test(says_what_is_broken),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
