/* SPDX-License-Identifier: MIT */
/* One cell and its outcome as a JSON object, and back. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/command_line.h"
#include "results/journal/fields.h"
#include "results/journal/journal.h"

#define COMMAND_MAX   1024
#define LINUX_ERRORS  4095 /* MAX_ERRNO */
#define LINUX_SIGNALS 64
#define EXACT	      0x1p53 /* whole numbers up to here are written as such */

/* clang-format off */
static const struct field cell_fields[] = {
	NAME(struct cell, "placement", placement, PLACEMENT_COUNT, placement_name, placement_parse),
	NAME(struct cell, "crossing", crossing, CROSSING_COUNT, crossing_name, crossing_parse),
	NAME(struct cell, "pair", pair, PAIR_OWN + 1, pair_name, pair_parse),
	NAME(struct cell, "protocol", protocol, PROTOCOL_NAMES, protocol_name, protocol_parse),
	NAME(struct cell, "oracle", oracle, ORACLE_KINDS, oracle_name, oracle_parse),
	BOUNDED(struct cell, "split", split, NUMBER_UNSIGNED, 1, SITE_BYTES - 1),
	BOUNDED(struct cell, "executors", executors, NUMBER_UNSIGNED, 1,
		PLACEMENT_EXECUTORS_MAX),
	COUNT(struct cell, "first_wait", waits.first),
	COUNT(struct cell, "second_wait", waits.second),
	COUNT(struct cell, "stretch", waits.stretch),
	COUNT(struct cell, "rest", rest),
	BOUNDED(struct cell, "loop", loop, NUMBER_UNSIGNED, 0, CELL_LOOP_MAX),
	COUNT(struct cell, "toggles", toggles),
	REAL(struct cell, "seconds", seconds),
	COUNT(struct cell, "stop_tears", stop_tears),
	BOUNDED(struct cell, "seed", seed, NUMBER_SEED, 0, INT64_MAX),
	OPTIONAL(struct cell, "place", place, NUMBER_SEED, INT64_MAX),
	{ .name = "provokers", .offset = offsetof(struct cell, provokers),
	  .type = NUMBER_PROVOKERS, .parse = provokers_parse },
	OTHER(struct cell, "swap", swap, NUMBER_FLAG, true),
	END
};

static const struct field tear_fields[] = {
	COUNT(struct cell_result, "old_front_new_back", tears[TEAR_OLD_FRONT]),
	COUNT(struct cell_result, "new_front_old_back", tears[TEAR_NEW_FRONT]),
	COUNT(struct cell_result, "other", tears[TEAR_OTHER]),
	END
};

/* Of crossing inside alone. */
static const struct field inside_fields[] = {
	COUNT(struct cell_result, "8", torn_inside[0]),
	COUNT(struct cell_result, "16", torn_inside[1]),
	COUNT(struct cell_result, "32", torn_inside[2]),
	END
};

static const struct field latency_fields[] = {
	COUNT(struct latency, "median", median),
	COUNT(struct latency, "p99", p99),
	COUNT(struct latency, "max", max),
	END
};

static const struct field result_fields[] = {
	NAME(struct cell_result, "outcome", outcome, OUTCOME_COUNT, outcome_name, outcome_parse),
	BOUNDED(struct cell_result, "signal", signal, NUMBER_INT, 0, LINUX_SIGNALS),
	BOUNDED(struct cell_result, "error", error, NUMBER_INT, -LINUX_ERRORS, 0),
	COUNT(struct cell_result, "toggles", toggles),
	OPTIONAL(struct cell_result, "exposed", exposed, NUMBER_WITNESS, INT64_MAX),
	OPTIONAL(struct cell_result, "torn", torn, NUMBER_WITNESS, INT64_MAX),
	COUNT(struct cell_result, "executions", executions),
	COUNT(struct cell_result, "old", old_new[0]),
	COUNT(struct cell_result, "new", old_new[1]),
	COUNT(struct cell_result, "traps", traps),
	COUNT(struct cell_result, "retries", retries),
	COUNT(struct cell_result, "ticks", ticks),
	OPTIONAL(struct cell_result, "front_frame", frame[0], NUMBER_COUNT, INT64_MAX),
	OPTIONAL(struct cell_result, "back_frame", frame[1], NUMBER_COUNT, INT64_MAX),
	REAL(struct cell_result, "seconds", seconds),
	{ .name = "tears", .type = NUMBER_TABLE, .table = tear_fields },
	TABLE(struct cell_result, "latency", latency, false, latency_fields),
	END
};

