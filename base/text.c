/* SPDX-License-Identifier: MIT */
/* Escaped names, UTF-8, lists of words. */
#include "base/text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char digits[] = "0123456789abcdef";

/* Bytes of a well-formed character that begins so; 0: none does. */
static size_t count_rune_bytes(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first < 0xc2 || first > 0xf4)
		return 0;
	return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* Overlong, a surrogate, or beyond U+10FFFF. */
static bool is_wrong(unsigned char first, unsigned char second)
{
	return (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
	       (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
}

size_t text_rune(const char *text)
{
	const unsigned char *byte = (const unsigned char *)text;
	size_t n = count_rune_bytes(byte[0]);

	for (size_t i = 1; i < n; i++)
		if ((byte[i] & 0xc0) != 0x80)
			return 0;
	return n > 2 && is_wrong(byte[0], byte[1]) ? 0 : n;
}

static bool is_control(unsigned char byte)
{
	return byte < ' ' || byte == 0x7f;
}

/* Bytes of a character that needs no escape. C1 control characters have two bytes. */
static size_t plain_length(const char *text)
{
	const unsigned char *byte = (const unsigned char *)text;

	if (is_control(byte[0]) || byte[0] == '\\' || (byte[0] == 0xc2 && byte[1] < 0xa0))
		return 0;
	return text_rune(text);
}

size_t text_piece(char piece[TEXT_PIECE], const char *name)
{
	unsigned char byte = (unsigned char)*name;
	size_t n = byte ? plain_length(name) : 0;

	memcpy(piece, name, n);
	piece[n] = '\0';
	if (n || !byte)
		return n;
	memcpy(piece, (const char[]){ '\\', 'x', digits[byte >> 4], digits[byte & 15], '\0' },
	       TEXT_PIECE);
	return 1;
}

/* The byte that an escape stands for; -1: there is none. */
static int parse_escape(const char *text)
{
	if (text[0] != '\\' || text[1] != 'x' || strspn(text + 2, digits) < 2)
		return -1;
	return (int)((strchr(digits, text[2]) - digits) << 4 | (strchr(digits, text[3]) - digits));
}

void text_unescape(char *text)
{
	char *to = text;

	while (*text) {
		int byte = parse_escape(text);

		*to++ = (char)(byte < 0 ? *text : byte);
		text += byte < 0 ? 1 : 4;
	}
	*to = '\0';
}

char *text_escaped(const char *name)
{
	char *text = malloc((TEXT_PIECE - 1) * strlen(name) + TEXT_PIECE), *end = text;
	size_t n;

	while (text && (n = text_piece(end, name))) {
		name += n;
		end += strlen(end);
	}
	return text;
}

int text_fields(char **line, char **field, int n)
{
	int i = 0;

	for (; i < n && *line; i++) {
		field[i] = strsep(line, "\t");
		text_unescape(field[i]);
	}
	return i;
}

int text_lines(FILE *file, int (*take)(char *line, void *arg), void *arg)
{
	char *line = NULL;
	size_t size = 0;
	int ret = 0;

	while (!ret && getline(&line, &size, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		ret = take(line, arg);
	}
	free(line);
	return ret;
}

int text_put(FILE *out, const char *name)
{
	char piece[TEXT_PIECE];
	int written = 0;
	size_t n;

	while ((n = text_piece(piece, name))) {
		fputs(piece, out);
		written += (int)strlen(piece);
		name += n;
	}
	return written;
}

void text_put_plain(FILE *out, const char *name, const char *bad)
{
	for (; *name; name++)
		fputc(is_control((unsigned char)*name) || strchr(bad, *name) ? '_' : *name, out);
}

char *text_word(char **rest)
{
	char *word = *rest, *end = word;

	while (end && *end && *end != ' ')
		end += *end == '\\' && end[1] ? 2 : 1;
	if (end && *end)
		*end++ = '\0';
	else
		end = NULL;
	*rest = end;
	return word;
}

void text_printable(char *to, size_t size, const char *text)
{
	size_t n;

	for (snprintf(to, size, "%s", text); *to; to += n ? n : 1) {
		n = *to == '\\' ? 1 : plain_length(to);
		if (!n)
			*to = '?';
	}
}

char *text_utf8(const char *name)
{
	static const char other[] = "\xef\xbf\xbd";
	char *text = malloc((sizeof(other) - 1) * strlen(name) + 1), *to = text;

	while (text && *name) {
		size_t n = text_rune(name);

		memcpy(to, n ? name : other, n ? n : sizeof(other) - 1);
		to += n ? n : sizeof(other) - 1;
		name += n ? n : 1;
	}
	if (text)
		*to = '\0';
	return text;
}
