/* SPDX-License-Identifier: MIT */
#include "probes/calls/jumps.h"

#include <string.h>

#include <Zydis/Zydis.h>

#include "probes/tables/decode.h"
#include "probes/tables/tables.h"

static bool is_entered(void *data, uint64_t at)
{
	const struct jumps *jumps = data;
	size_t i = entered_from(jumps->entered, at);
	const struct elf_symbol *symbol = elf_function_from(jumps->symbols, at);

	return (i < jumps->entered->n && jumps->entered->place[i].at == at) ||
	       (symbol && symbol->addr == at);
}

/* Through a slot that the loader fills in: to the entry of a function. */
static bool leaves_part(void *data, const ZydisDecodedInstruction *insn, uint64_t next)
{
	const struct elf *elf = ((const struct jumps *)data)->elf;
	uint64_t slot = next + (uint64_t)insn->raw.disp.value;
	struct elf_section section;

	for (uint32_t i = 0; i < elf->number && is_relative(insn); i++)
		if (elf_section(elf, i, &section) && slot - section.addr < section.len &&
		    !strncmp(section.name, ".got", strlen(".got")))
			return true;
	return false;
}

static bool begins_part(void *data, uint64_t at)
{
	const struct elf_symbol *symbol =
		elf_function_from(((const struct jumps *)data)->symbols, at);

	return symbol && symbol->addr == at;
}

int jumps_follow(const struct jumps *jumps, const struct elf_symbol *function, const uint8_t *code,
		 uint64_t **to, uint32_t *n)
{
	struct jumps own = *jumps;
	struct tables_targets targets;
	ZydisDecoder decoder;
	int ret;

	*to = NULL;
	*n = 0;
	if (ZYAN_FAILED(
		    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		return 0;
	ret = tables_follow(&(struct tables_function){ .elf = jumps->elf,
						       .decoder = &decoder,
						       .addr = function->addr,
						       .end = function->addr + function->size,
						       .bytes = code,
						       .data = &own,
						       .entered = is_entered,
						       .leaves = leaves_part,
						       .begins = begins_part },
			    &targets);
	*to = targets.to;
	*n = targets.n;
	return ret;
}