static const struct field event_fields[] = {
	NAME(struct tear_event, "kind", kind, TEAR_KINDS, tear_kind_name, tear_kind_parse),
	COUNT(struct tear_event, "toggle", toggle),
	COUNT(struct tear_event, "tsc", tsc),
	SIGNED(struct tear_event, "after_int3", after_int3),
	SIGNED(struct tear_event, "after_front", after_front),
	COUNT(struct tear_event, "int3_latency", latency[0]),
	COUNT(struct tear_event, "back_latency", latency[1]),
	COUNT(struct tear_event, "front_latency", latency[2]),
	COUNT(struct tear_event, "first_waited", waited[0]),
	COUNT(struct tear_event, "second_waited", waited[1]),
	COUNT(struct tear_event, "first_step", step[0]),
	COUNT(struct tear_event, "second_step", step[1]),
	BOUNDED(struct tear_event, "executor", executor, NUMBER_UNSIGNED, 0,
		PLACEMENT_EXECUTORS_MAX - 1),
	END
};

const struct field witness_fields[] = {
	WITNESS("voluntary", voluntary),
	WITNESS("involuntary", involuntary),
	WITNESS("minor_faults", minor_faults),
	WITNESS("major_faults", major_faults),
	WITNESS("interrupts", interrupts),
	WITNESS("smis", smis),
	WITNESS("throttles", throttles),
	WITNESS("tsc_jumps", tsc_jumps),
	WITNESS("longest_step", longest_step),
	SIGNED(struct witness, "offset", offset),
	WITNESS("offset_error", offset_error),
	OPTIONAL(struct witness, "offset_error_after", error_after, NUMBER_WITNESS, INT64_MAX),
	MEASURE("clock_before", clock[0]),
	MEASURE("clock_after", clock[1]),
	MEASURE("steal", steal),
	MEASURE("load", load),
	END
};

static const struct field record_fields[] = {
	TEXT(struct cell_record, "date", date, -1),
	TEXT(struct cell_record, "stage", stage, -1),
	TEXT(struct cell_record, "key", key, -1),
	OTHER(struct cell_record, "noisy", noisy, NUMBER_FLAG, false),
	TABLE(struct cell_record, "cell", cell, false, cell_fields),
	OTHER(struct cell_record, "cpus", result.seating, NUMBER_CPUS, false),
	TABLE(struct cell_record, "result", result, false, result_fields),
	TABLE(struct cell_record, "witness", result.witness, false, witness_fields),
	END
};
/* clang-format on */

json_t *seed_to_json(uint64_t seed)
{
	return seed <= INT64_MAX ? json_sprintf("%" PRIu64, seed) : NULL;
}

int seed_from_json(const json_t *json, uint64_t *seed)
{
	const char *text = json_string_value(json);

	if (text)
		return number_in(text, 0, INT64_MAX, seed) ? 0 : -EINVAL;
	*seed = (uint64_t)json_integer_value(json);
	return json_is_integer(json) && *seed <= INT64_MAX ? 0 : -EINVAL;
}

json_t *real_to_json(double x)
{
	if (isnan(x))
		return NULL;
	if (isinf(x))
		return json_string(x > 0 ? "inf" : "-inf");
	if (x == floor(x) && fabs(x) < EXACT)
		return json_integer((json_int_t)x);
	return json_real(x);
}

int real_from_json(const json_t *json, double *x)
{
	const char *text = json_string_value(json);

	if (text && strcmp(text, "inf") == 0)
		*x = INFINITY;
	else if (text && strcmp(text, "-inf") == 0)
		*x = -INFINITY;
	else if (json_is_number(json))
		*x = json_number_value(json);
	else
		return -EINVAL;
	return 0;
}

