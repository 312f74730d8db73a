/* SPDX-License-Identifier: MIT */
#include "patchcore/tests/real/functions.h"

#include <link.h>
#include <string.h>

/* .eh_frame_hdr (LSB Core, 10.6.2) in the form that linkers write. */
struct header {
	uint8_t version;
	uint8_t frame_encoding;
	uint8_t count_encoding;
	uint8_t table_encoding;
	int32_t frame;
	uint32_t count;
	struct {
		int32_t code; /* both relative to the header */
		int32_t entry;
	} table[];
};

/* A frame description entry of .eh_frame. */
struct entry {
	uint32_t length;
	uint32_t common;
	int32_t code; /* relative to this field */
	uint32_t size;
};

struct search {
	const char *object;
	function_fn *fn;
	void *arg;
	size_t count;
};

static const uint8_t known_form[] = { 1, 0x1b, 0x03, 0x3b };

static size_t each_of(const struct header *header, const struct search *search)
{
	size_t count = 0;

	if (memcmp(header, known_form, sizeof(known_form)) != 0)
		return 0;
	for (uint32_t i = 0; i < header->count; i++) {
		uintptr_t base = (uintptr_t)header;
		uint8_t *code = (uint8_t *)(base + (intptr_t)header->table[i].code);
		const struct entry *entry =
			(const struct entry *)(base + (intptr_t)header->table[i].entry);

		/* Not so if the entry has addresses of another form. */
		if ((uintptr_t)&entry->code + (intptr_t)entry->code != (uintptr_t)code)
			continue;
		search->fn(code, entry->size, search->arg);
		count++;
	}
	return count;
}

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *search = arg;

	(void)size;
	if (search->object[0] && !strstr(info->dlpi_name, search->object))
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
			search->count = each_of((const struct header *)(info->dlpi_addr +
									info->dlpi_phdr[i].p_vaddr),
						search);
	return 1;
}

size_t functions_each(const char *object, function_fn *fn, void *arg)
{
	struct search search = { .object = object, .fn = fn, .arg = arg };

	/* The main program comes first. */
	dl_iterate_phdr(look, &search);
	return search.count;
}
