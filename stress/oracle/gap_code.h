/* SPDX-License-Identifier: MIT */
/*
 * The site of a gap run: `mov eax, imm32; ret`, with the boundary inside the
 * immediate. Private to stress.
 */
#ifndef STRESS_ORACLE_GAP_CODE_H
#define STRESS_ORACLE_GAP_CODE_H

#include <stdint.h>

#include "patchcore/word/word.h"
#include "stress/cell/cell.h"
#include "stress/oracle/gap_judge.h"

/* Gives what it found in the site. */
typedef uint32_t gap_fetch_fn(const void *arg);

struct gap_code {
	gap_fetch_fn *fetch; /* runs the site; takes no notice of arg */
	uint8_t *site;
	struct gap_layout layout;
	struct word word; /* for the library's own stores */
};

/*
 * gap_code_build - map and write it, generation 0 in both parts. Never unmapped:
 * it is made once, in the child that runs the cell. 0 or a negative errno.
 */
int gap_code_build(struct gap_code *code, const struct cell *cell);

/* gap_code_store - one locked store, as the library makes it, of one part. */
void gap_code_store(struct gap_code *code, enum gap_part part, uint64_t generation);

/* gap_code_load - what stands in memory, one part after the other, with so many ticks between. */
uint32_t gap_code_load(const struct gap_code *code, enum gap_part first, uint64_t between);

#endif
