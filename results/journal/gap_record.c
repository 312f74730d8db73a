/* SPDX-License-Identifier: MIT */
#include "results/journal/gap_record.h"

#include "results/journal/journal.h"

#define COMMAND_MAX 1024

/*
 * Cell, CPUs and witness look as they do in a "cell" line: so one is made, and
 * these are taken out of it.
 */
static json_t *borrow(const struct cell *cell, const struct gap_result *result)
{
	struct cell_record record = { .stage = "gaps", .key = "gaps", .cell = *cell };

	record.result.witness = result->witness;
	record.result.seating = result->seating;
	return record_to_json(&record);
}

static json_t *count_to_json(uint64_t count)
{
	return count <= INT64_MAX ? json_integer((json_int_t)count) : NULL;
}

static json_t *histogram_to_json(const struct gap_tally *tally)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < GAP_BUCKETS; i++) {
		json_t *bucket;

		if (!tally->bucket[i])
			continue;
		bucket = json_pack("[o, o, o]", count_to_json(gap_bucket_low(i)),
				   count_to_json(gap_bucket_low(i + 1)),
				   count_to_json(tally->bucket[i]));
		if (json_array_append_new(list, bucket)) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *counts_to_json(const uint64_t *counts, unsigned n)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < n; i++) {
		if (json_array_append_new(list, count_to_json(counts[i]))) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *kind_to_json(enum gap_kind kind, const struct gap_tally *tally)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:b}", "kind", gap_kind_name(kind), "count",
			 count_to_json(tally->count), "histogram", histogram_to_json(tally), "tail",
			 counts_to_json(tally->tail, tally->tails), "tail_times",
			 counts_to_json(tally->tail_time, tally->tails), "tail_complete",
			 tally->count == tally->tails);
}

static json_t *kinds_to_json(const struct gap_result *r)
{
	return json_pack("[o, o]", kind_to_json(GAP_OLD_FRONT, &r->kind[GAP_OLD_FRONT]),
			 kind_to_json(GAP_NEW_FRONT, &r->kind[GAP_NEW_FRONT]));
}

static json_t *discarded_to_json(const struct gap_result *r, uint64_t *sum)
{
	json_t *object = json_object();

	*sum = 0;
	for (unsigned i = 0; i < GAP_REASONS; i++) {
		*sum += r->discarded[i];
		if (json_object_set_new(object, gap_reason_name((enum gap_reason)i),
					count_to_json(r->discarded[i]))) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

/* What is not known has no number in JSON. */
static json_t *offset_error_to_json(const struct tsc_offset *offset)
{
	return offset->error > INT64_MAX ? json_null() : count_to_json(offset->error);
}

static json_t *result_to_json(const char *command, const struct gap_result *r)
{
	uint64_t faked;
	json_t *discarded = discarded_to_json(r, &faked);

	return json_pack(
		"{s:s, s:s, s:i, s:o, s:o, s:f, s:f, s:f, s:I, s:o, s:o, s:o, s:o}", "command",
		command, "outcome", outcome_name(r->outcome), "error", r->error, "stores",
		count_to_json(r->stores), "executions", count_to_json(r->executions), "seconds",
		r->seconds, "rate", gap_rate(r->stores, r->seconds), "bare_rate",
		gap_rate(r->bare_stores, r->bare_seconds), "offset", (json_int_t)r->offset.offset,
		"offset_error", offset_error_to_json(&r->offset), "faked", count_to_json(faked),
		"discarded", discarded, "kinds", kinds_to_json(r));
}

json_t *gap_to_json(const struct cell *cell, const struct gap_result *result)
{
	static const char *const borrowed[] = { "cell", "cpus", "witness" };
	char command[COMMAND_MAX];
	json_t *record, *line;

	record = borrow(cell, result);
	if (!record)
		return NULL;
	gap_command(cell, command, sizeof(command));
	line = result_to_json(command, result);
	for (size_t i = 0; i < sizeof(borrowed) / sizeof(borrowed[0]); i++) {
		if (json_object_set(line, borrowed[i], json_object_get(record, borrowed[i]))) {
			json_decref(line);
			line = NULL;
		}
	}
	json_decref(record);
	return line;
}
