/* SPDX-License-Identifier: MIT */
/*
 * The loops of the promises, for the list of them. Private to conform/guarantee.
 */
#ifndef CONFORM_GUARANTEE_LOOPS_H
#define CONFORM_GUARANTEE_LOOPS_H

#include "conform/guarantee/child.h"

typedef void loop_fn(struct conform_child *c);
typedef int prepare_fn(struct conform_child *c);

/* handshakes.c */
void write_in_turn(struct conform_child *c, uint8_t *(*place)(struct conform_child *c, uint64_t));
loop_fn execute_serialized, execute_at_once, write_flag, write_moved, write_self;

/* running.c */
prepare_fn prepare_word, prepare_int3, prepare_membarrier;
loop_fn write_word, write_int3, write_membarrier, execute_word, execute_int3, execute_membarrier;

/* pages.c */
prepare_fn prepare_executable;
loop_fn write_fresh, execute_fresh, write_reused, execute_reused, write_executable,
	execute_executable;

#endif
