/* SPDX-License-Identifier: MIT */
/*
 * All strings of one and two bytes, and all sequences of the bytes at the bounds of UTF-8: what is
 * escaped comes back, is UTF-8, and has no control character.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/demangle.h"
#include "base/text.h"

/* By decoding it, not by tables of bytes. */
static size_t rune(const unsigned char *text)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = *text < 0x80	      ? 1
		   : *text >> 5 == 6  ? 2
		   : *text >> 4 == 14 ? 3
		   : *text >> 3 == 30 ? 4
				      : 0;
	uint32_t code = n < 2 ? *text : *text & (0x7fu >> n);

	for (size_t i = 1; i < n; i++) {
		if (text[i] >> 6 != 2)
			return 0;
		code = code << 6 | (text[i] & 63);
	}
	if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return n;
}

static void check_utf8(const char *text)
{
	for (size_t n; *text; text += n) {
		n = rune((const unsigned char *)text);
		assert_int_not_equal(n, 0);
	}
}

static bool has_control(const char *text)
{
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte < ' ' || byte == 0x7f || (byte == 0xc2 && (unsigned char)text[1] < 0xa0))
			return true;
	}
	return false;
}

static void check(const char *name)
{
	char *text = text_escaped(name), *utf8 = text_utf8(name), *back;

	assert_non_null(text);
	assert_int_equal(text_rune(name), rune((const unsigned char *)name));
	check_utf8(text);
	check_utf8(utf8);
	assert_false(has_control(text));
	back = strdup(text);
	text_unescape(back);
	assert_string_equal(back, name);
	free(back);
	free(text);
	free(utf8);
}

static void test_short_names(void **state)
{
	(void)state;
	check("");
	for (int a = 1; a < 256; a++) {
		check((char[]){ (char)a, 0 });
		for (int b = 1; b < 256; b++)
			check((char[]){ (char)a, (char)b, 'x', 0 });
	}
}

static void test_bounds(void **state)
{
	static const unsigned char bound[] = { 0x01, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
					       0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee,
					       0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff };
	enum {
		N = sizeof(bound)
	};

	(void)state;
	for (size_t i = 0; i < (size_t)N * N * N * N; i++)
		check((char[]){ (char)bound[i % N], (char)bound[i / N % N],
				(char)bound[i / N / N % N], (char)bound[i / N / N / N], 0 });
}

static void expect_escape(const char *name, const char *expected)
{
	char *text = text_escaped(name);

	assert_string_equal(text, expected);
	free(text);
}

static void test_forms(void **state)
{
	char odd[] = "\\x4 \\n \\x4g \\x", many[] = "\\x41\\x5cx42\\x";
	char *utf8 = text_utf8("a\xff\xc3\xa9\xed\xa0\x80");

	(void)state;
	expect_escape("a\tb\n\x7f\\", "a\\x09b\\x0a\\x7f\\x5c");
	expect_escape("f\xc3\xa9\xff\xc3", "f\xc3\xa9\\xff\\xc3");
	expect_escape("\xc2\x9b", "\\xc2\\x9b");
	text_unescape(odd);
	assert_string_equal(odd, "\\x4 \\n \\x4g \\x");
	text_unescape(many);
	assert_string_equal(many, "A\\x42\\x");
	assert_string_equal(utf8, "a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	free(utf8);
}

static void test_streams(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	assert_int_equal(text_put(out, "a\tb"), 6);
	fputc(' ', out);
	text_put_plain(out, "a\nb;c\x7f\xff", ";");
	fclose(out);
	assert_string_equal(text, "a\\x09b a_b_c_\xff");
	free(text);
}

static void test_words(void **state)
{
	char list[] = "one  Foo::bar(int,\\ char) a\\\\ b\\", *rest = list;

	(void)state;
	assert_string_equal(text_word(&rest), "one");
	assert_string_equal(text_word(&rest), "");
	assert_string_equal(text_word(&rest), "Foo::bar(int,\\ char)");
	assert_string_equal(text_word(&rest), "a\\\\");
	assert_string_equal(text_word(&rest), "b\\");
	assert_null(rest);
}

static void expect_name(const char *symbol, bool parameters, const char *expected)
{
	char room[NAME_ROOM];

	assert_string_equal(demangle_name(symbol, parameters, room), expected);
}

static void test_demangled(void **state)
{
	char longest[4000] = "_Z3fooN";

	(void)state;
	expect_name("main", true, "main");
	expect_name("_ZN3Foo", true, "_ZN3Foo");
	expect_name("_RNvC7mycr", true, "_RNvC7mycr");
	memset(longest + 7, 'x', sizeof(longest) - 8);
	expect_name(longest, true, longest);
	expect_name("_ZN3Foo3barEiPKc", true, "Foo::bar(int, char const*)");
	expect_name("_ZN3Foo3barEiPKc", false, "Foo::bar");
	expect_name("_Z5twiceIiET_S0_", true, "int twice<int>(int)");
	expect_name("_ZN3Foo3barEi.part.0", true, "Foo::bar(int) [clone .part.0]");
	expect_name("_ZN3Foo3barEi+0x1c", true, "Foo::bar(int)+0x1c");
	expect_name("_ZN7mycrate4cart6render17h0123456789abcdefE", true, "mycrate::cart::render");
	expect_name("_RNvNtC7mycrate4cart5total", true, "mycrate::cart::total");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_names), cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_forms),	    cmocka_unit_test(test_streams),
		cmocka_unit_test(test_words),	    cmocka_unit_test(test_demangled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
