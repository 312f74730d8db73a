/* SPDX-License-Identifier: MIT */
/*
 * pprof's profile.proto, not compressed, which its readers take: so few fields that a library of
 * protocol buffers would be more to write. Calls are scaled up already.
 */
#include "probes/profile/write/write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "probes/text/demangle.h"
#include "probes/text/text.h"

enum wire {
	NUMBER = 0,
	BYTES = 2
};

/* The fields of a Profile that are written, and those of what stands in it. */
enum {
	SAMPLE_TYPE = 1,
	SAMPLE = 2,
	LOCATION = 4,
	FUNCTION = 5,
	STRING = 6,
	DURATION = 10,
};

/* Strings: none, these, then name and object of each function. */
enum {
	CALLS = 1,
	COUNT = 2,
	TIME = 3,
	NANOSECONDS = 4,
	NAMES = 5
};

struct message {
	FILE *out;
	char *bytes;
	size_t len;
};

static void put_number(FILE *out, uint64_t number)
{
	for (; number > 0x7f; number >>= 7)
		fputc((int)(number & 0x7f) | 0x80, out);
	fputc((int)number, out);
}

static void put_field(FILE *out, unsigned field, uint64_t number)
{
	put_number(out, field << 3 | NUMBER);
	put_number(out, number);
}

static void put_bytes(FILE *out, unsigned field, const void *bytes, size_t len)
{
	put_number(out, field << 3 | BYTES);
	put_number(out, len);
	fwrite(bytes, 1, len, out);
}

static int begin_message(struct message *message)
{
	message->out = open_memstream(&message->bytes, &message->len);
	return message->out ? 0 : -ENOMEM;
}

static void end_message(FILE *out, unsigned field, struct message *message)
{
	fclose(message->out);
	put_bytes(out, field, message->bytes, message->len);
	free(message->bytes);
}

static int put_fields(FILE *out, unsigned field, size_t n, const uint64_t *number)
{
	struct message message;

	if (begin_message(&message))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (number[i])
			put_field(message.out, (unsigned)i + 1, number[i]);
	end_message(out, field, &message);
	return 0;
}

/* A location per function, without address and line. */
static int put_function(FILE *out, size_t f)
{
	uint64_t function[] = { f + 1, NAMES + 3 * f, NAMES + 3 * f + 1, NAMES + 3 * f + 2 };
	struct message message;

	if (put_fields(out, FUNCTION, 4, function) || begin_message(&message))
		return -ENOMEM;
	put_field(message.out, 1, f + 1);
	put_fields(message.out, 4, 1, &function[0]);
	end_message(out, LOCATION, &message);
	return 0;
}

/* The innermost first; a value per type. Callers may be known by calls only, or by times. */
static int put_sample(FILE *out, const struct arc *arc, bool timed)
{
	uint64_t calls = (uint64_t)(arc->calls + 0.5);
	uint64_t time = timed ? (uint64_t)(arc->seconds * 1e9 + 0.5) : 0;
	struct message message;

	if (!calls && !time)
		return 0;
	if (begin_message(&message))
		return -ENOMEM;
	put_field(message.out, 1, arc->to + 1);
	if (arc->from != NO_CALLER)
		put_field(message.out, 1, arc->from + 1);
	put_field(message.out, 2, calls);
	if (timed)
		put_field(message.out, 2, time);
	end_message(out, SAMPLE, &message);
	return 0;
}

/* They are UTF-8. */
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
	static const char *const first[NAMES] = {
		"",
		[CALLS] = "calls",
		[COUNT] = "count",
		[TIME] = "time",
		[NANOSECONDS] = "nanoseconds",
	};
	int ret = put_fields(out, SAMPLE_TYPE, 2, (uint64_t[]){ CALLS, COUNT });
	bool timed = profile_timed(profile);

	/* Readers show the last one first. */
	if (timed && !ret)
		ret = put_fields(out, SAMPLE_TYPE, 2, (uint64_t[]){ TIME, NANOSECONDS });
	for (size_t i = 0; i < profile->arcs && !ret; i++)
		ret = put_sample(out, &profile->arc[i], timed);
	for (size_t f = 0; f < profile->functions && !ret; f++)
		ret = put_function(out, f);
	for (size_t i = 0; i < NAMES && !ret; i++)
		ret = put_string(out, first[i]);
	for (size_t f = 0; f < profile->functions && !ret; f++) {
		ret = put_string(out, name_for_people(profile->function[f].name, true));
		if (!ret)
			ret = put_string(out, profile->function[f].name);
		if (!ret)
			ret = put_string(out, profile->function[f].object);
	}
	put_field(out, DURATION, (uint64_t)(profile->quality.seconds * 1e9));
	return ferror(out) ? -EIO : ret;
}
