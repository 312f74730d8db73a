/* SPDX-License-Identifier: MIT */
/* A decoded instruction with its operands. */
#ifndef PROBES_INSN_ZYDIS_H
#define PROBES_INSN_ZYDIS_H

#include <stdbool.h>
#include <stdint.h>

#include <Zydis/Zydis.h>

#include "probes/insn/insn.h"

struct decoded {
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
};

/* insn_decoder - of 64-bit code. */
const ZydisDecoder *insn_decoder(void);

/* insn_decode - with operands; those that the instruction has not are zero. */
bool insn_decode(struct decoded *decoded, const uint8_t *code, uint64_t len);

/* register_number - 0 to 15; -1: no general register. */
int register_number(ZydisRegister reg);

/* registers_read, registers_written - a bit for each general register; also of addresses. */
uint16_t registers_read(const struct decoded *decoded);
uint16_t registers_written(const struct decoded *decoded);

/* low_register - of an operand that is a register whose low bits are meant; else -1. */
int low_register(const ZydisDecodedOperand *operand);

#endif
