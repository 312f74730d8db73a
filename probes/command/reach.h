/* SPDX-License-Identifier: MIT */
#ifndef PROBES_COMMAND_REACH_H
#define PROBES_COMMAND_REACH_H

#include <stdbool.h>

#include "probes/elf/elf.h"

/* reach_print - "fastinst list --entries": 0, -ENOMEM, or -ENOTSUP: built without Zydis. */
int reach_print(const struct elf *elf, const char *path, bool json, bool summary);

#endif
