/* SPDX-License-Identifier: MIT */
/*
 * Functions from .eh_frame: what stripped programs still have. Each record (FDE) names a range of
 * code; how its addresses are written is said by another (CIE): by their distance, as all
 * assemblers write them. Records in other formats are left out.
 */
#include <string.h>

#include "base/array.h"
#include "probes/elf/elf.h"

/* DW_EH_PE_pcrel, and DW_EH_PE_sdata4, or sdata8 of the large code model */
#define DISTANCE_4 0x1b
#define DISTANCE_8 0x1c

/* Bytes that are read in turn; a read behind the end gives 0 and is remembered. */
struct frame_reader {
	const uint8_t *at, *end;
	bool failed;
};

static uint64_t take_bytes(struct frame_reader *reader, size_t len)
{
	uint64_t value = 0;

	if (!elf_left(reader->at, reader->end, len)) {
		reader->failed = true;
		reader->at = reader->end;
		return 0;
	}
	memcpy(&value, reader->at, len);
	reader->at += len;
	return value;
}

/* LEB128 of any sign: the values that matter here are small. */
static uint64_t take_leb(struct frame_reader *reader)
{
	uint64_t value = 0, byte;
	unsigned shift = 0;

	do {
		byte = take_bytes(reader, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && !reader->failed);
	return value;
}

/* The bytes of the next record, behind its length. False: there is none. */
static bool take_record(struct frame_reader *section, struct frame_reader *record)
{
	uint64_t len = take_bytes(section, 4);

	if (section->failed || !len || !elf_left(section->at, section->end, len))
		return false;
	*record = (struct frame_reader){ .at = section->at, .end = section->at + len };
	section->at += len;
	return true;
}

/* How many bytes the addresses of a CIE's FDEs have. 0: they are written in another way. */
static size_t read_address_size(struct frame_reader record)
{
	uint64_t id = take_bytes(&record, 4), version = take_bytes(&record, 1), len;
	const char *letters = (const char *)record.at, *last;

	if (id || (version != 1 && version != 3) ||
	    !memchr(letters, '\0', (size_t)(record.end - record.at)) || *letters != 'z')
		return 0;
	/* Behind the encoding of addresses no other data may follow: S has none. */
	last = letters + 1 + strspn(letters + 1, "PL");
	if (*last != 'R' || last[1 + strspn(last + 1, "S")])
		return 0;
	record.at += strlen(letters) + 1;
	/* Two alignments and a register. */
	for (int i = 0; i < 3; i++)
		take_leb(&record);
	len = take_leb(&record);
	if (record.failed || !len || !elf_left(record.at, record.end, len))
		return 0;
	if (record.at[len - 1] == DISTANCE_8)
		return 8;
	return record.at[len - 1] == DISTANCE_4 ? 4 : 0;
}

/*
 * Whether the code begins as a function does: with nothing said of the frame but what holds at each
 * entry. The rest of a function that was put elsewhere (.cold), and entries of the PLT, begin with
 * a frame.
 */
static bool begins_bare(struct frame_reader record)
{
	uint64_t skip = take_leb(&record);
	uint8_t operation;

	if (record.failed || !elf_left(record.at, record.end, skip))
		return false;
	record.at += skip;
	operation = record.at < record.end ? *record.at : 0;
	/* DW_CFA_nop; DW_CFA_advance_loc and its longer forms. */
	return operation == 0 || operation >> 6 == 1 || (operation >= 2 && operation <= 4);
}

static bool read_frame(const struct elf_section *section, struct frame_reader record,
		       struct elf_symbol *found)
{
	const uint8_t *start = section->bytes, *id_at = record.at;
	uint64_t back = take_bytes(&record, 4), place = section->addr;
	struct frame_reader before, cie;
	size_t size;

	if (!back || back > (uint64_t)(id_at - start))
		return false;
	before = (struct frame_reader){ .at = id_at - back, .end = start + section->len };
	size = take_record(&before, &cie) ? read_address_size(cie) : 0;
	if (!size)
		return false;
	place += (uint64_t)(record.at - start);
	found->addr = take_bytes(&record, size);
	if (size == 4)
		found->addr = (uint64_t)(int64_t)(int32_t)found->addr;
	found->addr += place;
	found->size = take_bytes(&record, size);
	found->name = "";
	found->exported = false;
	return !record.failed && found->size && found->size <= UINT64_MAX - found->addr &&
	       begins_bare(record);
}

int elf_frames(const struct elf *elf, struct elf_symbols *symbols)
{
	struct frame_reader all, record;
	struct elf_section section;
	struct elf_symbol found;
	int ret = 0;

	if (!elf_find_section(elf, ".eh_frame", &section))
		return 0;
	all = (struct frame_reader){ .at = section.bytes, .end = section.bytes + section.len };
	while (!ret && take_record(&all, &record))
		if (read_frame(&section, record, &found))
			ret = ARRAY_ADD(symbols->symbol, symbols->n, found);
	elf_sort(symbols);
	return ret;
}
