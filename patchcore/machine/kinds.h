/* SPDX-License-Identifier: MIT */
/*
 * kinds.tsv: what single stores inside a cache line did on other processors of a kind. A prior: it
 * says nothing of this machine. Made by results/kinds.py, and installed with the library. Private.
 */
#ifndef PATCHCORE_MACHINE_KINDS_H
#define PATCHCORE_MACHINE_KINDS_H

#include "patchcore/machine/identity.h"

struct kind {
	unsigned family, model;
	unsigned window;   /* bytes: the widest of 8, 16, 32 and 64 inside which no store tore */
	uint64_t stores;   /* across the boundary inside it that has fewest */
	uint64_t one_in;   /* of so many stores there at most one tears */
	unsigned runs;	   /* that made them, */
	unsigned hours;	   /* in so many different hours, */
	unsigned machines; /* on so many machines */
	uint64_t torn[3];  /* stores across 8, 16 and 32 bytes that tore */
	unsigned widest;   /* bytes: on no such machine may one store be taken to change more */
};

/*
 * The table that is installed: tests have others. A library that is not installed has the one that
 * the environment names (PATCHCORE_KINDS).
 */
extern const char *kinds_path __attribute__((visibility("hidden")));

/* kind_read - of a machine. But for widest all is 0 where the table has no sound line of its kind.
 */
struct kind kind_read(const struct identity *id);

/* kind_take - a line, if it is a sound one of the machine's kind; else all is 0. */
bool kind_take(struct kind *kind, const char *line, const struct identity *id);

#endif
