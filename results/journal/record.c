/* SPDX-License-Identifier: MIT */
/*
 * One cell and its outcome as a JSON object, and back.
 *
 * The numbers are described by tables that both directions walk, so that what
 * is written and what is read can never disagree.
 */
#include <errno.h>
#include <string.h>

#include "results/journal/journal.h"
#include "results/journal/json_text.h"

#define COMMAND_MAX   1024
#define LINUX_ERRORS  4095 /* MAX_ERRNO */
#define LINUX_SIGNALS 64

enum number {
	NUMBER_UNSIGNED,
	NUMBER_INT,
	NUMBER_COUNT,	/* uint64_t, but only 63 bits: JSON integers are signed here */
	NUMBER_SIGNED,	/* int64_t */
	NUMBER_REAL,	/* double, finite and not negative */
	NUMBER_WITNESS, /* a count, or null for WITNESS_UNKNOWN */
	NUMBER_MEASURE, /* a real, or null for a negative one */
	NUMBER_END
};

/* A line of a schema before `since` does not have the field. */
struct field {
	const char *name;
	size_t offset;
	enum number type;
	int since;
	json_int_t min, max;
	bool optional; /* came without a new schema: a line that does not have it is good */
};

/* clang-format off */
#define BOUNDED(type, name, member, since, number, min, max) \
	{name, offsetof(type, member), number, since, min, max, false}
#define OPTIONAL(type, name, member, number, max) \
	{name, offsetof(type, member), number, 2, 0, max, true}
#define COUNT(type, name, member, since) \
	BOUNDED(type, name, member, since, NUMBER_COUNT, 0, INT64_MAX)
#define SIGNED(type, name, member, since) \
	BOUNDED(type, name, member, since, NUMBER_SIGNED, INT64_MIN, INT64_MAX)
#define REAL(type, name, member, since) BOUNDED(type, name, member, since, NUMBER_REAL, 0, 0)
#define WITNESS(name, member, since) \
	BOUNDED(struct witness, name, member, since, NUMBER_WITNESS, 0, INT64_MAX)
#define MEASURE(name, member, since) \
	BOUNDED(struct witness, name, member, since, NUMBER_MEASURE, 0, 0)
#define END {NULL, 0, NUMBER_END, 0, 0, 0, false}

static const struct field cell_fields[] = {
	BOUNDED(struct cell, "split", split, 1, NUMBER_UNSIGNED, 1, 4),
	BOUNDED(struct cell, "executors", executors, 1, NUMBER_UNSIGNED, 1,
		PLACEMENT_EXECUTORS_MAX),
	COUNT(struct cell, "first_wait", first_wait, 1),
	COUNT(struct cell, "second_wait", second_wait, 1),
	COUNT(struct cell, "stretch", stretch, 2),
	COUNT(struct cell, "rest", rest, 1),
	BOUNDED(struct cell, "loop", loop, 2, NUMBER_UNSIGNED, 0, CELL_LOOP_MAX),
	COUNT(struct cell, "toggles", toggles, 1),
	REAL(struct cell, "seconds", seconds, 1),
	COUNT(struct cell, "stop_tears", stop_tears, 1),
	COUNT(struct cell, "seed", seed, 1),
	OPTIONAL(struct cell, "place", place, NUMBER_COUNT, INT64_MAX),
	END
};

static const struct field result_fields[] = {
	BOUNDED(struct cell_result, "signal", signal, 1, NUMBER_INT, 0, LINUX_SIGNALS),
	BOUNDED(struct cell_result, "error", error, 1, NUMBER_INT, -LINUX_ERRORS, 0),
	COUNT(struct cell_result, "toggles", toggles, 1),
	OPTIONAL(struct cell_result, "exposed", exposed, NUMBER_WITNESS, INT64_MAX),
	OPTIONAL(struct cell_result, "torn", torn, NUMBER_WITNESS, INT64_MAX),
	COUNT(struct cell_result, "executions", executions, 1),
	COUNT(struct cell_result, "old", old_new[0], 1),
	COUNT(struct cell_result, "new", old_new[1], 1),
	COUNT(struct cell_result, "traps", traps, 1),
	COUNT(struct cell_result, "retries", retries, 1),
	COUNT(struct cell_result, "ticks", ticks, 1),
	OPTIONAL(struct cell_result, "front_frame", frame[0], NUMBER_COUNT, INT64_MAX),
	OPTIONAL(struct cell_result, "back_frame", frame[1], NUMBER_COUNT, INT64_MAX),
	REAL(struct cell_result, "seconds", seconds, 1),
	END
};

