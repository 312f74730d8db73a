/* SPDX-License-Identifier: MIT */
#include "patchcore/check/decode.h"

#include <Zydis/Zydis.h>
#include <errno.h>

#define NOP 0x90

/* 0, or as decode_layout(). */
static int decode_one(const uint8_t *code, size_t size, ZydisDecodedInstruction *insn)
{
	ZydisDecodedInstruction amd;
	ZydisDecoder decoder;
	ZyanStatus status =
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);

	if (ZYAN_SUCCESS(status))
		status = ZydisDecoderDecodeInstruction(&decoder, NULL, code, size, insn);
	if (ZYAN_FAILED(status))
		return status == ZYDIS_STATUS_NO_MORE_DATA ? -EFAULT : -ENOEXEC;
	/* Intel ignores 66 before a near branch, AMD takes two bytes of operand. */
	ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_AMD_BRANCHES, true);
	status = ZydisDecoderDecodeInstruction(&decoder, NULL, code, size, &amd);
	return ZYAN_FAILED(status) || amd.length != insn->length ? -ENOEXEC : 0;
}

/* Does it never run on to what stands behind it? */
static bool is_end(ZydisMnemonic of)
{
	return of == ZYDIS_MNEMONIC_JMP || of == ZYDIS_MNEMONIC_RET || of == ZYDIS_MNEMONIC_IRETQ ||
	       of == ZYDIS_MNEMONIC_HLT || of == ZYDIS_MNEMONIC_UD0 || of == ZYDIS_MNEMONIC_UD1 ||
	       of == ZYDIS_MNEMONIC_UD2;
}

static uint64_t bit(size_t at)
{
	return UINT64_C(1) << at;
}

int decode_layout(struct layout *layout, const uint8_t *code, size_t size, size_t until,
		  const uint64_t *entries)
{
	uint64_t ahead = entries ? *entries : 0; /* where branches and entries lead */
	bool dead = false;			 /* no instruction runs on to here */
	struct layout to_jump;			 /* without what stands behind the last jump */
	size_t at = 0;
	int ret = 0;

	*layout = to_jump = (struct layout){ 0 };
	while (at < until) {
		/* The next start behind it, 64 if there is none. */
		uint64_t rest = at < 63 ? ahead >> (at + 1) << (at + 1) : 0;
		size_t target = rest ? (size_t)__builtin_ctzll(rest) : 64;
		ZydisDecodedInstruction insn;
		int64_t by;

		if (ahead & bit(at))
			dead = false;
		if (dead && entries) {
			at = target;
			continue;
		}
		ret = decode_one(code + at, size - at, &insn);
		/*
		 * Bytes behind a jump are code if instructions fill them up to the jump's target;
		 * else another change left them there.
		 */
		if (dead && target < 64 && (ret < 0 || at + insn.length > target)) {
			*layout = to_jump;
			at = target;
			ret = 0;
			continue;
		}
		if (ret < 0)
			break;
		layout->starts |= bit(at);
		layout->len[at] = insn.length;
		if (dead)
			layout->after_jump |= bit(at);
		if (insn.attributes & ZYDIS_ATTRIB_IS_RELATIVE)
			layout->relative |= bit(at);
		if (code[at] == NOP)
			layout->nops |= bit(at);
		at += insn.length;
		/* A branch makes an entry of where it goes, if that is in the stretch and ahead. */
		by = insn.raw.imm[0].is_relative ? insn.raw.imm[0].value.s : 0;
		if (by > 0 && (uint64_t)by < size - at)
			ahead |= bit(at + (size_t)by);
		if (is_end(insn.mnemonic)) {
			if (!dead)
				to_jump = *layout;
			dead = true;
		}
	}
	layout->leaves = ret == 0 && at == 64;
	layout->end = at;
	return ret;
}