/* Appends; NULL if anything is. */
static json_t *list_add(json_t *list, json_t *value)
{
	if (json_array_append_new(list, value) == 0)
		return list;
	json_decref(list);
	return NULL;
}

static json_t *cpus_to_json(const struct seating *s)
{
	json_t *executors = s->executors <= PLACEMENT_EXECUTORS_MAX ? json_array() : NULL;

	for (unsigned i = 0; executors && i < s->executors; i++)
		executors = list_add(executors, json_integer(s->executor[i]));
	/* json_pack() gives NULL if any part is NULL. */
	return json_pack("{s:I, s:o}", "patcher", (json_int_t)s->patcher, "executors", executors);
}

static int cpus_from_json(const json_t *cpus, struct seating *s)
{
	const json_t *executors = json_object_get(cpus, "executors");

	s->executors = (unsigned)json_array_size(executors);
	if (!json_is_array(executors) || json_array_size(executors) > PLACEMENT_EXECUTORS_MAX)
		return -EINVAL;
	for (unsigned i = 0; i <= s->executors; i++) {
		const json_t *value = i < s->executors ? json_array_get(executors, i)
						       : json_object_get(cpus, "patcher");
		json_int_t cpu = json_integer_value(value);

		if (!json_is_integer(value) || cpu < 0 || cpu > UINT32_MAX)
			return -EINVAL;
		*(i < s->executors ? &s->executor[i] : &s->patcher) = (unsigned)cpu;
	}
	return 0;
}

static json_t *member_to_json(const struct field *f, const char *at)
{
	const unsigned *number = (const unsigned *)at;
	char provokers[PROVOKERS_MAX];

	switch (f->type) {
	case NUMBER_UNSIGNED:
		return json_integer(*number);
	case NUMBER_INT:
		return json_integer(*(const int *)at);
	case NUMBER_WITNESS:
		if (*(const uint64_t *)at == WITNESS_UNKNOWN)
			return json_null();
		return json_integer(*(const int64_t *)at);
	case NUMBER_COUNT:
		return json_integer(*(const int64_t *)at);
	case NUMBER_SEED:
		return seed_to_json(*(const uint64_t *)at);
	case NUMBER_MEASURE:
		return *(const double *)at < 0 ? json_null() : json_real(*(const double *)at);
	case NUMBER_REAL:
		return json_real(*(const double *)at);
	case NUMBER_PRESENT:
		return real_to_json(*(const double *)at);
	case NUMBER_WORDS:
		return *at || f->min < 0 ? json_string(at) : NULL;
	case NUMBER_FLAG:
		return json_boolean(*(const bool *)at);
	case NUMBER_PROVOKERS:
		return *number & ~PROVOKERS_ALL ? NULL
						: json_string(provokers_name(*number, provokers));
	case NUMBER_CPUS:
		return cpus_to_json((const struct seating *)at);
	case NUMBER_TABLE:
		return table_to_json(f->table, at);
	default:
		return *number <= f->max ? json_string(f->name_of(*number)) : NULL;
	}
}

