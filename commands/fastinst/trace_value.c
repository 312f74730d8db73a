/* SPDX-License-Identifier: MIT */
/* Values of arguments and results, from recorded registers and memory, as text and as JSON. */
#include "commands/fastinst/trace.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/command/command.h"

#define NUMBER_BYTES 48

__extension__ typedef unsigned __int128 wide;

/* --- Words ------------------------------------------------------------------------------------ */

static bool word_of(const struct trace_event *event, unsigned reg, uint64_t *word)
{
	const uint64_t *from = event->value;
	unsigned n = event->values;

	if (reg >= SOURCE_MEMORY) {
		from = event->memory;
		n = event->words;
		reg -= SOURCE_MEMORY;
	} else if (reg >= SOURCE_VECTOR) {
		from = event->value + event->values;
		n = event->vectors;
		reg -= SOURCE_VECTOR;
	}
	*word = reg < n ? from[reg] : 0;
	return reg < n;
}

/* The bits of the i-th element, with others above. False: not all of them were recorded. */
static bool bits_of(const struct trace_event *event, const struct source_value *value, unsigned i,
		    wide *bits)
{
	unsigned from = value->shift + i * value->bits, shift = from % 64;
	unsigned last = (from + value->bits - 1) / 64 - from / 64;
	uint64_t word[3] = { 0 };

	if (value->form == SOURCE_OTHER)
		return false;
	for (unsigned k = 0; k <= last; k++)
		if (!word_of(event, source_word(value, from / 64 + k), &word[k]))
			return false;
	*bits = ((wide)word[1] << 64 | word[0]) >> shift;
	if (shift)
		*bits |= (wide)word[2] << (128 - shift);
	return true;
}

static bool is_char(const struct source_value *value)
{
	return value->form == SOURCE_CHAR || value->form == SOURCE_BYTE;
}

static bool is_signed(const struct source_value *value)
{
	return value->form == SOURCE_SIGNED || value->form == SOURCE_CHAR;
}

/* Cuts off bits above the value, and extends its sign. */
static wide cut_to(wide bits, const struct source_value *value)
{
	unsigned unused = 128u - value->bits;
	__extension__ __int128 cut = (__int128)(bits << unused);

	return is_signed(value) ? (wide)(cut >> unused) : bits << unused >> unused;
}

/* Index of the string that the i-th pointer leads to; RING_STRINGS: none was recorded. */
static unsigned string_of(const struct trace_event *event, const struct source_value *value,
			  unsigned i)
{
	unsigned string = RING_STRINGS, reg = source_word(value, i);

	if (value->form != SOURCE_STRING || value->shift)
		return RING_STRINGS;
	if (reg < RING_FIRST)
		string = reg;
	else if (reg >= SOURCE_MEMORY && reg < SOURCE_MEMORY + RING_POINTED)
		string = RING_FIRST + reg - SOURCE_MEMORY;
	return string < RING_STRINGS && event->string[string] ? string : RING_STRINGS;
}

/* --- Numbers ---------------------------------------------------------------------------------- */

static const char *digits_of(char text[NUMBER_BYTES], wide number, bool with_sign)
{
	bool is_below = with_sign && number >> 127;
	char *at = text + NUMBER_BYTES - 1;

	*at = '\0';
	if (is_below)
		number = -number;
	do
		*--at = (char)('0' + (int)(number % 10));
	while (number /= 10);
	if (is_below)
		*--at = '-';
	return at;
}

static long double read_float(const char *text, unsigned bits)
{
	return bits == 32   ? (long double)strtof(text, NULL)
	       : bits == 64 ? (long double)strtod(text, NULL)
			    : strtold(text, NULL);
}

/* The fewest digits that read back as the same number. "?": a long double whose explicit integer
 * bit contradicts its exponent. */
static const char *float_text(char text[NUMBER_BYTES], wide bits, const struct source_value *value)
{
	const union {
		wide bits;
		float single;
		double twice;
		long double all;
	} of = { .bits = bits };
	int digits = value->bits == 32 ? 6 : value->bits == 64 ? 15 : 18, most = digits + 3;
	long double number = value->bits == 32	 ? (long double)of.single
			     : value->bits == 64 ? (long double)of.twice
						 : of.all;

	if (value->bits == 128 && !(bits >> 64 & 0x7fff) != !(bits >> 63 & 1))
		return "?";
	do
		snprintf(text, NUMBER_BYTES, "%.*Lg", digits, number);
	while (digits++ < most && islessgreater(read_float(text, value->bits), number));
	return text;
}

/* --- Text ------------------------------------------------------------------------------------- */

