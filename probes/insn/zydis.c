/* SPDX-License-Identifier: MIT */
#include "probes/insn/zydis.h"

#include <pthread.h>

static ZydisDecoder decoder;

static void init_decoder(void)
{
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

static const ZydisDecoder *insn_decoder(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, init_decoder);
	return &decoder;
}

bool insn_decode(struct decoded *decoded, const uint8_t *code, uint64_t len)
{
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(insn_decoder(), code, len, &decoded->insn,
						   decoded->operand));
}

int register_number(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15)
		return -1;
	return whole - ZYDIS_REGISTER_RAX;
}

int low_register(const ZydisDecodedOperand *operand)
{
	if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    (operand->reg.value >= ZYDIS_REGISTER_AH && operand->reg.value <= ZYDIS_REGISTER_BH))
		return -1;
	return register_number(operand->reg.value);
}

static uint16_t register_bit(ZydisRegister reg)
{
	int number = register_number(reg);

	return number < 0 ? 0 : (uint16_t)(1u << number);
}

uint16_t find_registers(const struct decoded *decoded, uint8_t actions)
{
	uint16_t found = 0;

	for (int i = 0; i < decoded->insn.operand_count; i++) {
		const ZydisDecodedOperand *operand = &decoded->operand[i];

		if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER && operand->actions & actions)
			found |= register_bit(operand->reg.value);
		else if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
			 actions & ZYDIS_OPERAND_ACTION_READ)
			found |= register_bit(operand->mem.base) | register_bit(operand->mem.index);
	}
	return found;
}
