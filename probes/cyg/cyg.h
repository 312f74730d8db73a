/* SPDX-License-Identifier: MIT */
#ifndef PROBES_CYG_CYG_H
#define PROBES_CYG_CYG_H

#include "probes/core/provider.h"

/* Entries and exits of functions that were compiled with -finstrument-functions. */
extern const struct provider cyg_provider;

#endif
