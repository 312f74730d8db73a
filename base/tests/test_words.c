/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/words.h"

#define FILE_NAME "a.file"

static char why[WORDS_WHY];

static int read_text(const char *text, size_t size, words_take *take, void *arg)
{
	FILE *stream = fmemopen((void *)(uintptr_t)text, size, "r");
	int ret;

	assert_non_null(stream);
	ret = words_read(stream, FILE_NAME, take, arg, why);
	fclose(stream);
	return ret;
}

/* All words with their columns, a bar between lines. */
static int print_words(const struct word_line *w, void *arg)
{
	char *out = arg;

	for (unsigned i = 0; i < w->count; i++)
		sprintf(out + strlen(out), "%s@%u ", w->word[i], w->column[i]);
	assert_string_equal(w->word[w->count], "");
	sprintf(out + strlen(out), "|%u ", w->line);
	return 0;
}

static void lines_become_words(void **state)
{
	static const char text[] = "# a comment\n\none two # three\n\t four\tfi#ve \r\n  #\nlast";
	char out[256] = "";

	(void)state;
	assert_int_equal(read_text(text, strlen(text), print_words, out), 0);
	assert_string_equal(out, "one@1 two@5 |3 four@3 fi#ve@8 |4 last@1 |6 |7 ");
	assert_string_equal(why, "");
}

/* What each line asks for is its first word. */
static int check_line(const struct word_line *w, void *arg)
{
	static const char *const colours[] = { "red", "green", "blue" };
	uint64_t *sum = arg, number;
	uint8_t byte;
	int ret = 0;

	if (w->count == 0)
		return *sum == 42 ? 0 : words_refuse(w, 0, "a sum of 42");
	if (strcmp(w->word[0], "number") == 0 && (ret = words_number(w, 1, 1, 99, &number)) == 0)
		*sum += number;
	if (strcmp(w->word[0], "byte") == 0 && (ret = words_byte(w, 1, &byte)) == 0)
		*sum += byte;
	if (strcmp(w->word[0], "colour") == 0 && (ret = words_choice(w, 1, colours, 3)) >= 0) {
		*sum += (uint64_t)ret;
		ret = 0;
	}
	if (strcmp(w->word[0], "text") == 0) {
		assert_string_equal(words_rest(w, 1), "of  several # words");
		assert_string_equal(words_rest(w, 9), "# words");
		return 0;
	}
	return ret < 0 ? ret : words_end(w, 2);
}

static void must_complain(const char *text, const char *complaint)
{
	uint64_t sum = 0;

	assert_int_equal(read_text(text, strlen(text), check_line, &sum), -EINVAL);
	assert_string_equal(why, complaint);
}

static void errors_name_line_and_column(void **state)
{
	uint64_t sum = 0;
	static const char good[] = "number 30\nbyte 0a\ncolour blue\ntext of  several # words\n";

	(void)state;
	assert_int_equal(read_text(good, strlen(good), check_line, &sum), 0);
	must_complain("number 100\n",
		      FILE_NAME ":1:8: expected a number from 1 to 99, found '100'");
	must_complain("\n number",
		      FILE_NAME ":2:8: expected a number from 1 to 99, found the end of the line");
	must_complain("byte 1",
		      FILE_NAME ":1:6: expected a byte of two hexadecimal digits, found '1'");
	must_complain("byte -1",
		      FILE_NAME ":1:6: expected a byte of two hexadecimal digits, found '-1'");
	must_complain("byte \xc3\xa4",
		      FILE_NAME ":1:6: expected a byte of two hexadecimal digits, found '\?\?'");
	must_complain("colour  grey", FILE_NAME ":1:9: expected red, green or blue, found 'grey'");
	must_complain("byte 0a 0b", FILE_NAME ":1:9: expected the end of the line, found '0b'");
	must_complain("byte 0a\n",
		      FILE_NAME ":2:1: expected a sum of 42, found the end of the file");
}

static void lines_that_are_no_text_are_refused(void **state)
{
	char many[3 * WORDS_IN_LINE + 3] = "", out[2048] = "";

	(void)state;
	assert_int_equal(read_text("ab\0c\n", 5, print_words, out), -EINVAL);
	assert_string_equal(why, FILE_NAME ":1:3: expected text, found a NUL byte");
	for (unsigned i = 0; i < WORDS_IN_LINE; i++)
		strcat(many, "ab ");
	assert_int_equal(read_text(many, strlen(many), print_words, out), 0);
	strcat(many, "c");
	assert_int_equal(read_text(many, strlen(many), print_words, out), -EINVAL);
	assert_string_equal(why, FILE_NAME ":1:193: expected at most 64 words");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_become_words),
		cmocka_unit_test(errors_name_line_and_column),
		cmocka_unit_test(lines_that_are_no_text_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
