/* SPDX-License-Identifier: MIT */
/*
 * One cell and its outcome as a JSON object, and back.
 *
 * The numbers are described by tables that both directions walk, so that what
 * is written and what is read can never disagree.
 */
#include <errno.h>
#include <string.h>

#include "results/journal.h"

#define COMMAND_MAX   1024
#define LINUX_ERRORS  4095 /* MAX_ERRNO */
#define LINUX_SIGNALS 64

enum number {
	NUMBER_UNSIGNED,
	NUMBER_INT,
	NUMBER_COUNT, /* uint64_t, but only 63 bits: JSON integers are signed here */
	NUMBER_REAL,  /* double, finite and not negative */
	NUMBER_END
};

struct field {
	const char *name;
	size_t offset;
	enum number type;
	json_int_t min, max;
};

/* clang-format off */
#define COUNT(type, name, member) {name, offsetof(type, member), NUMBER_COUNT, 0, INT64_MAX}
#define REAL(type, name, member)  {name, offsetof(type, member), NUMBER_REAL, 0, 0}
#define END                       {NULL, 0, NUMBER_END, 0, 0}

static const struct field cell_fields[] = {
	{"split", offsetof(struct cell, split), NUMBER_UNSIGNED, 1, 4},
	{"executors", offsetof(struct cell, executors), NUMBER_UNSIGNED, 1, PLACEMENT_EXECUTORS_MAX},
	COUNT(struct cell, "first_wait", first_wait),
	COUNT(struct cell, "second_wait", second_wait),
	COUNT(struct cell, "rest", rest),
	COUNT(struct cell, "toggles", toggles),
	REAL(struct cell, "seconds", seconds),
	COUNT(struct cell, "stop_tears", stop_tears),
	COUNT(struct cell, "seed", seed),
	END
};

static const struct field result_fields[] = {
	{"signal", offsetof(struct cell_result, signal), NUMBER_INT, 0, LINUX_SIGNALS},
	{"error", offsetof(struct cell_result, error), NUMBER_INT, -LINUX_ERRORS, 0},
	COUNT(struct cell_result, "toggles", toggles),
	COUNT(struct cell_result, "executions", executions),
	COUNT(struct cell_result, "old", old_new[0]),
	COUNT(struct cell_result, "new", old_new[1]),
	COUNT(struct cell_result, "traps", traps),
	COUNT(struct cell_result, "retries", retries),
	COUNT(struct cell_result, "ticks", ticks),
	REAL(struct cell_result, "seconds", seconds),
	END
};

static const struct field tear_fields[] = {
	COUNT(struct cell_result, "old_front_new_back", tears[TEAR_OLD_FRONT]),
	COUNT(struct cell_result, "new_front_old_back", tears[TEAR_NEW_FRONT]),
	COUNT(struct cell_result, "other", tears[TEAR_OTHER]),
	END
};

static const struct field witness_fields[] = {
	COUNT(struct witness, "voluntary", voluntary),
	COUNT(struct witness, "involuntary", involuntary),
	COUNT(struct witness, "major_faults", major_faults),
	REAL(struct witness, "steal", steal),
	REAL(struct witness, "load", load),
	END
};
/* clang-format on */