static void put_string(FILE *out, const char *text, bool cut)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if (*text == '\n')
			fputs("\\n", out);
		else if (iscntrl((unsigned char)*text))
			fprintf(out, "\\x%02x", (unsigned char)*text);
		else
			fputc(*text, out);
	}
	fputs(cut ? "\"..." : "\"", out);
}

/* The i-th element as text; with @chars, one of char as a character. "?": it was not recorded. */
static const char *one_text(char text[NUMBER_BYTES], const struct trace_event *event,
			    const struct source_value *value, unsigned i, bool chars)
{
	wide bits;

	if (!bits_of(event, value, i, &bits))
		return "?";
	bits = cut_to(bits, value);
	if (value->form == SOURCE_FLOAT)
		return float_text(text, bits, value);
	if (value->form == SOURCE_BOOL)
		return bits ? "true" : "false";
	if (chars && is_char(value) && bits >= ' ' && bits < 127)
		snprintf(text, NUMBER_BYTES, "'%c'", (int)bits);
	else if (value->form == SOURCE_POINTER || value->form == SOURCE_STRING)
		snprintf(text, NUMBER_BYTES, "0x%" PRIx64, (uint64_t)bits);
	else
		return digits_of(text, bits, is_signed(value));
	return text;
}

static void put_one(FILE *out, const struct trace_event *event, const struct source_value *value,
		    unsigned i)
{
	unsigned string = string_of(event, value, i);
	char text[NUMBER_BYTES];

	if (string < RING_STRINGS)
		put_string(out, event->string[string], event->cut[string]);
	else
		fputs(one_text(text, event, value, i, true), out);
}

/* An array of characters as a string. False: not all of it was recorded. */
static bool chars_of(char text[UINT8_MAX + 1], const struct trace_event *event,
		     const struct source_value *value)
{
	memset(text, 0, UINT8_MAX + 1);
	for (unsigned i = 0; i < value->count; i++) {
		wide bits;

		if (!bits_of(event, value, i, &bits))
			return false;
		text[i] = (char)bits;
	}
	return true;
}

static bool is_text(const struct source_value *value)
{
	return value->count && is_char(value);
}

void value_put(FILE *out, const struct trace_event *event, const struct source_value *value)
{
	char text[UINT8_MAX + 1];

	if (value->form == SOURCE_MORE) {
		fputs("...", out);
	} else if (is_text(value) && chars_of(text, event, value)) {
		put_string(out, text, value_is_cut(event, value));
	} else if (!value->count) {
		put_one(out, event, value, 0);
	} else {
		for (unsigned i = 0; i < value->count; i++) {
			fputs(i ? ", " : "[", out);
			put_one(out, event, value, i);
		}
		fputs(value->cut ? ", ...]" : "]", out);
	}
}

bool value_is_cut(const struct trace_event *event, const struct source_value *value)
{
	unsigned string = string_of(event, value, 0);
	char text[UINT8_MAX + 1];

	if (value->form == SOURCE_MORE)
		return true;
	if (is_text(value))
		return value->cut && chars_of(text, event, value) && strlen(text) == value->count;
	return value->count ? value->cut : string < RING_STRINGS && event->cut[string];
}

/* --- JSON ------------------------------------------------------------------------------------- */

/*
 * A string where JSON has no such number, or a reader with doubles would round it, as most do with
 * addresses.
 */
static json_t *one_json(const struct trace_event *event, const struct source_value *value,
			unsigned i)
{
	unsigned string = string_of(event, value, i);
	bool is_real = value->form == SOURCE_FLOAT;
	char room[NUMBER_BYTES];
	const char *text = one_text(room, event, value, i, false);
	json_t *number = NULL;

	if (string < RING_STRINGS)
		return name_json(event->string[string]);
	if (*text == '?')
		return json_null();
	if (!is_real || value->bits < 128 ||
	    !islessgreater((long double)strtod(text, NULL), strtold(text, NULL)))
		number = json_loads(text, JSON_DECODE_ANY | (is_real ? JSON_DECODE_INT_AS_REAL : 0),
				    NULL);
	return number ? number : json_string(text);
}

json_t *value_json(const struct trace_event *event, const struct source_value *value)
{
	char text[UINT8_MAX + 1];
	json_t *array;

	if (value->form == SOURCE_MORE)
		return json_null();
	if (is_text(value) && chars_of(text, event, value))
		return name_json(text);
	if (!value->count)
		return one_json(event, value, 0);
	array = json_array();
	for (unsigned i = 0; i < value->count; i++)
		json_array_append_new(array, one_json(event, value, i));
	return array;
}
