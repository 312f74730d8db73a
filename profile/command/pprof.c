/* SPDX-License-Identifier: MIT */
/*
 * pprof's profile.proto, not compressed, which its readers take. It has so few fields that a
 * library of protocol buffers would be more code.
 */
#include "profile/command/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/text.h"

#define NUMBER 0
#define BYTES  2

/* Fields of a Profile. */
enum {
	SAMPLE_TYPE = 1,
	SAMPLE = 2,
	LOCATION = 4,
	FUNCTION = 5,
	STRING = 6,
	DURATION = 10,
};

/* Strings: none, these, then name and object of each function. */
#define CALLS	    1
#define COUNT	    2
#define TIME	    3
#define NANOSECONDS 4
#define NAMES	    5

/* Four fields at most. */
struct message {
	uint8_t bytes[64];
	size_t len;
};

static void add_number(struct message *message, uint64_t number)
{
	for (; number > 0x7f; number >>= 7)
		message->bytes[message->len++] = (uint8_t)(number | 0x80);
	message->bytes[message->len++] = (uint8_t)number;
}

static void add_field(struct message *message, unsigned field, uint64_t number)
{
	add_number(message, field << 3 | NUMBER);
	add_number(message, number);
}

static void put_bytes(FILE *out, unsigned field, const void *bytes, size_t len)
{
	struct message head = { .len = 0 };

	add_number(&head, field << 3 | BYTES);
	add_number(&head, len);
	fwrite(head.bytes, 1, head.len, out);
	fwrite(bytes, 1, len, out);
}

/* A message of numbers, with fields from 1 on. */
static void put_fields(FILE *out, unsigned field, unsigned n, const uint64_t *number)
{
	struct message message = { .len = 0 };

	for (unsigned i = 0; i < n; i++)
		add_field(&message, i + 1, number[i]);
	put_bytes(out, field, message.bytes, message.len);
}

/* A location per function, without address; of its line the function alone is known. */
static void put_function(FILE *out, size_t f)
{
	uint64_t function[] = { f + 1, NAMES + 3 * f, NAMES + 3 * f + 1, NAMES + 3 * f + 2 };
	struct message location = { .len = 0 }, line = { .len = 0 };

	put_fields(out, FUNCTION, 4, function);
	add_field(&line, 1, f + 1);
	add_field(&location, 1, f + 1);
	add_number(&location, 4 << 3 | BYTES);
	add_number(&location, line.len);
	memcpy(location.bytes + location.len, line.bytes, line.len);
	location.len += line.len;
	put_bytes(out, LOCATION, location.bytes, location.len);
}

/*
 * Locations, the innermost first, then a value per type. An arc may have calls only, or time only.
 */
static void put_sample(FILE *out, const struct arc *arc, bool timed)
{
	uint64_t calls = (uint64_t)(arc->calls + 0.5);
	uint64_t time = timed ? (uint64_t)(arc->seconds * 1e9 + 0.5) : 0;
	struct message message = { .len = 0 };

	if (!calls && !time)
		return;
	add_field(&message, 1, arc->to + 1);
	if (arc->from != NO_CALLER)
		add_field(&message, 1, arc->from + 1);
	add_field(&message, 2, calls);
	if (timed)
		add_field(&message, 2, time);
	put_bytes(out, SAMPLE, message.bytes, message.len);
}

/* Strings are UTF-8. */
static int put_string(FILE *out, const char *name)
{
	char *string = text_utf8(name);

	if (!string)
		return -ENOMEM;
	put_bytes(out, STRING, string, strlen(string));
	free(string);
	return 0;
}

int write_pprof(const struct profile *profile, FILE *out)
{
	static const char *const first[NAMES] = { "", "calls", "count", "time", "nanoseconds" };
	bool timed = profile_has_times(profile);
	struct message duration = { .len = 0 };
	int ret = 0;

	put_fields(out, SAMPLE_TYPE, 2, (uint64_t[]){ CALLS, COUNT });
	/* Readers show the last one first. */
	if (timed)
		put_fields(out, SAMPLE_TYPE, 2, (uint64_t[]){ TIME, NANOSECONDS });
	for (size_t i = 0; i < profile->arcs; i++)
		put_sample(out, &profile->arc[i], timed);
	for (size_t f = 0; f < profile->functions; f++)
		put_function(out, f);
	for (size_t i = 0; i < NAMES && !ret; i++)
		ret = put_string(out, first[i]);
	for (size_t f = 0; f < profile->functions && !ret; f++) {
		const struct function *function = &profile->function[f];
		const char *const names[] = { name_for_people(function->name, true), function->name,
					      function->object };

		for (size_t i = 0; i < 3 && !ret; i++)
			ret = put_string(out, names[i]);
	}
	add_field(&duration, DURATION, (uint64_t)(profile->quality.seconds * 1e9));
	fwrite(duration.bytes, 1, duration.len, out);
	return ret;
}
