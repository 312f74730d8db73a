/* SPDX-License-Identifier: MIT */
/*
 * The journal: one JSON object per line, written and flushed as things end.
 *
 * Line types: "run" (one per start of the program: tool, date, plan, identity,
 * gaps), "begin" (a cell starts), "cell" (one finished cell), "gaps" (one run of the gap oracle),
 * "tail" (a fit of such a run's tail, by older versions), "estimate" (what was concluded), "bench"
 * (one finished benchmark), and in the store of evidence "evidence" and "epoch". The schema is
 * results/schema/journal-2.json; lines of schema 1 are read as well, with what it did not have yet
 * left at nothing.
 */
#ifndef RESULTS_JOURNAL_JOURNAL_H
#define RESULTS_JOURNAL_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "patchcore/machine/identity.h"
#include "stress/cell/cell.h"

#define JOURNAL_SCHEMA	 2
#define JOURNAL_LINE_MAX (1u << 20)
#define JOURNAL_NO_SEED	 UINT64_MAX

struct journal; /* open for appending */

/* One cell and what came of it, as read back or about to be written. */
struct cell_record {
	char stage[32]; /* part of the plan: "proof", "window", "bracket", "campaign", "stress" */
	char key[160];	/* names the cell within the plan, for resuming */
	char date[32];	/* UTC, ISO 8601, when it ended */
	bool noisy;	/* much else was going on; it counts all the same */
	struct cell cell;
	struct cell_result result;
};

/*
 * record_toggles - those of a record that prove anything. A cell that hung or
 * was killed has shown no more than its tears.
 */
static inline uint64_t record_toggles(const struct cell_record *r)
{
	bool cut = r->result.outcome == OUTCOME_KILLED || r->result.outcome == OUTCOME_HANG;

	return cut ? 0 : r->result.toggles;
}

/* Everything worth keeping of a journal. */
struct journal_data {
	int have_identity;	  /* a run line was seen */
	struct identity identity; /* of the last run line */
	struct cell_record *records;
	size_t count;
	json_t *others;	  /* array of all other good lines, run lines included, in their order */
	json_t *begun;	  /* object: keys of cells that began and did not end, with their dates */
	size_t skipped;	  /* lines that could not be read, a cut last one included */
	size_t first_bad; /* line number of the first of them, from 1; 0 if none */
	size_t newer;	  /* of the skipped, lines in a newer schema than ours */
	int mixed;	  /* run lines of different machines: identity_differs() */
};

/*
 * journal_open - open for appending, created if need be.
 *
 * A last line without its newline (a run that was killed) is ended first, so
 * that it spoils nothing but itself. Several programs may append to one
 * journal. 0 or a negative errno.
 */
int journal_open(struct journal **journal, const char *path);

/*
 * journal_write_run / _run_of / _cell / _line - append one line and flush it to the
 * file system (fdatasync). A full disk gives its errno, and the line that did
 * not fit is taken back; where a file size limit may be set, ignore SIGXFSZ to
 * get -EFBIG. untested (what the plan cannot test, an array, or NULL) and body (an object) are
 * borrowed. seed: what the run's draws begin from, up to INT64_MAX. begin: the cell of this key
 * starts; its cell line ends it. -EINVAL for what could not be read back, else 0 or a negative
 * errno.
 */
int journal_write_run(struct journal *journal, const char *plan, const struct identity *id,
		      json_t *untested);
int journal_write_run_of(struct journal *journal, const char *plan, const struct identity *id,
			 json_t *untested, uint64_t seed);
int journal_write_begin(struct journal *journal, const char *key);
int journal_write_cell(struct journal *journal, const struct cell_record *record);
int journal_write_line(struct journal *journal, const char *type, json_t *body);

/*
 * journal_line - the line that journal_write_line() would write, for the caller to free or to put;
 * NULL if it cannot be told in JSON. journal_put - write a line and free it; of NULL -EINVAL.
 */
json_t *journal_line(const char *type, json_t *body);
int journal_put(struct journal *journal, json_t *line);

int journal_close(struct journal *journal);

/* journal_date - now, as cell_record.date wants it: "2026-01-31T23:59:59Z". */
void journal_date(char *buf, size_t size);

/*
 * journal_read - read a whole journal, skipping what is broken, and add it to data
 * (zeroed before the first): so the journals of shards merge.
 *
 * 0 (also with skipped lines), -ENOENT, -EACCES, -ENOMEM, ... The caller frees.
 */
int journal_read(const char *path, struct journal_data *data);
int journal_read_stream(FILE *stream, struct journal_data *data);
void journal_free(struct journal_data *data);

/* identity_to_json / identity_from_json - an object, a member for each field. NULL / -EINVAL. */
json_t *identity_to_json(const struct identity *id);
int identity_from_json(const json_t *object, struct identity *id);

/* record_to_json / record_from_json - one "cell" line. NULL / -EINVAL on failure. */
json_t *record_to_json(const struct cell_record *record);
int record_from_json(const json_t *line, struct cell_record *record);

#endif
