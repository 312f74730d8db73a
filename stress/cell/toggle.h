/* SPDX-License-Identifier: MIT */
/*
 * One change of the site, by the protocol that a cell names: the library's own
 * for the real ones, the library's steps in a wrong order for the broken ones.
 */
#ifndef STRESS_CELL_TOGGLE_H
#define STRESS_CELL_TOGGLE_H

#include <stdint.h>

#include "patchcore/word/word.h"
#include "stress/cell/cell.h"

/* toggle - 0 or a negative errno; bytes holds 8, of which 5 count. */
int toggle(enum protocol protocol, uint8_t *site, const uint8_t *bytes, const struct sync *sync);

/*
 * toggle_sync - the sync that goes with a cell; its trace is left to the caller.
 * The broken protocols only tell when their stores were visible.
 */
struct sync toggle_sync(const struct cell *cell);

#endif
