/* SPDX-License-Identifier: MIT */
#include "probes/elf/elf.h"

bool elf_inside(const struct elf *elf, uint64_t offset, uint64_t len)
{
	return offset <= elf->size && len <= elf->size - offset;
}
