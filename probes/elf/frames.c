/* SPDX-License-Identifier: MIT */
/*
 * Functions from .eh_frame: what stripped programs still have. Each record (FDE) names a range of
 * code; how its addresses are written is said by another (CIE).
 */
#include <string.h>

#include "probes/elf/array.h"
#include "probes/elf/elf.h"

#define ABSOLUTE 0x00
#define RELATIVE 0x10 /* to where the address itself stands */

/* Bytes that are read in turn; a read behind the end gives 0 and is remembered. */
struct reader {
	const uint8_t *at, *end;
	bool failed;
};

static uint64_t take_bytes(struct reader *reader, size_t len)
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
static uint64_t take_leb(struct reader *reader)
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

/* A value of one of the formats of DW_EH_PE_*, without what it is relative to. */
static uint64_t take_encoded(struct reader *reader, uint8_t format)
{
	switch (format & 0xf) {
	case 0x0:
	case 0x4:
	case 0xc:
		return take_bytes(reader, 8);
	case 0x2:
		return take_bytes(reader, 2);
	case 0x3:
		return take_bytes(reader, 4);
	case 0xa:
		return (uint64_t)(int64_t)(int16_t)take_bytes(reader, 2);
	case 0xb:
		return (uint64_t)(int64_t)(int32_t)take_bytes(reader, 4);
	default:
		reader->failed = true;
		return 0;
	}
}

/* The bytes of the next record, behind its length. False: there is none. */
static bool take_record(struct reader *section, struct reader *record)
{
	uint64_t len = take_bytes(section, 4);

	if (len == UINT32_MAX)
		len = take_bytes(section, 8);
	if (section->failed || !len || !elf_left(section->at, section->end, len))
		return false;
	*record = (struct reader){ .at = section->at, .end = section->at + len };
	section->at += len;
	return true;
}

/* The part of a CIE that its FDEs need. */
struct common {
	uint8_t format;	  /* of addresses */
	bool has_lengths; /* of the augmentation data in FDEs */
};

static bool read_common(struct reader record, struct common *common)
{
	const char *augmentation;
	uint8_t version;

	*common = (struct common){ .format = ABSOLUTE };
	if (take_bytes(&record, 4))
		return false;
	version = (uint8_t)take_bytes(&record, 1);
	augmentation = (const char *)record.at;
	while (take_bytes(&record, 1) && !record.failed)
		;
	if (record.failed || (version != 1 && version != 3))
		return false;
	take_leb(&record);
	take_leb(&record);
	if (version == 1)
		take_bytes(&record, 1);
	else
		take_leb(&record);
	if (*augmentation != 'z')
		return !*augmentation && !record.failed;
	common->has_lengths = true;
	take_leb(&record);
	for (augmentation++; *augmentation && !record.failed; augmentation++) {
		uint8_t format;

		switch (*augmentation) {
		case 'R':
			common->format = (uint8_t)take_bytes(&record, 1);
			break;
		case 'L':
			take_bytes(&record, 1);
			break;
		case 'P':
			format = (uint8_t)take_bytes(&record, 1);
			take_encoded(&record, format);
			break;
		case 'S':
		case 'B':
			break;
		default:
			return false;
		}
	}
	return !record.failed &&
	       ((common->format & 0x70) == ABSOLUTE || (common->format & 0x70) == RELATIVE) &&
	       !(common->format & 0x80);
}

/*
 * Whether the code begins as a function does: with nothing said of the frame but what holds at each
 * entry. The rest of a function that was put elsewhere (.cold), and entries of the PLT, begin with
 * a frame.
 */
static bool begins_bare(struct reader record, const struct common *common)
{
	uint64_t skip = common->has_lengths ? take_leb(&record) : 0;
	uint8_t operation;

	if (record.failed || !elf_left(record.at, record.end, skip))
		return false;
	record.at += skip;
	operation = record.at < record.end ? *record.at : 0;
	/* DW_CFA_nop; DW_CFA_advance_loc and its longer forms. */
	return operation == 0 || operation >> 6 == 1 || (operation >= 2 && operation <= 4);
}

static bool read_frame(const struct elf_section *section, struct reader record,
		       struct elf_symbol *found)
{
	const uint8_t *start = section->bytes, *id_at = record.at;
	uint64_t back = take_bytes(&record, 4), place;
	struct reader before, cie;
	struct common common;

	if (!back || back > (uint64_t)(id_at - start))
		return false;
	before = (struct reader){ .at = id_at - back, .end = start + section->len };
	if (!take_record(&before, &cie) || !read_common(cie, &common))
		return false;
	place = section->addr + (uint64_t)(record.at - start);
	found->addr = take_encoded(&record, common.format);
	if ((common.format & 0x70) == RELATIVE)
		found->addr += place;
	found->size = take_encoded(&record, common.format & 0xf);
	found->name = "";
	found->exported = false;
	return !record.failed && found->size && found->size <= UINT64_MAX - found->addr &&
	       begins_bare(record, &common);
}

int elf_frames(const struct elf *elf, struct elf_symbols *symbols)
{
	struct reader all, record;
	struct elf_section section;
	struct elf_symbol found;
	int ret = 0;

	if (!elf_find_section(elf, ".eh_frame", &section))
		return 0;
	all = (struct reader){ .at = section.bytes, .end = section.bytes + section.len };
	while (!ret && take_record(&all, &record))
		if (read_frame(&section, record, &found))
			ret = ARRAY_ADD(symbols->symbol, symbols->n, found);
	elf_sort(symbols);
	return ret;
}
