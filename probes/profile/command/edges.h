/* SPDX-License-Identifier: MIT */
/*
 * A profile of edges, and its formats that need no lines. Those return 0 or a negative errno.
 */
#ifndef PROBES_PROFILE_COMMAND_EDGES_H
#define PROBES_PROFILE_COMMAND_EDGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

struct row {
	const char *from, *to; /* FUNCTION+OFFSET, a tab, OBJECT, a tab, address; escaped */
	double half[2];	       /* counts, each as often as its phase counts */
	double seen;
};

/* One phase of a process, or several one behind the other; seconds from its start. */
struct moment {
	double start, length; /* until the next one */
	double phases, on, toggling;
	double runs; /* of blocks */
};

struct edges {
	const char *program;
	json_t *edges;	 /* "FROM\nTO" to two counts, and what was seen */
	json_t *counts;	 /* all blocks to theirs */
	struct row *row; /* the most first */
	size_t n;
	struct moment *moment;
	size_t moments;
	double phases, wall, on, toggling, late, lost, blocks, refused;
	unsigned processes;
};

double edges_count(const struct row *row);

/* edges_agreement - what the shares of edges have in common in odd and in even phases, 0 to 1. */
double edges_agreement(const struct edges *profile);

/* edges_place - of a block's name: where the object's starts, its length, the address. Escaped. */
bool edges_place(const char *name, const char **object, size_t *len, uint64_t *address);

int edges_write_json(const struct edges *profile, FILE *out);
int edges_write_chrome(const struct edges *profile, FILE *out);
int edges_write_page(const struct edges *profile, FILE *out);

/* edges_write_autofdo - what create_llvm_prof and create_gcov read with --profiler=text, of one
 * object. */
int edges_write_autofdo(const struct edges *profile, FILE *out);

#endif
