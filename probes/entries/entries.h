/* SPDX-License-Identifier: MIT */
#ifndef PROBES_ENTRIES_ENTRIES_H
#define PROBES_ENTRIES_ENTRIES_H

#include "probes/core/provider.h"

extern const struct provider entries_provider;

#endif
