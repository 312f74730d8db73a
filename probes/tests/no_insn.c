/* SPDX-License-Identifier: MIT */
/* In place of the decoder in a program that is linked statically: Zydis mostly comes as a shared library alone. */
#include "probes/insn/insn.h"

bool insn_read(struct insn *insn, const uint8_t *code, uint64_t len, uint64_t at)
{
	(void)insn;
	(void)code;
	(void)len;
	(void)at;
	return false;
}

int jumps_follow(const struct branches *branches, uint32_t index, struct function_code *code)
{
	(void)branches;
	(void)index;
	(void)code;
	return 0;
}

struct effects effects_read(uintptr_t function)
{
	(void)function;
	return (struct effects){ 0 };
}
