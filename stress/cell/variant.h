/* SPDX-License-Identifier: MIT */
/*
 * What has been tried against the slow tail: the word protocol with something more in its first
 * wait, between INT3 and the back part. docs/tail.md tells what came of each.
 */
#ifndef STRESS_CELL_VARIANT_H
#define STRESS_CELL_VARIANT_H

#include "stress/cell/toggle.h"

/* A locked store to the line of the back part that changes nothing; its latency stretches. */
toggle_fn toggle_touch;

/* That line is read. */
toggle_fn toggle_read;

/* The wait in two halves, with such a store between. */
toggle_fn toggle_halves;

/* INT3 is put a second time, half way. */
toggle_fn toggle_again;

#endif
