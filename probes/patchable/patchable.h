/* SPDX-License-Identifier: MIT */
#ifndef PROBES_PATCHABLE_PATCHABLE_H
#define PROBES_PATCHABLE_PATCHABLE_H

#include "probes/core/provider.h"

/* Entries of functions that were compiled with -fpatchable-function-entry=5, or more. */
extern const struct provider patchable_provider;

#endif
