/* SPDX-License-Identifier: MIT */
#include "results/journal/gap_record.h"

#include "results/journal/journal.h"

#define COMMAND_MAX 1024

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

json_t *gap_to_json(const struct cell *cell, const struct gap_result *r)
{
	/* Cell, CPUs and witness look as they do in a "cell" line: they are taken out of one. */
	const struct cell_record record = {
		.stage = "gaps",
		.key = "gaps",
		.cell = *cell,
		.result = { .witness = r->witness, .seating = r->seating },
	};
	json_t *line, *borrowed = record_to_json(&record), *discarded;
	char command[COMMAND_MAX];
	uint64_t faked = 0;

	if (!borrowed)
		return NULL;
	discarded = json_object();
	for (unsigned i = 0; i < GAP_REASONS; i++) {
		faked += r->discarded[i];
		if (json_object_set_new(discarded, gap_reason_name((enum gap_reason)i),
					count_to_json(r->discarded[i]))) {
			json_decref(discarded);
			discarded = NULL;
		}
	}
	gap_command(cell, command, sizeof(command));
	/* What is not known has no number in JSON. */
	line = json_pack(
		"{s:s, s:s, s:i, s:o, s:o, s:f, s:f, s:f, s:I, s:o, s:o, s:o, s:[o, o], s:O, s:O, "
		"s:O}",
		"command", command, "outcome", outcome_name(r->outcome), "error", r->error,
		"stores", count_to_json(r->stores), "executions", count_to_json(r->executions),
		"seconds", r->seconds, "rate", gap_rate(r->stores, r->seconds), "bare_rate",
		gap_rate(r->bare_stores, r->bare_seconds), "offset", (json_int_t)r->offset.offset,
		"offset_error",
		r->offset.error > INT64_MAX ? json_null() : count_to_json(r->offset.error), "faked",
		count_to_json(faked), "discarded", discarded, "kinds",
		kind_to_json(GAP_OLD_FRONT, &r->kind[GAP_OLD_FRONT]),
		kind_to_json(GAP_NEW_FRONT, &r->kind[GAP_NEW_FRONT]), "cell",
		json_object_get(borrowed, "cell"), "cpus", json_object_get(borrowed, "cpus"),
		"witness", json_object_get(borrowed, "witness"));
	json_decref(borrowed);
	return line;
}
