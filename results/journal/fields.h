/* SPDX-License-Identifier: MIT */
/*
 * Tables of a struct's members by their names in JSON. Writer and reader walk the same table, so
 * that what is written and what is read can never disagree.
 */
#ifndef RESULTS_JOURNAL_FIELDS_H
#define RESULTS_JOURNAL_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

enum number {
	NUMBER_UNSIGNED,
	NUMBER_INT,
	NUMBER_COUNT,	/* int64_t, or uint64_t of 63 bits: JSON integers are signed here */
	NUMBER_REAL,	/* double, finite and not negative */
	NUMBER_WITNESS, /* a count, or null for WITNESS_UNKNOWN */
	NUMBER_MEASURE, /* a real, or null for a negative one */
	NUMBER_SEED,	/* uint64_t, as a string: seed_to_json() */
	NUMBER_NAME,	/* an enum, by its names */
	NUMBER_PRESENT, /* double, left out where it is NAN; "inf", "-inf" */
	NUMBER_WORDS,	/* char[max]; empty: min is 1: never; 0: then it is left out; -1: as any */
	NUMBER_FLAG,	/* bool */
	NUMBER_PROVOKERS, /* their mask, by its names */
	NUMBER_CPUS,	  /* struct seating, but for its placement */
	NUMBER_TABLE,	  /* an object of its own; an optional one is left out where it is empty */
	NUMBER_END
};

struct field {
	const char *name;
	size_t offset;
	enum number type;
	json_int_t min, max;
	bool optional;				/* a line that does not have it is good */
	const char *(*name_of)(unsigned value); /* of those below max */
	int (*parse)(const char *name);
	const struct field *table;
	/* Its name in other outputs; NULL: they do not have it. */
	const char *conf;  /* key in machine.conf */
	const char *title; /* of its column, in a table for people */
};

/* clang-format off */
#define BOUNDED(type, name, member, number, min, max) \
	{name, offsetof(type, member), number, min, max, false, NULL, NULL, NULL, NULL, NULL}
#define OPTIONAL(type, name, member, number, max) \
	{name, offsetof(type, member), number, 0, max, true, NULL, NULL, NULL, NULL, NULL}
#define NAME(type, name, member, count, name_of, parse) \
	{name, offsetof(type, member), NUMBER_NAME, 0, (count) - 1, false, name_of, parse, NULL, \
	 NULL, NULL}
#define TABLE(type, name, member, optional, table) \
	{name, offsetof(type, member), NUMBER_TABLE, 0, 0, optional, NULL, NULL, table, NULL, NULL}
#define OTHER(type, name, member, number, optional) \
	{name, offsetof(type, member), number, 0, 0, optional, NULL, NULL, NULL, NULL, NULL}
#define COUNT(type, name, member) BOUNDED(type, name, member, NUMBER_COUNT, 0, INT64_MAX)
#define SIGNED(type, name, member) BOUNDED(type, name, member, NUMBER_COUNT, INT64_MIN, INT64_MAX)
#define REAL(type, name, member) BOUNDED(type, name, member, NUMBER_REAL, 0, 0)
#define WITNESS(name, member) BOUNDED(struct witness, name, member, NUMBER_WITNESS, 0, INT64_MAX)
#define MEASURE(name, member) BOUNDED(struct witness, name, member, NUMBER_MEASURE, 0, 0)
#define PRESENT(type, name, member) BOUNDED(type, name, member, NUMBER_PRESENT, 0, 0)
#define TEXT(type, name, member, min) \
	BOUNDED(type, name, member, NUMBER_WORDS, min, sizeof(((type *)0)->member))
#define END {NULL, 0, NUMBER_END, 0, 0, false, NULL, NULL, NULL, NULL, NULL}
/* clang-format on */

extern const struct field witness_fields[]; /* of struct witness */

/* table_to_json - an object; NULL for what no reader would take. */
json_t *table_to_json(const struct field *fields, const void *base);

/* real_to_json, real_from_json - as NUMBER_PRESENT. NULL: NAN, or out of memory. 0 or -EINVAL. */
json_t *real_to_json(double x);
int real_from_json(const json_t *json, double *x);

/* table_from_json - 0, or -EINVAL with base half filled. */
int table_from_json(const json_t *object, const struct field *fields, void *base);

#endif
