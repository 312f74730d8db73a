/* SPDX-License-Identifier: MIT */
#include "probes/entries/survey.h"
#include "probes/elf/sorted.h"

#include <Zydis/Zydis.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/entries/program.h"
#include "probes/tables/decode.h"
#include "probes/tables/tables.h"

#define ENDBR_LEN 4
#define LINE	  16 /* functions are aligned to that where bytes are left between them */

/* --- Branches --------------------------------------------------------------------------------- */

static int add_branch(struct state *state, uint64_t to, uint32_t from, enum kind kind)
{
	if (state->branches == state->room) {
		size_t room = state->room ? 2 * state->room : 4096;
		struct branch *more = realloc(state->branch, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		state->branch = more;
		state->room = room;
	}
	state->branch[state->branches++] = (struct branch){ to, from, kind };
	return 0;
}

static bool decode_insn(const struct state *state, const uint8_t *code, uint64_t len,
			ZydisDecodedInstruction *insn)
{
	if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&state->decoder, NULL, code, len, insn)))
		return false;
	/* Of other lengths by other vendors. */
	return !(insn->raw.imm[0].is_relative && insn->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE);
}

static enum kind kind_of(const ZydisDecodedInstruction *insn)
{
	if (insn->mnemonic == ZYDIS_MNEMONIC_CALL)
		return CALL;
	return insn->mnemonic == ZYDIS_MNEMONIC_JMP ? JUMP : CONDITIONAL;
}

/* Through a slot that the loader fills in: to the entry of a function. */
static bool by_got(const struct state *state, const ZydisDecodedInstruction *insn, uint64_t next)
{
	uint64_t slot = next + (uint64_t)insn->raw.disp.value;

	if (!is_relative(insn))
		return false;
	for (size_t i = 0; i < state->gots; i++)
		if (slot >= state->got[i].addr && slot - state->got[i].addr < state->got[i].len)
			return true;
	return false;
}

/* False: not all of it comes out as instructions. */
static int read_function(struct state *state, uint32_t index)
{
	struct function *function = &state->function[index];
	uint64_t len = function->end - function->addr;
	size_t before = state->branches;
	ZydisDecodedInstruction insn;

	for (uint64_t at = 0; at < len; at += insn.length) {
		uint64_t next;

		if (!decode_insn(state, function->bytes + at, len - at, &insn)) {
			state->branches = before;
			return 0;
		}
		next = function->addr + at + insn.length;
		if (insn.raw.imm[0].is_relative) {
			if (add_branch(state, next + insn.raw.imm[0].value.u, index,
				       kind_of(&insn)) < 0)
				return -ENOMEM;
		} else if (insn.mnemonic == ZYDIS_MNEMONIC_JMP && !by_got(state, &insn, next)) {
			function->indirect = true;
		}
	}
	function->decoded = true;
	return 0;
}

/* A branch may begin at any of these bytes, and reach over their end. */
static int read_gap(struct state *state, const struct piece *code, uint64_t from, uint64_t to)
{
	int ret = 0;

	for (uint64_t at = from; at < to && !ret; at++) {
		const uint8_t *bytes = code->bytes + at;
		uint64_t left = code->len - at, next = code->addr + at;
		int32_t far = 0;

		if (left >= 2 && (bytes[0] >> 4 == 7 || bytes[0] == 0xeb ||
				  (bytes[0] >= 0xe0 && bytes[0] <= 0xe3)))
			ret = add_branch(state, next + 2 + (uint64_t)(int64_t)(int8_t)bytes[1],
					 NOBODY, MAYBE);
		if (left >= 5 && (bytes[0] & 0xfe) == 0xe8)
			memcpy(&far, bytes + 1, sizeof(far));
		if (!ret && far)
			ret = add_branch(state, next + 5 + (uint64_t)(int64_t)far, NOBODY, MAYBE);
		far = 0;
		if (left >= 6 && bytes[0] == 0x0f && bytes[1] >> 4 == 8)
			memcpy(&far, bytes + 2, sizeof(far));
		if (!ret && far)
			ret = add_branch(state, next + 6 + (uint64_t)(int64_t)far, NOBODY, MAYBE);
	}
	return ret;
}

