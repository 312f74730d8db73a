/* SPDX-License-Identifier: MIT */
/*
 * The sections fi_branch_sites and fi_call_sites: entries of any length, each a struct head and the
 * name with its 0, filled up to a multiple of four.
 */
#include "probes/branch/branch.h"

#include <elf.h>
#include <string.h>

struct head {
	uint32_t length;
	int32_t site;	/* or the jump of a call, from here */
	int32_t other;	/* side, or the slot of a call, from here */
	uint32_t usual; /* side; 0 of a call */
};

static int read_section(const struct elf_section *section, entry_fn *tell, void *data)
{
	const uint8_t *at = section->bytes, *end = at + section->len;
	struct head head;
	int ret = 0;

	while ((size_t)(end - at) > sizeof(head) && ret == 0) {
		uint64_t address = section->addr + (uint64_t)(at - section->bytes);
		const char *name = (const char *)at + sizeof(head);

		memcpy(&head, at, sizeof(head));
		if (head.length <= sizeof(head) || head.length > (size_t)(end - at) ||
		    head.usual > 1 || !memchr(name, 0, head.length - sizeof(head)))
			return 0;
		ret = tell(&(struct entry){ .site = address + 4 + (uint64_t)(int64_t)head.site,
					    .other = address + 8 + (uint64_t)(int64_t)head.other,
					    .usual = head.usual,
					    .name = name },
			   data);
		at += head.length;
	}
	return ret;
}

int entries_read(const struct elf *elf, const char *name, entry_fn *tell, void *data)
{
	struct elf_section section;
	int ret = 0;

	for (uint32_t i = 0; !ret && elf_next_section(elf, &i, &section);)
		if (section.bytes && (section.flags & SHF_ALLOC) && strcmp(section.name, name) == 0)
			ret = read_section(&section, tell, data);
	return ret;
}
