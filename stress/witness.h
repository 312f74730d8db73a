/* SPDX-License-Identifier: MIT */
/*
 * Noise around a cell. Every thread adds its own switches and faults when it
 * ends; steal time and load are read by the parent.
 */
#ifndef STRESS_WITNESS_H
#define STRESS_WITNESS_H

#include "stress/cell.h"

/* Steal time of the seated CPUs in clock ticks since boot; 0 if not told. */
uint64_t witness_steal(const struct seating *seating);

/* witness_add_thread - add the calling thread's switches and faults. */
void witness_add_thread(struct witness *witness);

/* witness_load - tasks runnable at this moment, from /proc/loadavg. */
double witness_load(void);

#endif
