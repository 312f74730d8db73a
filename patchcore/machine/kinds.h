/* SPDX-License-Identifier: MIT */
/*
 * kinds.tsv: what single stores inside a cache line did on other processors of a kind. A prior: it
 * says nothing of this machine. Made by results/kinds.py, and installed with the library. Private.
 */
#ifndef PATCHCORE_MACHINE_KINDS_H
#define PATCHCORE_MACHINE_KINDS_H

#include "patchcore/machine/identity.h"

#define KIND_BOUNDARIES 3 /* of 8, 16 and 32 bytes */

struct kind {
	uint64_t family, model;
	uint64_t window;   /* bytes: the widest of 8, 16, 32 and 64 inside which no store tore */
	uint64_t stores;   /* across the boundary inside it that has fewest */
	uint64_t one_in;   /* of so many stores there at most one tears */
	uint64_t runs;	   /* that made them, */
	uint64_t hours;	   /* in so many different hours, */
	uint64_t machines; /* on so many machines */
	uint64_t torn[KIND_BOUNDARIES]; /* stores across each boundary that tore */
};

/* The table that is installed. */
extern const char *kinds_path __attribute__((visibility("hidden")));

/*
 * kind_read - the line of a machine's kind in the table at that path, which conf_open() opens.
 * kind_parse - the same of text of that size, behind which a NUL stands.
 *
 * 0; -ENOENT: none is of this kind, or it contradicts itself; -EFBIG; or what conf_open() and
 * read(2) fail with. *kind is all 0 then.
 */
int kind_read(struct kind *kind, const char *path, const struct identity *id);
int kind_parse(struct kind *kind, char *text, const struct identity *id);

/* kind_widest - bytes: on no machine of this kind may one store be taken to change more. */
unsigned kind_widest(const struct kind *kind);

#endif
