/* SPDX-License-Identifier: MIT */
/* One change of the site: the library's own protocols, or its steps in a wrong order. */
#ifndef STRESS_CELL_TOGGLE_H
#define STRESS_CELL_TOGGLE_H

#include "patchcore/word/word.h"
#include "stress/cell/cell.h"

/* toggle - 0 or a negative errno; bytes holds 8, of which 5 count. */
int toggle(enum protocol protocol, uint8_t *site, const uint8_t *bytes, const struct sync *sync);

/* toggle_sync - its trace is left to the caller; broken protocols tell only visible stores. */
struct sync toggle_sync(const struct cell *cell);

#endif
