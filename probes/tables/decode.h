/* SPDX-License-Identifier: MIT */
/* What is looked at in a decoded instruction. */
#ifndef PROBES_TABLES_DECODE_H
#define PROBES_TABLES_DECODE_H

#include <stdbool.h>

#include <Zydis/Zydis.h>

/* Whether it has an operand relative to rip. */
static inline bool is_relative(const ZydisDecodedInstruction *insn)
{
	return insn->attributes & ZYDIS_ATTRIB_HAS_MODRM && insn->raw.modrm.mod == 0 &&
	       insn->raw.modrm.rm == 5;
}

#endif
