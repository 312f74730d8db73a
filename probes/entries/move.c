/* SPDX-License-Identifier: MIT */
/*
 * The instructions of a site at another address.
 */
#include "probes/entries/survey.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <string.h>

#include "probes/tables/decode.h"

bool survey_ready(void)
{
	return true;
}

static int put_distance(uint8_t *bytes, uint64_t target, uint64_t next)
{
	int64_t distance = (int64_t)(target - next);
	int32_t near = (int32_t)distance;

	memcpy(bytes, &near, sizeof(near));
	return near == distance ? 0 : -ERANGE;
}

/* One instruction at a time; the length that it takes there. */
static int move_one(const ZydisDecodedInstruction *insn, const uint8_t *code, uint64_t from,
		    uint64_t to, uint8_t *moved)
{
	int ret;

	if (insn->raw.imm[0].is_relative) {
		uint64_t target = from + insn->length + insn->raw.imm[0].value.u;
		int len = insn->mnemonic == ZYDIS_MNEMONIC_JMP ? 5 : 6;

		moved[0] = len == 5 ? 0xe9 : 0x0f;
		if (len == 6)
			moved[1] = (uint8_t)(0x80 | (insn->opcode & 0xf));
		ret = put_distance(moved + len - 4, target, to + (uint64_t)len);
		return ret ? ret : len;
	}
	memcpy(moved, code, insn->length);
	if (!is_relative(insn))
		return insn->length;
	ret = put_distance(moved + insn->raw.disp.offset,
			   from + insn->length + (uint64_t)insn->raw.disp.value, to + insn->length);
	return ret ? ret : insn->length;
}

int survey_move(const struct survey_site *site, uint64_t from, uint64_t to,
		uint8_t moved[SURVEY_ROOM])
{
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;
	int used = 0;

	if (ZYAN_FAILED(
		    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		return -ENOTSUP;
	for (unsigned at = 0; at < site->len; at += insn.length) {
		int len;

		if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&decoder, NULL, site->code + at,
							      site->len - at, &insn)))
			return -ENOEXEC;
		len = move_one(&insn, site->code + at, from + at, to + (uint64_t)used,
			       moved + used);
		if (len < 0)
			return len;
		used += len;
	}
	return used;
}
