/* SPDX-License-Identifier: MIT */
/*
 * The loops of the promises, for the list of them. Private to conform.
 */
#ifndef CONFORM_LOOPS_H
#define CONFORM_LOOPS_H

#include "conform/child.h"

typedef void loop_fn(struct conform_child *c);
typedef int prepare_fn(struct conform_child *c);

/* handshakes.c */
typedef uint8_t *place_fn(struct conform_child *c, uint64_t trial);
place_fn place_flag, place_moved;
loop_fn write_in_turn, execute_serialized, execute_at_once, write_self;

/* running.c */
prepare_fn prepare_word, prepare_int3, prepare_membarrier;
loop_fn write_word, write_int3, write_membarrier, execute_word, execute_int3, execute_membarrier;

/* pages.c */
prepare_fn prepare_executable;
place_fn place_fresh;
loop_fn write_reused, execute_reused, write_executable, execute_executable;

#endif
