/* SPDX-License-Identifier: MIT */
#ifndef PROBES_BLOCKS_BLOCKS_H
#define PROBES_BLOCKS_BLOCKS_H

#include "probes/core/provider.h"

/* Basic blocks and compares: code compiled with -fsanitize-coverage=trace-pc or trace-cmp. */
extern const struct provider blocks_provider;

#endif