static const struct field tear_fields[] = {
	COUNT(struct cell_result, "old_front_new_back", tears[TEAR_OLD_FRONT], 1),
	COUNT(struct cell_result, "new_front_old_back", tears[TEAR_NEW_FRONT], 1),
	COUNT(struct cell_result, "other", tears[TEAR_OTHER], 1),
	END
};

static const struct field latency_fields[] = {
	COUNT(struct latency, "median", median, 2),
	COUNT(struct latency, "p99", p99, 2),
	COUNT(struct latency, "max", max, 2),
	END
};

static const struct field event_fields[] = {
	COUNT(struct tear_event, "toggle", toggle, 2),
	COUNT(struct tear_event, "tsc", tsc, 2),
	SIGNED(struct tear_event, "after_int3", after_int3, 2),
	SIGNED(struct tear_event, "after_front", after_front, 2),
	COUNT(struct tear_event, "int3_latency", latency[0], 2),
	COUNT(struct tear_event, "back_latency", latency[1], 2),
	COUNT(struct tear_event, "front_latency", latency[2], 2),
	COUNT(struct tear_event, "first_waited", waited[0], 2),
	COUNT(struct tear_event, "second_waited", waited[1], 2),
	COUNT(struct tear_event, "first_step", step[0], 2),
	COUNT(struct tear_event, "second_step", step[1], 2),
	BOUNDED(struct tear_event, "executor", executor, 2, NUMBER_UNSIGNED, 0,
		PLACEMENT_EXECUTORS_MAX - 1),
	END
};

static const struct field witness_fields[] = {
	WITNESS("voluntary", voluntary, 1),
	WITNESS("involuntary", involuntary, 1),
	WITNESS("minor_faults", minor_faults, 2),
	WITNESS("major_faults", major_faults, 1),
	WITNESS("interrupts", interrupts, 2),
	WITNESS("smis", smis, 2),
	WITNESS("throttles", throttles, 2),
	WITNESS("tsc_jumps", tsc_jumps, 2),
	WITNESS("longest_step", longest_step, 2),
	SIGNED(struct witness, "offset", offset, 2),
	WITNESS("offset_error", offset_error, 2),
	MEASURE("clock_before", clock[0], 2),
	MEASURE("clock_after", clock[1], 2),
	MEASURE("steal", steal, 1),
	MEASURE("load", load, 1),
	END
};
/* clang-format on */

static json_t *count_to_json(uint64_t count)
{
	return json_integer((json_int_t)count);
}

static json_t *number_to_json(const struct field *f, const void *base)
{
	const char *at = (const char *)base + f->offset;

	switch (f->type) {
	case NUMBER_UNSIGNED:
		return json_integer(*(const unsigned *)at);
	case NUMBER_INT:
		return json_integer(*(const int *)at);
	case NUMBER_COUNT:
		return count_to_json(*(const uint64_t *)at);
	case NUMBER_SIGNED:
		return json_integer(*(const int64_t *)at);
	case NUMBER_REAL:
		return json_real(*(const double *)at);
	case NUMBER_WITNESS:
		return *(const uint64_t *)at == WITNESS_UNKNOWN
			       ? json_null()
			       : count_to_json(*(const uint64_t *)at);
	case NUMBER_MEASURE:
		return *(const double *)at < 0 ? json_null() : json_real(*(const double *)at);
	default:
		return NULL;
	}
}

/* Adds the table's members to object. */
static int numbers_to_json(json_t *object, const struct field *f, const void *base)
{
	for (; f->name; f++)
		if (json_object_set_new(object, f->name, number_to_json(f, base)))
			return -EINVAL;
	return 0;
}

static int real_from_json(const json_t *value, double *to)
{
	double real = json_number_value(value);

	if (!json_is_number(value) || real < 0)
		return -EINVAL;
	*to = real;
	return 0;
}

static int integer_from_json(const json_t *value, const struct field *f, void *at)
{
	json_int_t integer = json_integer_value(value);

	if (!json_is_integer(value) || integer < f->min || integer > f->max)
		return -EINVAL;
	if (f->type == NUMBER_UNSIGNED)
		*(unsigned *)at = (unsigned)integer;
	else if (f->type == NUMBER_INT)
		*(int *)at = (int)integer;
	else if (f->type == NUMBER_SIGNED)
		*(int64_t *)at = integer;
	else
		*(uint64_t *)at = (uint64_t)integer;
	return 0;
}

static int number_from_json(const json_t *value, const struct field *f, void *base)
{
	char *at = (char *)base + f->offset;

	if (f->type == NUMBER_WITNESS && json_is_null(value))
		*(uint64_t *)at = WITNESS_UNKNOWN;
	else if (f->type == NUMBER_MEASURE && json_is_null(value))
		*(double *)at = -1;
	else if (f->type == NUMBER_REAL || f->type == NUMBER_MEASURE)
		return real_from_json(value, (double *)at);
	else
		return integer_from_json(value, f, at);
	return 0;
}

