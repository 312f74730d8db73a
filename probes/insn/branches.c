/* SPDX-License-Identifier: MIT */
/*
 * All direct branches of a file. Each function is decoded from its beginning to its end; where that
 * fails, and between functions, a branch is taken to begin at every byte.
 */
#include "probes/insn/insn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* --- Code and functions ----------------------------------------------------------------------- */

ORDER_BY(by_place, struct elf_section, addr)

static void find_sections(struct branches *branches)
{
	struct elf_section section;

	for (uint32_t i = 0; elf_next_section(branches->elf, &i, &section);)
		if (section.bytes && section.flags & SHF_EXECINSTR && section.len &&
		    section.len <= UINT64_MAX - section.addr &&
		    branches->sections < BRANCH_SECTIONS)
			branches->section[branches->sections++] = section;
	qsort(branches->section, branches->sections, sizeof(*branches->section), by_place);
}

const struct elf_section *branches_code(const struct branches *branches, uint64_t addr,
					uint64_t len)
{
	for (size_t i = 0; i < branches->sections; i++) {
		const struct elf_section *code = &branches->section[i];

		if (addr >= code->addr && addr - code->addr < code->len &&
		    len <= code->len - (addr - code->addr))
			return code;
	}
	return NULL;
}

/* A symbol inside of another function is a label of that. */
static void add_function(struct branches *branches, const struct elf_symbol *symbol)
{
	const struct elf_section *code = branches_code(branches, symbol->addr, symbol->size);
	uint64_t end = branches->n ? branches->function[branches->n - 1].end : 0;

	if (!code || !symbol->size || symbol->addr < end ||
	    elf_in_section(branches->elf, symbol->addr, ".plt"))
		return;
	branches->function[branches->n++] = (struct code_function){
		.addr = symbol->addr,
		.end = symbol->addr + symbol->size,
		.bytes = code->bytes + (symbol->addr - code->addr),
		.name = symbol->name,
	};
}

uint32_t branches_function(const struct branches *branches, uint64_t addr)
{
	size_t i = SORTED_FROM(branches->function, branches->n, end, addr + 1);

	return i < branches->n && branches->function[i].addr <= addr ? (uint32_t)i : INSN_NONE;
}

/* --- Branches --------------------------------------------------------------------------------- */

int branches_add(struct branches *branches, uint64_t to, uint32_t from, enum branch_kind kind)
{
	return ARRAY_ADD(branches->branch, branches->count, (struct branch){ to, from, kind });
}

/* The target of the direct branch that bytes would be if an instruction began there. */
static bool guess_target(const uint8_t *bytes, uint64_t len, uint64_t at, uint64_t *target)
{
	bool is_jcc = len >= 2 && bytes[0] == 0x0f && bytes[1] >> 4 == 8;
	bool is_short = bytes[0] >> 4 == 7 || bytes[0] == 0xeb || (bytes[0] & 0xfc) == 0xe0;
	size_t size = is_jcc ? 6 : is_short ? 2 : 5;
	int32_t rel = is_short && len >= 2 ? (int8_t)bytes[1] : 0;

	if (len < size || !(is_jcc || is_short || (bytes[0] & 0xfe) == 0xe8))
		return false;
	if (!is_short)
		memcpy(&rel, bytes + size - sizeof(rel), sizeof(rel));
	*target = at + size + (uint64_t)(int64_t)rel;
	return true;
}

static enum branch_kind find_kind(const struct insn *insn)
{
	if (insn->flow == FLOW_CALL)
		return BRANCH_CALL;
	return insn->flow == FLOW_JUMP ? BRANCH_JUMP : BRANCH_CONDITIONAL;
}

/* A function that cannot be decoded is read like a gap between functions. */
static int read_function(struct branches *branches, uint32_t index)
{
	struct code_function *function = &branches->function[index];
	uint64_t len = function->end - function->addr;
	size_t before = branches->count;
	struct insn insn;

	for (uint64_t at = 0; at < len; at += insn.len) {
		if (!insn_read(&insn, function->bytes + at, len - at, function->addr + at)) {
			branches->count = before;
			return 0;
		}
		if (insn.target && branches_add(branches, insn.target, index, find_kind(&insn)) < 0)
			return -ENOMEM;
		/* A jump by the GOT leads to the entry of a function. */
		if (insn.flow == FLOW_INDIRECT && !function->indirect &&
		    !(insn.memory && elf_in_section(branches->elf, insn.memory, ".got")))
			function->indirect = true;
	}
	function->decoded = true;
	return 0;
}

