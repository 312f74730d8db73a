/* SPDX-License-Identifier: MIT */
/* What a harness may set before pc_init(). Private. */
#ifndef PATCHCORE_LIFE_LIBRARY_H
#define PATCHCORE_LIFE_LIBRARY_H

#include <stdint.h>

/*
 * library_assume_waits - let policy wait be had by name, with these waits, in place of those of
 * machine.conf, which need not exist. For benchmarks: nothing is claimed about tears, so AUTO
 * waits by them only for a caller that accepts a probability of 1. Ticks; stretch as in
 * pc_status. Before pc_init(), and not while another thread is in it.
 */
void library_assume_waits(uint64_t first, uint64_t second, uint64_t stretch);

#endif
