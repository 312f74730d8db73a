/* SPDX-License-Identifier: MIT */
/* The notes that list markers (.note.stapsdt), and symbols that operands name. */
#include "probes/providers/marker.h"

#include <elf.h>
#include <string.h>

#define NOTE_TYPE 3
#define NOTE_NAME "stapsdt"

/* The string at *at, which is moved behind it; NULL: it does not end. */
static const char *take_string(const uint8_t **at, const uint8_t *end)
{
	const char *start = (const char *)*at;
	const uint8_t *zero = memchr(*at, 0, (size_t)(end - *at));

	if (!zero)
		return NULL;
	*at = zero + 1;
	return start;
}

static bool parse_note(const uint8_t *at, size_t size, struct note *note)
{
	const uint8_t *end = at + size;
	uint64_t words[3];

	if (size < sizeof(words))
		return false;
	memcpy(words, at, sizeof(words));
	at += sizeof(words);
	note->address = words[0];
	note->semaphore = words[2];
	note->provider = take_string(&at, end);
	note->name = note->provider ? take_string(&at, end) : NULL;
	note->operands = note->name ? take_string(&at, end) : NULL;
	return note->operands != NULL;
}

static size_t round_to_word(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

static int read_section(const uint8_t *at, size_t size, note_fn *tell, void *data)
{
	Elf64_Nhdr head;
	struct note note;
	size_t whole;
	int ret = 0;

	for (; size >= sizeof(head) && !ret; at += whole, size -= whole) {
		const uint8_t *name = at + sizeof(head);
		size_t words;

		memcpy(&head, at, sizeof(head));
		words = sizeof(head) + round_to_word(head.n_namesz);
		/* The last one need not be filled up to a multiple of four. */
		if (words + head.n_descsz > size)
			return 0;
		if (head.n_type == NOTE_TYPE && head.n_namesz == sizeof(NOTE_NAME) &&
		    !memcmp(name, NOTE_NAME, sizeof(NOTE_NAME)) &&
		    parse_note(at + words, head.n_descsz, &note))
			ret = tell(&note, data);
		whole = words + round_to_word(head.n_descsz);
		whole = whole < size ? whole : size;
	}
	return ret;
}

int notes_read(const struct elf *elf, note_fn *tell, void *data)
{
	struct elf_section section;
	int ret = 0;

	for (uint32_t i = 0; !ret && elf_next_section(elf, &i, &section);)
		if (section.type == SHT_NOTE && section.bytes &&
		    strcmp(section.name, ".note.stapsdt") == 0)
			ret = read_section(section.bytes, section.len, tell, data);
	return ret;
}

/* Symbols of one table: how many places have the name. */
static unsigned count_places(const struct elf *elf, const struct elf_section *table,
			     const char *name, size_t len, uint64_t *address)
{
	unsigned found = 0;
	Elf64_Sym symbol;
	const char *its;

	for (uint64_t i = 0; elf_read_symbol(elf, table, i, &symbol, &its); i++) {
		if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= SHN_LORESERVE ||
		    ELF64_ST_TYPE(symbol.st_info) == STT_TLS || strncmp(its, name, len) ||
		    its[len] || (found && *address == symbol.st_value))
			continue;
		*address = symbol.st_value;
		found++;
	}
	return found;
}

bool notes_symbol(const struct elf *elf, const char *name, size_t len, uint64_t *address)
{
	static const uint32_t tables[] = { SHT_SYMTAB, SHT_DYNSYM };
	struct elf_section section;
	unsigned found = 0;

	/* A stripped file has only .dynsym. */
	for (size_t t = 0; t < 2 && !found && len > 0; t++)
		for (uint32_t i = 0; elf_next_section(elf, &i, &section);)
			if (section.type == tables[t])
				found += count_places(elf, &section, name, len, address);
	return found == 1;
}