/* What a line of an old schema does not tell is zero, or unknown where there is such a thing. */
static void number_missing(const struct field *f, void *base)
{
	char *at = (char *)base + f->offset;

	if (f->type == NUMBER_WITNESS)
		*(uint64_t *)at = WITNESS_UNKNOWN;
	else if (f->type == NUMBER_MEASURE)
		*(double *)at = -1;
}

static int numbers_from_json(const json_t *object, int schema, const struct field *f, void *base)
{
	for (; f->name; f++) {
		const json_t *value = json_object_get(object, f->name);

		if (f->since > schema || (f->optional && !value))
			number_missing(f, base);
		else if (number_from_json(value, f, base))
			return -EINVAL;
	}
	return 0;
}

static int text_from_json(const json_t *object, const char *name, char *to, size_t size)
{
	return text_take(json_string_value(json_object_get(object, name)), to, size);
}

static int name_from_json(const json_t *object, const char *name, int (*parse)(const char *))
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? parse(text) : -EINVAL;
}

/* The name functions index their tables without looking. */
static bool cell_has_names(const struct cell *c)
{
	return c->placement < PLACEMENT_COUNT && c->crossing < CROSSING_COUNT &&
	       c->pair < PAIR_COUNT && c->protocol < PROTOCOL_COUNT && c->oracle < ORACLE_KINDS &&
	       !(c->provokers & ~PROVOKERS_ALL);
}

static json_t *cell_to_json(const struct cell *c)
{
	char provokers[PROVOKERS_MAX];
	json_t *object;

	if (!cell_has_names(c))
		return NULL;
	object = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "placement",
			   placement_name(c->placement), "crossing", crossing_name(c->crossing),
			   "pair", pair_name(c->pair), "protocol", protocol_name(c->protocol),
			   "oracle", oracle_name(c->oracle), "provokers",
			   provokers_name(c->provokers, provokers), "swap", c->swap);
	if (!object || numbers_to_json(object, cell_fields, c)) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static int cell_from_json(const json_t *object, int schema, struct cell *c)
{
	int placement = name_from_json(object, "placement", placement_parse);
	int crossing = name_from_json(object, "crossing", crossing_parse);
	int pair = name_from_json(object, "pair", pair_parse);
	int protocol = name_from_json(object, "protocol", protocol_parse);
	int oracle = name_from_json(object, "oracle", oracle_parse);
	int provokers = schema < 2 ? 0 : name_from_json(object, "provokers", provokers_parse);
	const json_t *swap = json_object_get(object, "swap");

	if (placement < 0 || crossing < 0 || pair < 0 || protocol < 0 || oracle < 0 ||
	    provokers < 0 || (swap && !json_is_boolean(swap)))
		return -EINVAL;
	c->placement = (enum placement)placement;
	c->crossing = (enum crossing)crossing;
	c->pair = (enum code_pair)pair;
	c->protocol = (enum protocol)protocol;
	c->oracle = (enum oracle)oracle;
	c->provokers = (unsigned)provokers;
	c->swap = json_is_true(swap);
	return numbers_from_json(object, schema, cell_fields, c);
}

static json_t *cpus_to_json(const struct seating *s)
{
	json_t *list = json_array();

	if (s->executors > PLACEMENT_EXECUTORS_MAX) {
		json_decref(list);
		return NULL;
	}
	for (unsigned i = 0; i < s->executors; i++)
		json_array_append_new(list, json_integer(s->executor[i]));
	return json_pack("{s:I, s:o}", "patcher", (json_int_t)s->patcher, "executors", list);
}

static int cpu_from_json(const json_t *value, unsigned *cpu)
{
	json_int_t integer = json_integer_value(value);

	if (!json_is_integer(value) || integer < 0 || integer > UINT32_MAX)
		return -EINVAL;
	*cpu = (unsigned)integer;
	return 0;
}

static int cpus_from_json(const json_t *object, struct seating *s)
{
	const json_t *list = json_object_get(object, "executors");
	size_t count = json_array_size(list);

	if (!json_is_array(list) || count > PLACEMENT_EXECUTORS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < count; i++)
		if (cpu_from_json(json_array_get(list, i), &s->executor[i]))
			return -EINVAL;
	s->executors = (unsigned)count;
	return cpu_from_json(json_object_get(object, "patcher"), &s->patcher);
}