json_t *table_to_json(const struct field *f, const void *base)
{
	json_t *object = json_object(), *value;

	for (; f->name; f++) {
		const char *at = (const char *)base + f->offset;

		if ((f->type == NUMBER_PRESENT && isnan(*(const double *)at)) ||
		    (f->type == NUMBER_WORDS && !*at && !f->min))
			continue;
		value = member_to_json(f, at);
		if (f->type == NUMBER_TABLE && f->optional && value && !json_object_size(value)) {
			json_decref(value);
		} else if (json_object_set_new(object, f->name, value)) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

static int member_from_json(const json_t *value, const struct field *f, char *at)
{
	const char *text = json_string_value(value);
	json_int_t integer = json_integer_value(value);
	int name;

	switch (f->type) {
	case NUMBER_WORDS:
		return text && (*text || f->min < 0) ? text_take(text, at, (size_t)f->max)
						     : -EINVAL;
	case NUMBER_PRESENT:
		return real_from_json(value, (double *)at);
	case NUMBER_SEED:
		return seed_from_json(value, (uint64_t *)at);
	case NUMBER_FLAG:
		*(bool *)at = json_is_true(value);
		return json_is_boolean(value) ? 0 : -EINVAL;
	case NUMBER_CPUS:
		return cpus_from_json(value, (struct seating *)at);
	case NUMBER_TABLE:
		return !value || json_is_object(value) ? table_from_json(value, f->table, at)
						       : -EINVAL;
	case NUMBER_NAME:
	case NUMBER_PROVOKERS:
		name = text ? f->parse(text) : -EINVAL;
		*(unsigned *)at = (unsigned)name;
		return name < 0 ? name : 0;
	case NUMBER_REAL:
	case NUMBER_MEASURE:
		*(double *)at = json_is_null(value) ? -1 : json_number_value(value);
		if (json_is_null(value) && f->type == NUMBER_MEASURE)
			return 0;
		return json_is_number(value) && *(double *)at >= 0 ? 0 : -EINVAL;
	default:
		if (json_is_null(value) && f->type == NUMBER_WITNESS) {
			*(uint64_t *)at = WITNESS_UNKNOWN;
			return 0;
		}
		if (!json_is_integer(value) || integer < f->min || integer > f->max)
			return -EINVAL;
		if (f->type == NUMBER_UNSIGNED)
			*(unsigned *)at = (unsigned)integer;
		else if (f->type == NUMBER_INT)
			*(int *)at = (int)integer;
		else
			*(int64_t *)at = integer;
		return 0;
	}
}

int table_from_json(const json_t *object, const struct field *f, void *base)
{
	for (; f->name; f++) {
		const json_t *value = json_object_get(object, f->name);
		/* A table may be missing: then each of its members says what that means. */
		bool may_miss = f->optional && f->type != NUMBER_TABLE;
		bool missing = may_miss && !value;
		char *at = (char *)base + f->offset;

		if (f->type == NUMBER_PRESENT && !value)
			*(double *)at = NAN;
		if (!value && (f->type == NUMBER_PRESENT || (f->type == NUMBER_WORDS && !f->min)))
			continue;
		/* A member that a line lacks is zero, or unknown as if it were null. */
		if (missing && f->type != NUMBER_WITNESS && f->type != NUMBER_MEASURE)
			continue;
		if (member_from_json(missing ? json_null() : value, f, at))
			return -EINVAL;
	}
	return 0;
}

int text_take(const char *text, char *to, size_t size)
{
	if (!text || strlen(text) >= size)
		return -EINVAL;
	for (const char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			return -EINVAL;
	strcpy(to, text);
	return 0;
}

json_t *record_to_json(const struct cell_record *record)
{
	const struct cell_result *r = &record->result;
	json_t *fields = table_to_json(record_fields, record), *events = json_array(), *line;
	json_t *result = json_object_get(fields, "result");
	struct cell_record back;
	char command[COMMAND_MAX];
	int length = -EINVAL, failed = r->events > TEAR_EVENTS_MAX;

	for (unsigned i = 0; i < r->events && !failed; i++)
		failed = json_array_append_new(events, table_to_json(event_fields, &r->event[i]));
	if (record->cell.crossing == CROSSING_INSIDE)
		failed |=
			json_object_set_new(result, "torn_inside", table_to_json(inside_fields, r));
	failed |= json_object_set_new(result, "events", events);
	/* Only a cell that has names has a command. */
	if (fields)
		length = cell_command(&record->cell, command, sizeof(command));
	if (failed || length < 0 || (size_t)length >= sizeof(command)) {
		json_decref(fields);
		return NULL;
	}
	line = json_pack("{s:s, s:i, s:s, s:s, s:s, s:s}", "type", "cell", "schema", JOURNAL_SCHEMA,
			 "date", record->date, "stage", record->stage, "key", record->key,
			 "command", command);
	/* What could not be read back must not be written. */
	if (json_object_update_new(line, fields) || record_from_json(line, &back)) {
		json_decref(line);
		return NULL;
	}
	return line;
}

int record_from_json(const json_t *line, struct cell_record *record)
{
	struct cell_result *result = &record->result;
	const json_t *object = json_object_get(line, "result");
	const json_t *events = json_object_get(object, "events");
	size_t count = json_array_size(events);

	memset(record, 0, sizeof(*record));
	if (table_from_json(line, record_fields, record) ||
	    (record->cell.crossing == CROSSING_INSIDE &&
	     table_from_json(json_object_get(object, "torn_inside"), inside_fields, result)) ||
	    !json_is_array(events) || count > TEAR_EVENTS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < count; i++)
		if (table_from_json(json_array_get(events, i), event_fields, &result->event[i]))
			return -EINVAL;
	result->events = (unsigned)count;
	result->seating.placement = record->cell.placement;
	return 0;
}

/* --- One run of the gap oracle ---------------------------------------------------------------- */

static json_t *count_to_json(uint64_t count)
{
	return count <= INT64_MAX ? json_integer((json_int_t)count) : NULL;
}

static json_t *counts_to_json(const uint64_t *counts, unsigned n)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < n; i++)
		list = list_add(list, count_to_json(counts[i]));
	return list;
}

static json_t *kind_to_json(enum gap_kind kind, const struct gap_tally *tally)
{
	json_t *histogram = json_array();

	for (unsigned i = 0; i < GAP_BUCKETS; i++)
		if (tally->bucket[i])
			histogram = list_add(
				histogram, json_pack("[o, o, o]", count_to_json(gap_bucket_low(i)),
						     count_to_json(gap_bucket_low(i + 1)),
						     count_to_json(tally->bucket[i])));
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:b}", "kind", gap_kind_name(kind), "count",
			 count_to_json(tally->count), "histogram", histogram, "tail",
			 counts_to_json(tally->tail, tally->tails), "tail_times",
			 counts_to_json(tally->tail_time, tally->tails), "tail_complete",
			 tally->count == tally->tails);
}

