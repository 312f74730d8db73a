/* SPDX-License-Identifier: MIT */
/* Each error that a public header names has a text of its own. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "patchcore/patchcore.h"

#define NAME_ROOM 16

/* Of two names for one number strerrorname_np() knows the other. */
static void note_error(const char *name, unsigned char named[256])
{
	for (int error = 1; error < 256; error++) {
		const char *known = error == ENOTSUP ? "ENOTSUP" : strerrorname_np(error);

		if (known && !strcmp(known, name))
			named[error] = 1;
	}
}

/* note_errors - mark the errors that a header names as -ENAME. */
static void note_errors(const char *header, unsigned char named[256])
{
	const char *top = getenv("srcdir");
	char path[4096], line[512], name[NAME_ROOM];
	FILE *in;

	snprintf(path, sizeof(path), "%s/patchcore/include/patchcore/%s", top ? top : ".", header);
	in = fopen(path, "re");
	assert_non_null(in);
	while (fgets(line, sizeof(line), in))
		for (const char *at = line; (at = strstr(at, "-E"));)
			if (sscanf(++at, "%15[A-Z0-9]", name) == 1)
				note_error(name, named);
	fclose(in);
}

static void each_named_error_has_a_text(void **state)
{
	static const char *const headers[] = { "async.h",   "batch.h", "call.h",    "check.h",
					       "mapping.h", "merge.h", "signals.h", "patchcore.h" };
	unsigned char named[256] = { 0 };
	int count = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		note_errors(headers[i], named);
	for (int error = 1; error < 256; error++) {
		const char *text = pc_strerror(-error);

		assert_non_null(text);
		if (!named[error]) {
			assert_string_equal(text, pc_strerror(-10000));
			continue;
		}
		count++;
		assert_string_not_equal(text, pc_strerror(-10000));
		for (int other = 0; other < error; other++)
			if (named[other])
				assert_string_not_equal(text, pc_strerror(-other));
	}
	assert_true(count >= 18);
}

static void what_is_no_error_is_told(void **state)
{
	(void)state;
	assert_string_equal(pc_strerror(0), "done");
	/* A caller that forgets the sign is not told of another error. */
	assert_string_equal(pc_strerror(EAGAIN), pc_strerror(-10000));
	assert_string_equal(pc_strerror(INT32_MIN), pc_strerror(-10000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_named_error_has_a_text),
		cmocka_unit_test(what_is_no_error_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
