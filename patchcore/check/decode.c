/* SPDX-License-Identifier: MIT */
#include "patchcore/check/decode.h"

#include <Zydis/Zydis.h>
#include <errno.h>

#define NOP 0x90

struct insn {
	size_t len;
	bool jumps;    /* never runs on into the next */
	bool relative; /* to RIP */
	bool nop;      /* of one byte */
	int64_t by;    /* how far a relative branch goes from its end; 0 if it is none */
};

/* 0, or as decode_layout(). */
static int decode_as(bool amd, const uint8_t *code, size_t size, ZydisDecodedInstruction *insn)
{
	ZydisDecoder decoder;
	ZyanStatus status;

	if (ZYAN_FAILED(
		    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
	    ZYAN_FAILED(ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_AMD_BRANCHES, amd)))
		return -ENOEXEC;
	status = ZydisDecoderDecodeInstruction(&decoder, NULL, code, size, insn);
	if (ZYAN_SUCCESS(status))
		return 0;
	return status == ZYDIS_STATUS_NO_MORE_DATA ? -EFAULT : -ENOEXEC;
}

static bool never_runs_on(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_JMP:
	case ZYDIS_MNEMONIC_RET:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
		return true;
	default:
		return false;
	}
}

static int decode(const uint8_t *code, size_t size, struct insn *insn)
{
	ZydisDecodedInstruction intel, amd;
	int ret = decode_as(false, code, size, &intel);

	if (ret < 0)
		return ret;
	/* Intel ignores 66 before a near branch, AMD takes two bytes of operand. */
	if (decode_as(true, code, size, &amd) < 0 || amd.length != intel.length)
		return -ENOEXEC;
	*insn = (struct insn){
		.len = intel.length,
		.jumps = never_runs_on(intel.mnemonic),
		.relative = intel.attributes & ZYDIS_ATTRIB_IS_RELATIVE,
		.nop = code[0] == NOP,
		.by = intel.raw.imm[0].is_relative ? intel.raw.imm[0].value.s : 0,
	};
	return 0;
}

static uint64_t bit(size_t at)
{
	return UINT64_C(1) << at;
}

/* The next start at or behind `at`, 64 if there is none. */
static size_t next_of(uint64_t starts, size_t at)
{
	uint64_t rest = at < 64 ? starts >> at << at : 0;

	return rest ? (size_t)__builtin_ctzll(rest) : 64;
}

/* A branch makes an entry of where it goes, if that is in the stretch and ahead. */
static uint64_t target_of(const struct insn *insn, size_t end, size_t size)
{
	if (!insn->by || insn->by < 0 || (uint64_t)insn->by >= size - end)
		return 0;
	return bit(end + (size_t)insn->by);
}

static uint64_t below(size_t at)
{
	return at < 64 ? bit(at) - 1 : ~UINT64_C(0);
}

static void note_insn(struct layout *layout, const struct insn *insn, size_t at, bool behind_jump)
{
	layout->starts |= bit(at);
	layout->len[at] = (uint8_t)insn->len;
	if (behind_jump)
		layout->after_jump |= bit(at);
	if (insn->relative)
		layout->relative |= bit(at);
	if (insn->nop)
		layout->nops |= bit(at);
}

static void forget_starts(struct layout *layout, size_t from, size_t to)
{
	uint64_t kept = ~(below(to) & ~below(from));

	layout->starts &= kept;
	layout->after_jump &= kept;
	layout->relative &= kept;
	layout->nops &= kept;
}

/* How a walk over the code stands. */
struct walk {
	size_t at;
	uint64_t ahead; /* where branches and entries lead */
	bool dead;	/* no instruction runs on to here */
	size_t dead_from;
};

/*
 * One instruction. What stands behind a jump is taken for code as long as it
 * comes out even where the jump leads; else it is what another change left there.
 */
static int step_over_insn(struct layout *layout, struct walk *walk, const uint8_t *code,
			  size_t size)
{
	size_t at = walk->at, target = next_of(walk->ahead, at + 1);
	struct insn insn;
	int ret = decode(code + at, size - at, &insn);

	if (walk->dead && target < 64 && (ret < 0 || at + insn.len > target)) {
		forget_starts(layout, walk->dead_from, at);
		walk->at = target;
		return 0;
	}
	if (ret < 0)
		return ret;
	note_insn(layout, &insn, at, walk->dead);
	walk->at = at + insn.len;
	walk->ahead |= target_of(&insn, walk->at, size);
	if (insn.jumps && !walk->dead)
		walk->dead_from = walk->at;
	walk->dead |= insn.jumps;
	return 0;
}

int decode_layout(struct layout *layout, const uint8_t *code, size_t size, size_t until,
		  const uint64_t *entries)
{
	struct walk walk = { .ahead = entries ? *entries : 0 };

	*layout = (struct layout){ 0 };
	while (walk.at < until) {
		int ret;

		if (walk.ahead & bit(walk.at))
			walk.dead = false;
		if (walk.dead && entries) {
			walk.at = next_of(walk.ahead, walk.at);
			continue;
		}
		ret = step_over_insn(layout, &walk, code, size);
		if (ret < 0) {
			layout->end = walk.at;
			return ret;
		}
	}
	layout->leaves = walk.at == 64;
	layout->end = walk.at;
	return 0;
}
