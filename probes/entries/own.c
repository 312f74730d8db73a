/* SPDX-License-Identifier: MIT */
#include <elf.h>

#include "probes/entries/entries.h"

bool entries_own(const struct object *object)
{
	return object_covers(object, (uintptr_t)entries_own, 1, PF_X);
}