json_t *gap_to_json(const struct cell *cell, const struct gap_result *r)
{
	/* Cell, CPUs and witness look as they do in a "cell" line: they are taken out of one. */
	const struct cell_record record = {
		.stage = "gaps",
		.key = "gaps",
		.cell = *cell,
		.result = { .witness = r->witness, .seating = r->seating },
	};
	json_t *line, *borrowed = record_to_json(&record), *discarded = json_object();
	char command[COMMAND_MAX];
	uint64_t faked = 0;
	int failed = 0;

	for (unsigned i = 0; i < GAP_REASONS; i++) {
		faked += r->discarded[i];
		failed |= json_object_set_new(discarded, gap_reason_name((enum gap_reason)i),
					      count_to_json(r->discarded[i]));
	}
	if (!borrowed || failed) {
		json_decref(borrowed);
		json_decref(discarded);
		return NULL;
	}
	gap_command(cell, command, sizeof(command));
	/* What is not known has no number in JSON. */
	line = json_pack(
		"{s:s, s:s, s:i, s:o, s:o, s:f, s:f, s:I, s:o, s:o, s:o, s:[o, o], s:O, s:O, s:O}",
		"command", command, "outcome", outcome_name(r->outcome), "error", r->error,
		"stores", count_to_json(r->stores), "executions", count_to_json(r->executions),
		"seconds", r->seconds, "rate", gap_rate(r->stores, r->seconds), "offset",
		(json_int_t)r->offset.offset, "offset_error",
		r->offset.error > INT64_MAX ? json_null() : count_to_json(r->offset.error), "faked",
		count_to_json(faked), "discarded", discarded, "kinds",
		kind_to_json(GAP_OLD_FRONT, &r->kind[GAP_OLD_FRONT]),
		kind_to_json(GAP_NEW_FRONT, &r->kind[GAP_NEW_FRONT]), "cell",
		json_object_get(borrowed, "cell"), "cpus", json_object_get(borrowed, "cpus"),
		"witness", json_object_get(borrowed, "witness"));
	json_decref(borrowed);
	return line;
}
