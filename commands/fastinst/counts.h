/* SPDX-License-Identifier: MIT */
/* Counts by name, added up over processes, from the lines that agents write. */
#ifndef COMMANDS_FASTINST_COUNTS_H
#define COMMANDS_FASTINST_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

struct count {
	uint64_t count, lost;
	double rate; /* per second; negative: not known */
	char *kind, *function, *object;
};

struct counts {
	struct count *count;
	size_t n;
	size_t patterns; /* behind the counts, once joined: patterns of --on; count 0: has not
			    matched */
	size_t processes;
};

/* counts_add - -ENOMEM. The texts are copied. */
int counts_add(struct counts *counts, uint64_t count, uint64_t lost, const char *kind,
	       const char *function, const char *object);

/* counts_line - adds a line, for launch_reports(). Other lines are passed over. -ENOMEM. */
int counts_line(char *line, void *counts);

/* counts_read - all lines of a stream. */
int counts_read(struct counts *counts, FILE *stream);

/* counts_join - the same place of several processes becomes one; the most often run is first. */
void counts_join(struct counts *counts);
void counts_print(const struct counts *counts, FILE *out, bool json, size_t most);

/*
 * counts_since - what came since @before, of those that are in @named (NULL: all). All are joined;
 * the others are sorted anew. counts_rates - how fast those grow that grew in so many seconds.
 */
void counts_since(struct counts *counts, struct counts *before, struct counts *named);
void counts_rates(struct counts *counts, struct counts *before, double seconds);

/*
 * counts_missing - keeps what was counted more often than in @seen, which is sorted anew; lost is
 * by how much. With known_only, drops what @seen does not have.
 */
void counts_missing(struct counts *counts, struct counts *seen, bool known_only);

/* counts_json - an array of them. */
json_t *counts_json(const struct counts *counts);

/* counts_write - all of them to a file, or to standard error. -errno after a complaint. */
int counts_write(const struct counts *counts, const char *path, bool json);
void counts_free(struct counts *counts);

#endif