static int read_gaps(struct state *state)
{
	int ret = 0;

	for (size_t i = 0; i < state->codes && !ret; i++) {
		const struct piece *code = &state->code[i];
		uint64_t from = 0;

		for (uint32_t k = 0; k < state->n && !ret; k++) {
			const struct function *function = &state->function[k];
			uint64_t at = function->addr - code->addr;

			if (function->addr < code->addr || at >= code->len || !function->decoded)
				continue;
			ret = read_gap(state, code, from, at);
			from = function->end - code->addr;
		}
		if (!ret)
			ret = read_gap(state, code, from, code->len);
	}
	return ret;
}

static int by_target(const void *a, const void *b)
{
	const struct branch *one = a, *two = b;

	return one->to < two->to ? -1 : one->to > two->to;
}

/* The first at or behind an address, of those that are sorted. */
static size_t branch_from(const struct state *state, uint64_t to, size_t sorted)
{
	return SORTED_FROM(state->branch, sorted, to, to);
}

/* --- Jumps by tables -------------------------------------------------------------------------- */

struct own {
	struct state *state;
	uint32_t index;	 /* of the function */
	size_t branches; /* that are sorted */
};

static bool is_entered(void *data, uint64_t at)
{
	const struct own *own = data;
	const struct state *state = own->state;
	const struct elf_symbol *symbol;

	for (size_t i = branch_from(state, at, own->branches);
	     i < own->branches && state->branch[i].to == at; i++)
		if (state->branch[i].from != own->index)
			return true;
	symbol = elf_function_from(&state->survey->symbols, at);
	return symbol && symbol->addr == at;
}

static bool leaves(void *data, const ZydisDecodedInstruction *insn, uint64_t next)
{
	const struct own *own = data;

	return by_got(own->state, insn, next);
}

static bool begins(void *data, uint64_t at)
{
	const struct state *state = ((const struct own *)data)->state;
	uint32_t index = program_function(state, at);

	return index != NOBODY && state->function[index].decoded &&
	       state->function[index].addr == at;
}

/* Where they lead is then known as of other branches, and the function has no indirect jump. */
static int follow_tables(struct state *state)
{
	struct own own = { .state = state, .branches = state->branches };
	int ret = 0;

	for (own.index = 0; own.index < state->n && ret >= 0; own.index++) {
		struct function *function = &state->function[own.index];
		struct tables_targets targets;

		if (!function->decoded || !function->indirect)
			continue;
		ret = tables_follow(&(struct tables_function){ .elf = state->elf,
							       .decoder = &state->decoder,
							       .addr = function->addr,
							       .end = function->end,
							       .bytes = function->bytes,
							       .data = &own,
							       .entered = is_entered,
							       .leaves = leaves,
							       .begins = begins },
				    &targets);
		function->indirect = ret <= 0;
		for (uint32_t i = 0; i < targets.n && ret > 0; i++)
			if (add_branch(state, targets.to[i], own.index, CONDITIONAL) < 0)
				ret = -ENOMEM;
		free(targets.to);
	}
	return ret < 0 ? ret : 0;
}

/* --- Parts of one function -------------------------------------------------------------------- */

