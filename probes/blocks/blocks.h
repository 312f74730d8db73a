/* SPDX-License-Identifier: MIT */
#ifndef PROBES_BLOCKS_BLOCKS_H
#define PROBES_BLOCKS_BLOCKS_H

#include "probes/core/provider.h"

/* Basic blocks of code that was compiled with -fsanitize-coverage=trace-pc. */
extern const struct provider blocks_provider;

/* What such code calls at each block. Other libraries and the program may have one, too. */
void __sanitizer_cov_trace_pc(void);

#endif
