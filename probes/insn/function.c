/* SPDX-License-Identifier: MIT */
/* One function's instructions, from its first byte to its last, and its branches. */
#include "probes/insn/insn.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

uint32_t function_index(const struct function_code *code, uint64_t at)
{
	size_t i = SORTED_FROM(code->insn, code->n, at, at);

	return i < code->n && code->insn[i].at == at ? (uint32_t)i : INSN_NONE;
}

static void link_branches(struct function_code *code)
{
	for (uint32_t i = 0; i < code->n; i++) {
		struct insn *insn = &code->insn[i];

		if ((insn->flow != FLOW_BRANCH && insn->flow != FLOW_JUMP) ||
		    insn->target < code->addr || insn->target >= code->end)
			continue;
		insn->to = function_index(code, insn->target);
		if (insn->to == INSN_NONE)
			code->overlaps = true;
		else
			code->insn[insn->to].into++;
	}
}

int function_read(struct function_code *code, const uint8_t *bytes, uint64_t addr, uint64_t len)
{
	struct insn insn;

	*code = (struct function_code){ .bytes = bytes, .addr = addr, .end = addr + len };
	for (uint64_t at = 0; at < len; at += insn.len) {
		if (code->n == INSN_NONE || !insn_read(&insn, bytes + at, len - at, addr + at))
			return -ENOEXEC;
		if (ARRAY_ADD(code->insn, code->n, insn))
			return -ENOMEM;
		code->indirect |= insn.flow == FLOW_INDIRECT;
	}
	link_branches(code);
	return 0;
}

void function_free(struct function_code *code)
{
	free(code->insn);
	free(code->target);
	*code = (struct function_code){ 0 };
}

struct insn *function_at(struct function_code *code, uint64_t at)
{
	uint32_t index = function_index(code, at);

	return index == INSN_NONE ? NULL : &code->insn[index];
}

void function_open(struct function_code *code, uint64_t at)
{
	struct insn *insn = function_at(code, at);

	if (insn)
		insn->open = true;
}

void function_open_all(struct function_code *code)
{
	for (uint32_t i = 0; i < code->n; i++)
		code->insn[i].open = true;
}