static int add_link(struct state *state, uint32_t a, uint32_t b)
{
	if (state->links == state->links_room) {
		size_t room = state->links_room ? 2 * state->links_room : 256;
		struct link *more = realloc(state->link, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		state->link = more;
		state->links_room = room;
	}
	state->link[state->links++] = (struct link){ a, b };
	return 0;
}

static void sort_branches(struct state *state)
{
	if (state->branches)
		qsort(state->branch, state->branches, sizeof(*state->branch), by_target);
}

static int find_links(struct state *state)
{
	int ret = 0;

	for (size_t i = 0; i < state->branches && !ret; i++) {
		const struct branch *branch = &state->branch[i];
		uint32_t to = program_function(state, branch->to);

		if (branch->kind == CALL || branch->kind == MAYBE || to == NOBODY ||
		    to == branch->from)
			continue;
		if (branch->kind == CONDITIONAL || branch->to != state->function[to].addr)
			ret = add_link(state, branch->from, to);
	}
	return ret;
}

static void spread_indirect(struct state *state)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = 0; i < state->links; i++) {
			struct function *a = &state->function[state->link[i].a];
			struct function *b = &state->function[state->link[i].b];

			if (a->indirect == b->indirect)
				continue;
			a->indirect = b->indirect = true;
			changed = true;
		}
	}
}

/* --- A site ----------------------------------------------------------------------------------- */

static const char *cannot_move(const ZydisDecodedInstruction *insn)
{
	if (insn->mnemonic == ZYDIS_MNEMONIC_CALL)
		return "a call stands in its first five bytes";
	if (insn->meta.category == ZYDIS_CATEGORY_SYSCALL ||
	    insn->meta.category == ZYDIS_CATEGORY_INTERRUPT)
		return "a system call or a trap stands in its first five bytes";
	if (insn->mnemonic == ZYDIS_MNEMONIC_JMP && !insn->raw.imm[0].is_relative)
		return "an indirect jump stands in its first five bytes";
	if (insn->raw.imm[0].is_relative &&
	    (insn->raw.prefix_count ||
	     (insn->mnemonic != ZYDIS_MNEMONIC_JMP &&
	      insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && insn->opcode >> 4 != 7)))
		return "a branch that has no long form stands in its first five bytes";
	return NULL;
}

static bool leads_away(const ZydisDecodedInstruction *insn)
{
	return insn->mnemonic == ZYDIS_MNEMONIC_JMP || insn->mnemonic == ZYDIS_MNEMONIC_RET ||
	       insn->mnemonic == ZYDIS_MNEMONIC_UD2 || insn->mnemonic == ZYDIS_MNEMONIC_HLT;
}

/* Whether len bytes behind a function are what fills the line up. */
static bool is_padding(const struct state *state, const struct function *function, uint64_t len)
{
	const struct piece *code = program_piece(state, function->end, len);
	const uint8_t *bytes;
	ZydisDecodedInstruction insn;

	if (!code || (function->end - 1) / LINE != (function->end + len - 1) / LINE)
		return false;
	bytes = code->bytes + (function->end - code->addr);
	for (uint64_t at = 0; at < len; at += insn.length)
		if (!decode_insn(state, bytes + at, code->len - (function->end - code->addr) - at,
				 &insn) ||
		    (insn.mnemonic != ZYDIS_MNEMONIC_NOP && insn.mnemonic != ZYDIS_MNEMONIC_INT3))
			return false;
	return true;
}

static const char *take_code(const struct state *state, const struct function *function,
			     struct survey_site *site)
{
	static const uint8_t endbr64[ENDBR_LEN] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint64_t len = function->end - function->addr;
	const uint8_t *code = function->bytes;
	ZydisDecodedInstruction insn;
	const char *why;

	if (len >= ENDBR_LEN && !memcmp(code, endbr64, ENDBR_LEN)) {
		site->site += ENDBR_LEN;
		code += ENDBR_LEN;
		len -= ENDBR_LEN;
	}
	while (site->len < SURVEY_JUMP && site->len < len && !site->ends) {
		if (!decode_insn(state, code + site->len, len - site->len, &insn))
			return "its first bytes are no instructions";
		why = cannot_move(&insn);
		if (why)
			return why;
		site->starts |= (uint8_t)(1u << site->len);
		site->len = (uint8_t)(site->len + insn.length);
		site->ends = leads_away(&insn);
	}
	if (!site->len)
		return "it has no code";
	memcpy(site->code, code, site->len);
	if (site->len >= SURVEY_JUMP)
		return NULL;
	if (!site->ends || site->len != len || !is_padding(state, function, SURVEY_JUMP - len))
		return "it ends, or leads elsewhere, within five bytes";
	/* What is written over. */
	memcpy(site->code, code, SURVEY_JUMP);
	return NULL;
}