/* A branch may begin at any of these bytes, and reach over their end. */
static int read_gap(struct branches *branches, const struct elf_section *code, uint64_t from,
		    uint64_t to)
{
	uint64_t target;
	int ret = 0;

	for (uint64_t at = from; at < to && !ret; at++)
		if (guess_target(code->bytes + at, code->len - at, code->addr + at, &target))
			ret = branches_add(branches, target, INSN_NONE, BRANCH_MAYBE);
	return ret;
}

static int read_gaps(struct branches *branches, const struct elf_section *code)
{
	uint64_t from = 0;
	int ret = 0;

	for (uint32_t k = 0; k < branches->n && !ret; k++) {
		const struct code_function *function = &branches->function[k];
		uint64_t at = function->addr - code->addr;

		if (function->addr < code->addr || at >= code->len || !function->decoded)
			continue;
		ret = read_gap(branches, code, from, at);
		from = function->end - code->addr;
	}
	return ret ? ret : read_gap(branches, code, from, code->len);
}

ORDER_BY(by_target, struct branch, to)

void branches_sort(struct branches *branches)
{
	if (branches->count)
		qsort(branches->branch, branches->count, sizeof(*branches->branch), by_target);
	branches->sorted = branches->count;
}

size_t branches_to(const struct branches *branches, uint64_t to)
{
	return SORTED_FROM(branches->branch, branches->sorted, to, to);
}

/* --- Functions in several parts --------------------------------------------------------------- */

/* Whether it is a part of a function that may jump back to any address of that. */
static bool is_open_part(const struct code_function *function)
{
	return strstr(function->name, ".cold") && (!function->decoded || function->indirect);
}

/*
 * Code without a symbol may be a part of any function. The PLT is not, and the end of a function is
 * where compilers lead branches that are never taken.
 */
static bool leads_out(const struct branches *branches, const struct branch *branch)
{
	return branches_code(branches, branch->to, 1) &&
	       branch->to != branches->function[branch->from].end &&
	       !elf_in_section(branches->elf, branch->to, ".plt");
}

static void note_parts(struct branches *branches)
{
	for (uint32_t i = 0; i < branches->n; i++)
		branches->has_open_part |= is_open_part(&branches->function[i]);
	for (size_t i = 0; i < branches->count; i++) {
		const struct branch *branch = &branches->branch[i];
		uint32_t to = branches_function(branches, branch->to);

		if (branch->kind != BRANCH_JUMP && branch->kind != BRANCH_CONDITIONAL)
			continue;
		if (to != branch->from)
			branches->function[branch->from].is_open |=
				to == INSN_NONE ? leads_out(branches, branch)
						: is_open_part(&branches->function[to]);
	}
}

int branches_read(struct branches *branches, const struct elf *elf,
		  const struct elf_symbols *symbols)
{
	int ret = 0;

	*branches = (struct branches){ .elf = elf, .symbols = symbols };
	branches->function = calloc(symbols->n + 1, sizeof(*branches->function));
	if (!branches->function)
		return -ENOMEM;
	find_sections(branches);
	for (size_t i = 0; i < symbols->n; i++)
		add_function(branches, &symbols->symbol[i]);
	for (uint32_t i = 0; i < branches->n && !ret; i++)
		ret = read_function(branches, i);
	for (size_t i = 0; i < branches->sections && !ret; i++)
		ret = read_gaps(branches, &branches->section[i]);
	branches_sort(branches);
	note_parts(branches);
	return ret;
}

void branches_free(struct branches *branches)
{
	free(branches->function);
	free(branches->branch);
}

bool branches_enter(const struct branches *branches, uint32_t index, uint64_t at)
{
	const struct elf_symbol *symbol = elf_function_from(branches->symbols, at);

	for (size_t i = branches_to(branches, at);
	     i < branches->sorted && branches->branch[i].to == at; i++)
		if (branches->branch[i].from != index)
			return true;
	return symbol && symbol->addr == at;
}
