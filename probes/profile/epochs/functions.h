/* SPDX-License-Identifier: MIT */
/*
 * Which functions are watched, as objects come and go.
 */
#ifndef PROBES_PROFILE_EPOCHS_FUNCTIONS_H
#define PROBES_PROFILE_EPOCHS_FUNCTIONS_H

#include <stdint.h>

/* functions_watch - those among the first n probes that are new and asked for. */
void functions_watch(uint32_t n);

/* functions_scan - what came and went is noticed. functions_scan_if_loaded - if anything came. */
void functions_scan(void);
void functions_scan_if_loaded(void);

#endif
