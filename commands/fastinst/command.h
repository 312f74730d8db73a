/* SPDX-License-Identifier: MIT */
/*
 * The program fastinst: a function per command, each with argc and argv from its own name on. They
 * return the exit status.
 */
#ifndef COMMANDS_FASTINST_COMMAND_H
#define COMMANDS_FASTINST_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "agent/launch/launch.h"

int attach_command(int argc, char **argv);
int run_command(int argc, char **argv);
int switch_command(int argc, char **argv);
int top_command(int argc, char **argv);
int list_command(int argc, char **argv);
int trace_command(int argc, char **argv);
int metrics_command(int argc, char **argv);

/* --- Counts by name, added up over processes, from the lines that agents write ---------------- */

struct function_count {
	uint64_t count, lost;
	double rate;			/* per second; negative: not known */
	char *kind, *function, *object; /* one behind the other */
};

struct counts {
	struct function_count *count;
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

/* counts_join - the same place of several processes becomes one; the most often run is first. */
void counts_join(struct counts *counts);
void counts_print(const struct counts *counts, FILE *out, bool json, size_t most);

/*
 * counts_since - subtract the counts @before, and keep the functions that are in @named (NULL:
 * all). counts is joined; the other two are sorted anew. counts_rates - fill in the rates of counts
 * that grew in so many seconds.
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

/* --- Requests, and what commands share -------------------------------------------------------- */

/*
 * control_ask - one request, as printf(3), to the agent of a process; its counts are added to
 * @counts, or how many probes it names is printed where that is NULL. The exit status, after a
 * complaint. control_listens - whether there is one.
 */
int control_ask(long pid, struct counts *counts, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
bool control_listens(long pid);

/* control_sweep - sockets of processes that are gone, and have not removed them, are removed. */
void control_sweep(void);

/* set_environment - sets FASTINST_* for the agent. */
void set_environment(const struct asked *asked);

/*
 * collect_counts - what processes of a program left, joined. Where patterns matched no probe, it
 * complains of each, with similar names; or says why there are no counts, or counts without names.
 * 1: a pattern matched none; a negative errno after a complaint.
 */
int collect_counts(const struct launch *launch, const char *program, const struct asked *asked,
		   struct counts *counts);

/* complain_unmatched - nothing matches a pattern there; with the nearest names of those. */
void complain_unmatched(const char *where, const char *pattern, const struct counts *names);

#endif
