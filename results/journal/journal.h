/* SPDX-License-Identifier: MIT */
/*
 * The journal: one JSON object per line, written and flushed as things end.
 *
 * Line types: "run" (one per start of the program: tool, date, plan, identity,
 * gaps), "begin" (a cell starts), "cell" (one finished cell), "gaps" (one run of the gap oracle),
 * "tail" (a fit of such a run's tail, by older versions), "estimate" (what was concluded), "bench"
 * (one finished benchmark), and in the store of evidence "evidence" and "epoch". The schema is
 * results/schema/journal-2.json.
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
#include "stress/run/gap.h"

#define JOURNAL_SCHEMA	 2
#define JOURNAL_LINE_MAX (1u << 20)
#define JOURNAL_NO_SEED	 UINT64_MAX

struct journal; /* open for appending */

/* One cell and what came of it, as read back or about to be written. */
struct cell_record {
	char stage[32]; /* of the plan: "controls", "membarrier", "ladder", "window", "stress" */
	char key[160];	/* names the cell within the plan, for resuming */
	char date[32];	/* UTC, ISO 8601, when it ended */
	bool noisy;	/* much else was going on; it counts all the same */
	struct cell cell;
	struct cell_result result;
};

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
	size_t concluded; /* of the records, as many stand before the last estimate; */
	size_t concluded_others; /* and of the others */
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
 * journal_write_run / _cell / _line - append one line and flush it to the
 * file system (fdatasync). A full disk gives its errno, and the line that did
 * not fit is taken back; where a file size limit may be set, ignore SIGXFSZ to
 * get -EFBIG. untested (what the plan cannot test, an array, or NULL) and body (an object) are
 * borrowed. seed: what the run's draws begin from, up to INT64_MAX. begin: the cell of this key
 * starts; its cell line ends it. -EINVAL for what could not be read back, else 0 or a negative
 * errno.
 */
int journal_write_run(struct journal *journal, const char *plan, const struct identity *id,
		      json_t *untested, uint64_t seed);
int journal_write_begin(struct journal *journal, const char *key);
int journal_write_cell(struct journal *journal, const struct cell_record *record);
int journal_write_line(struct journal *journal, const char *type, json_t *body);

/*
 * journal_line - the line that journal_write_line() would write, for the caller to free or to put;
 * NULL if it cannot be written in JSON. journal_put - write a line and free it; of NULL -EINVAL.
 */
json_t *journal_line(const char *type, json_t *body);
int journal_put(struct journal *journal, json_t *line);

/*
 * journal_tell - a line as what a command of the program answers: with the tool behind its type
 * and schema. One line on `to`; the line is freed. 0; -EINVAL: of NULL; or -EIO.
 */
int journal_tell(FILE *to, json_t *line);

int journal_close(struct journal *journal);

/*
 * journal_read - read a whole journal, skipping what is broken, and add it to data
 * (zeroed before the first): so the journals of shards merge.
 *
 * 0 (also with skipped lines), -ENOENT, -EACCES, -ENOMEM, ... The caller frees.
 */
int journal_read(const char *path, struct journal_data *data);
int journal_read_stream(FILE *stream, struct journal_data *data);
void journal_free(struct journal_data *data);

/*
 * journal_each_line - call take for each line of a stream, with a NUL in place of its end, numbered
 * from 1. text NULL: the line is too long. Ends where take returns below 0, with that; else 0 or a
 * negative errno.
 */
typedef int journal_take_fn(void *arg, size_t number, const char *text, size_t length);
int journal_each_line(FILE *stream, journal_take_fn *take, void *arg);

/*
 * seed_to_json, seed_from_json - 64 bits that readers which have doubles for numbers would round
 * (jq 1.6 does): written as a string, read as a string or a number up to INT64_MAX. -EINVAL.
 */
json_t *seed_to_json(uint64_t seed);
int seed_from_json(const json_t *json, uint64_t *seed);

/*
 * line_next - the next of the other lines of that type at or after *i, which is moved behind it.
 * line_last - the last one. NULL: none.
 */
const json_t *line_next(const struct journal_data *data, const char *type, size_t *i);
const json_t *line_last(const struct journal_data *data, const char *type);

/* Members of a line; not there or of another type: NAN, "?". */
double json_real_of(const json_t *object, const char *name);
const char *json_text_of(const json_t *object, const char *name);

/* json_find - the first object of a list whose member is that text, NULL: none. */
const json_t *json_find(const json_t *list, const char *member, const char *text);

/* identity_to_json / identity_from_json - an object, a member for each field. NULL / -EINVAL. */
json_t *identity_to_json(const struct identity *id);
int identity_from_json(const json_t *object, struct identity *id);

/* record_to_json / record_from_json - one "cell" line. NULL / -EINVAL on failure. */
json_t *record_to_json(const struct cell_record *record);
int record_from_json(const json_t *line, struct cell_record *record);

/*
 * gap_to_json - one run of the gap oracle, as the body of a "gaps" line: for journal_write_line().
 * NULL for what has no place in a journal, or for want of memory.
 */
json_t *gap_to_json(const struct cell *cell, const struct gap_result *result);

/*
 * text_take - copy a text that was read, whole or not at all: a shortened name would be
 * another's. Printable ASCII only, because it ends up on terminals and in figures. 0 or -EINVAL,
 * also where text is NULL.
 */
int text_take(const char *text, char *to, size_t size);

#endif
