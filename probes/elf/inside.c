/* SPDX-License-Identifier: MIT */
#include "probes/elf/elf.h"

bool elf_inside(const struct elf *elf, uint64_t offset, uint64_t len)
{
	return offset <= elf->size && len <= elf->size - offset;
}

bool elf_left(const uint8_t *at, const uint8_t *end, uint64_t len)
{
	return len <= (uint64_t)(end - at);
}
