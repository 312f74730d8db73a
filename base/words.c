/* SPDX-License-Identifier: MIT */
/* Lines of words, and what is wrong with them. */
#include "base/words.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/command_line.h"

#define BLANKS	  " \t\r\n"
#define FOUND_MAX 40 /* bytes of a word that an error shows */

int words_refuse(const struct word_line *w, unsigned i, const char *expected, ...)
{
	char found[FOUND_MAX + 1], what[128];
	const char *quote = "'";
	va_list args;

	va_start(args, expected);
	vsnprintf(what, sizeof(what), expected, args);
	va_end(args);
	if (i > w->count)
		i = w->count;
	snprintf(found, sizeof(found), "%s", w->word[i]);
	for (char *c = found; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	if (i == w->count) {
		snprintf(found, sizeof(found), "the end of the %s", w->count ? "line" : "file");
		quote = "";
	}
	snprintf(w->why, WORDS_WHY, "%.80s:%u:%u: expected %s, found %s%s%s", w->file, w->line,
		 w->column[i], what, quote, found, quote);
	return -EINVAL;
}

int words_number(const struct word_line *w, unsigned i, uint64_t min, uint64_t max, uint64_t *value)
{
	if (i < w->count && number_in(w->word[i], min, max, value))
		return 0;
	return words_refuse(w, i, "a number from %ju to %ju", (uintmax_t)min, (uintmax_t)max);
}

int words_byte(const struct word_line *w, unsigned i, uint8_t *byte)
{
	const char *word = i < w->count ? w->word[i] : "";

	if (strlen(word) != 2 || strspn(word, "0123456789abcdefABCDEF") != 2)
		return words_refuse(w, i, "a byte of two hexadecimal digits");
	*byte = (uint8_t)strtoul(word, NULL, 16);
	return 0;
}

int words_end(const struct word_line *w, unsigned i)
{
	return i < w->count ? words_refuse(w, i, "the end of the line") : 0;
}

int words_choice(const struct word_line *w, unsigned i, const char *const *names, unsigned count)
{
	char all[120] = "";

	for (unsigned k = 0; k < count; k++) {
		size_t used = strlen(all);

		if (i < w->count && strcmp(w->word[i], names[k]) == 0)
			return (int)k;
		snprintf(all + used, sizeof(all) - used, "%s%s",
			 k == 0		  ? ""
			 : k + 1 == count ? " or "
					  : ", ",
			 names[k]);
	}
	return words_refuse(w, i, "%s", all);
}

const char *words_rest(const struct word_line *w, unsigned i)
{
	return w->text + w->column[i < w->count ? i : w->count] - 1;
}

/* Cut a copy of the line in words. */
static int split_line(struct word_line *w, char *line)
{
	char *at = line;

	for (w->count = 0;; w->count++) {
		at += strspn(at, BLANKS);
		w->column[w->count] = (unsigned)(at - line) + 1;
		w->word[w->count] = "";
		if (!*at || *at == '#')
			return 0;
		w->word[w->count] = at;
		if (w->count == WORDS_IN_LINE) /* this one is shown, and is beyond the last */
			break;
		at += strcspn(at, BLANKS);
		if (*at)
			*at++ = '\0';
	}
	snprintf(w->why, WORDS_WHY, "%.80s:%u:%u: expected at most %d words", w->file, w->line,
		 w->column[WORDS_IN_LINE], WORDS_IN_LINE);
	return -EINVAL;
}

/* Take a line of so many bytes. */
static int take_line(struct word_line *w, char *line, size_t length, words_take *take, void *arg)
{
	char *copy;
	int ret;

	if (strlen(line) != length) {
		snprintf(w->why, WORDS_WHY, "%.80s:%u:%zu: expected text, found a NUL byte",
			 w->file, w->line, strlen(line) + 1);
		return -EINVAL;
	}
	line[strcspn(line, "\r\n")] = '\0';
	copy = strdup(line);
	if (!copy)
		return -ENOMEM;
	w->text = line;
	ret = split_line(w, copy);
	if (ret == 0 && w->count)
		ret = take(w, arg);
	free(copy);
	return ret;
}

int words_read(FILE *stream, const char *file, words_take *take, void *arg, char *why)
{
	struct word_line w = { .file = file, .why = why };
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	int ret = 0;

	why[0] = '\0';
	while (ret == 0 && (length = getline(&line, &room, stream)) > 0) {
		w.line++;
		ret = take_line(&w, line, (size_t)length, take, arg);
	}
	free(line);
	if (ret != 0)
		return ret;
	if (!feof(stream))
		return ferror(stream) ? -EIO : -ENOMEM;
	w.line++;
	w.count = 0;
	w.column[0] = 1;
	w.word[0] = w.text = "";
	return take(&w, arg);
}