static json_t *number_to_json(const struct field *f, const void *base)
{
	const char *at = (const char *)base + f->offset;

	switch (f->type) {
	case NUMBER_UNSIGNED:
		return json_integer(*(const unsigned *)at);
	case NUMBER_INT:
		return json_integer(*(const int *)at);
	case NUMBER_COUNT:
		return json_integer((json_int_t)(*(const uint64_t *)at));
	case NUMBER_REAL:
		return json_real(*(const double *)at);
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

static int number_from_json(const json_t *value, const struct field *f, void *base)
{
	char *at = (char *)base + f->offset;
	json_int_t integer = json_integer_value(value);

	if (f->type == NUMBER_REAL)
		return real_from_json(value, (double *)at);
	if (!json_is_integer(value) || integer < f->min || integer > f->max)
		return -EINVAL;
	if (f->type == NUMBER_UNSIGNED)
		*(unsigned *)at = (unsigned)integer;
	else if (f->type == NUMBER_INT)
		*(int *)at = (int)integer;
	else
		*(uint64_t *)at = (uint64_t)integer;
	return 0;
}

static int numbers_from_json(const json_t *object, const struct field *f, void *base)
{
	for (; f->name; f++)
		if (number_from_json(json_object_get(object, f->name), f, base))
			return -EINVAL;
	return 0;
}

/*
 * Whole or not at all: a shortened key would name another cell. Printable
 * ASCII only, because these end up on terminals and in figures.
 */
static int text_from_json(const json_t *object, const char *name, char *to, size_t size)
{
	const char *text = json_string_value(json_object_get(object, name));

	if (!text || strlen(text) >= size)
		return -EINVAL;
	for (const char *p = text; *p; p++)
		if (*p < ' ' || *p > '~')
			return -EINVAL;
	strcpy(to, text);
	return 0;
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
	       c->pair < PAIR_COUNT && c->protocol < PROTOCOL_COUNT && c->oracle < ORACLE_KINDS;
}

static json_t *cell_to_json(const struct cell *c)
{
	json_t *object;

	object =
		json_pack("{s:s, s:s, s:s, s:s, s:s}", "placement", placement_name(c->placement),
			  "crossing", crossing_name(c->crossing), "pair", pair_name(c->pair),
			  "protocol", protocol_name(c->protocol), "oracle", oracle_name(c->oracle));
	if (!object || numbers_to_json(object, cell_fields, c)) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static int cell_from_json(const json_t *object, struct cell *c)
{
	int placement = name_from_json(object, "placement", placement_parse);
	int crossing = name_from_json(object, "crossing", crossing_parse);
	int pair = name_from_json(object, "pair", pair_parse);
	int protocol = name_from_json(object, "protocol", protocol_parse);
	int oracle = name_from_json(object, "oracle", oracle_parse);

	if (placement < 0 || crossing < 0 || pair < 0 || protocol < 0 || oracle < 0)
		return -EINVAL;
	c->placement = (enum placement)placement;
	c->crossing = (enum crossing)crossing;
	c->pair = (enum code_pair)pair;
	c->protocol = (enum protocol)protocol;
	c->oracle = (enum oracle)oracle;
	return numbers_from_json(object, cell_fields, c);
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

static json_t *result_to_json(const struct cell_result *r)
{
	const char *outcome = r->outcome < OUTCOME_COUNT ? outcome_name(r->outcome) : NULL;
	json_t *object = json_pack("{s:s}", "outcome", outcome);
	json_t *tears = json_object();

	if (!object || numbers_to_json(object, result_fields, r) ||
	    numbers_to_json(tears, tear_fields, r) || json_object_set(object, "tears", tears)) {
		json_decref(object);
		object = NULL;
	}
	json_decref(tears);
	return object;
}

static int result_from_json(const json_t *object, struct cell_result *r)
{
	int outcome = name_from_json(object, "outcome", outcome_parse);

	if (outcome < 0)
		return -EINVAL;
	r->outcome = (enum outcome)outcome;
	if (numbers_from_json(object, result_fields, r))
		return -EINVAL;
	return numbers_from_json(json_object_get(object, "tears"), tear_fields, r);
}

static json_t *witness_to_json(const struct witness *w)
{
	json_t *object = json_object();

	if (numbers_to_json(object, witness_fields, w)) {
		json_decref(object);
		return NULL;
	}
	return object;
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
	return json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "type", "cell",
			 "schema", JOURNAL_SCHEMA, "stage", record->stage, "key", record->key,
			 "date", record->date, "command", command, "cell",
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

int record_from_json(const json_t *line, struct cell_record *record)
{
	struct cell_result *result = &record->result;

	memset(record, 0, sizeof(*record));
	if (text_from_json(line, "stage", record->stage, sizeof(record->stage)) ||
	    text_from_json(line, "key", record->key, sizeof(record->key)) ||
	    text_from_json(line, "date", record->date, sizeof(record->date)) ||
	    cell_from_json(json_object_get(line, "cell"), &record->cell) ||
	    cpus_from_json(json_object_get(line, "cpus"), &result->seating) ||
	    result_from_json(json_object_get(line, "result"), result) ||
	    numbers_from_json(json_object_get(line, "witness"), witness_fields, &result->witness))
		return -EINVAL;
	result->seating.placement = record->cell.placement;
	return 0;
}