static const char *led_into(const struct state *state, uint32_t index,
			    const struct survey_site *site)
{
	for (size_t i = branch_from(state, site->function, state->branches);
	     i < state->branches && state->branch[i].to < site->site + SURVEY_JUMP; i++) {
		const struct branch *branch = &state->branch[i];
		bool at_entry = branch->to == site->function || branch->to == site->site;

		if (!at_entry && branch->to > site->site)
			return "a branch leads into its first five bytes";
		if (at_entry && branch->kind == CONDITIONAL)
			return "a conditional branch leads to it: it is a loop, or a part of "
			       "another function";
		if (at_entry && branch->kind == JUMP && branch->from == index)
			return "it begins with a loop";
	}
	return NULL;
}

static bool labelled(const struct elf_symbols *symbols, const struct survey_site *site)
{
	const struct elf_symbol *symbol = elf_function_from(symbols, site->site + 1);

	return symbol && symbol->addr < site->site + SURVEY_JUMP;
}

static const char *refusal_of_function(const struct state *state, uint32_t index,
				       struct survey_site *site)
{
	const struct function *function = &state->function[index];
	const char *why = take_code(state, function, site);

	if (state->has_branches)
		return "the object has static branches, which lead to places of their own";
	if (state->is_go)
		return "Go's runtime reads return addresses and moves stacks, by tables of its own";
	if (!function->decoded)
		return "it does not come out as instructions";
	if (why)
		return why;
	if (function->indirect)
		return "it has an indirect jump, which may lead anywhere in it";
	if (labelled(&state->survey->symbols, site) || labelled(&state->survey->frames, site))
		return "another function begins in its first five bytes";
	return led_into(state, index, site);
}

static int take_sites(struct state *state)
{
	struct survey *survey = state->survey;

	survey->site = calloc(state->n + 1, sizeof(*survey->site));
	if (!survey->site)
		return -ENOMEM;
	for (uint32_t i = 0; i < state->n; i++) {
		struct survey_site *site = &survey->site[survey->n++];

		site->function = site->site = state->function[i].addr;
		site->end = state->function[i].end;
		site->name = state->function[i].name;
		site->reason = refusal_of_function(state, i, site);
		survey->usable += !site->reason;
	}
	return 0;
}

int survey_make(struct survey *survey, const struct elf *elf)
{
	struct state state = { .elf = elf, .survey = survey };
	int ret;

	*survey = (struct survey){ 0 };
	if (ZYAN_FAILED(ZydisDecoderInit(&state.decoder, ZYDIS_MACHINE_MODE_LONG_64,
					 ZYDIS_STACK_WIDTH_64)))
		return -ENOTSUP;
	program_sections(&state);
	ret = program_functions(&state);
	for (uint32_t i = 0; i < state.n && !ret; i++)
		ret = read_function(&state, i);
	if (!ret)
		ret = read_gaps(&state);
	if (!ret) {
		sort_branches(&state);
		ret = follow_tables(&state);
	}
	if (!ret) {
		sort_branches(&state);
		ret = find_links(&state);
	}
	if (!ret)
		spread_indirect(&state);
	if (!ret)
		ret = take_sites(&state);
	free(state.function);
	free(state.branch);
	free(state.link);
	return ret;
}

void survey_free(struct survey *survey)
{
	free(survey->site);
	elf_free(&survey->symbols);
	elf_free(&survey->frames);
	*survey = (struct survey){ 0 };
}