/* An object of the numbers that a table describes. */
static json_t *table_to_json(const struct field *fields, const void *base)
{
	json_t *object = json_object();

	if (numbers_to_json(object, fields, base)) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *event_to_json(const struct tear_event *e)
{
	json_t *object = e->kind < TEAR_KINDS ? table_to_json(event_fields, e) : NULL;

	if (object)
		json_object_set_new(object, "kind", json_string(tear_kind_name(e->kind)));
	return object;
}

static json_t *events_to_json(const struct cell_result *r)
{
	json_t *list = r->events <= TEAR_EVENTS_MAX ? json_array() : NULL;

	for (unsigned i = 0; list && i < r->events; i++) {
		if (json_array_append_new(list, event_to_json(&r->event[i]))) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static int event_from_json(const json_t *object, int schema, struct tear_event *e)
{
	int kind = name_from_json(object, "kind", tear_kind_parse);

	if (kind < 0)
		return -EINVAL;
	e->kind = (enum tear_kind)kind;
	return numbers_from_json(object, schema, event_fields, e);
}

static int events_from_json(const json_t *list, int schema, struct cell_result *r)
{
	size_t count = json_array_size(list);

	if (schema < 2)
		return 0;
	if (!json_is_array(list) || count > TEAR_EVENTS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < count; i++)
		if (event_from_json(json_array_get(list, i), schema, &r->event[i]))
			return -EINVAL;
	r->events = (unsigned)count;
	return 0;
}

static json_t *result_to_json(const struct cell_result *r)
{
	const char *outcome = r->outcome < OUTCOME_COUNT ? outcome_name(r->outcome) : NULL;
	json_t *object = json_pack(
		"{s:s, s:o, s:o, s:o}", "outcome", outcome, "tears", table_to_json(tear_fields, r),
		"latency", table_to_json(latency_fields, &r->latency), "events", events_to_json(r));

	if (!object || numbers_to_json(object, result_fields, r)) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static int result_from_json(const json_t *object, int schema, struct cell_result *r)
{
	const json_t *tears = json_object_get(object, "tears");
	const json_t *latency = json_object_get(object, "latency");
	int outcome = name_from_json(object, "outcome", outcome_parse);

	if (outcome < 0)
		return -EINVAL;
	r->outcome = (enum outcome)outcome;
	if (numbers_from_json(object, schema, result_fields, r) ||
	    numbers_from_json(tears, schema, tear_fields, r) ||
	    numbers_from_json(latency, schema, latency_fields, &r->latency))
		return -EINVAL;
	return events_from_json(json_object_get(object, "events"), schema, r);
}

static json_t *witness_to_json(const struct witness *w)
{
	return table_to_json(witness_fields, w);
}

static json_t *line_to_json(const struct cell_record *record)
{
	char command[COMMAND_MAX];
	int length;

	if (!cell_has_names(&record->cell))
		return NULL;
	length = cell_command(&record->cell, command, sizeof(command));
	if (length < 0 || (size_t)length >= sizeof(command))
		return NULL;
	/* json_pack() gives NULL, and frees the others, if any part is NULL. */
	return json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:b, s:o, s:o, s:o, s:o}", "type", "cell",
			 "schema", JOURNAL_SCHEMA, "stage", record->stage, "key", record->key,
			 "date", record->date, "command", command, "noisy", record->noisy, "cell",
			 cell_to_json(&record->cell), "cpus", cpus_to_json(&record->result.seating),
			 "result", result_to_json(&record->result), "witness",
			 witness_to_json(&record->result.witness));
}

json_t *record_to_json(const struct cell_record *record)
{
	struct cell_record back;
	json_t *line = line_to_json(record);

	/* What could not be read back must not be written. */
	if (line && record_from_json(line, &back)) {
		json_decref(line);
		return NULL;
	}
	return line;
}

static int noisy_from_json(const json_t *value, int schema, struct cell_record *record)
{
	if (schema < 2)
		return 0;
	record->noisy = json_is_true(value);
	return json_is_boolean(value) ? 0 : -EINVAL;
}

int record_from_json(const json_t *line, struct cell_record *record)
{
	struct cell_result *result = &record->result;
	int schema = (int)json_integer_value(json_object_get(line, "schema"));

	memset(record, 0, sizeof(*record));
	if (text_from_json(line, "stage", record->stage, sizeof(record->stage)) ||
	    text_from_json(line, "key", record->key, sizeof(record->key)) ||
	    text_from_json(line, "date", record->date, sizeof(record->date)) ||
	    noisy_from_json(json_object_get(line, "noisy"), schema, record) ||
	    cell_from_json(json_object_get(line, "cell"), schema, &record->cell) ||
	    cpus_from_json(json_object_get(line, "cpus"), &result->seating) ||
	    result_from_json(json_object_get(line, "result"), schema, result) ||
	    numbers_from_json(json_object_get(line, "witness"), schema, witness_fields,
			      &result->witness))
		return -EINVAL;
	result->seating.placement = record->cell.placement;
	return 0;
}
