/* SPDX-License-Identifier: MIT */
/*
 * Every direct branch of a file first; then the tables of indirect jumps; then one function after
 * another: what stands at its entry, and what leads there.
 */
#include "probes/entries/survey.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/elf/array.h"
#include "probes/elf/sorted.h"
#include "probes/entries/program.h"
#include "probes/insn/jump_table.h"

#define ENDBR_LEN 4
#define LINE	  16 /* functions are aligned to that where bytes are left between them */

/* --- Branches --------------------------------------------------------------------------------- */

static int add_branch(struct state *state, uint64_t to, uint32_t from, enum kind kind)
{
	return ARRAY_ADD(state->branch, state->branches, (struct branch){ to, from, kind });
}

static enum kind kind_of(const struct insn *insn)
{
	if (insn->flow == FLOW_CALL)
		return CALL;
	return insn->flow == FLOW_JUMP ? JUMP : CONDITIONAL;
}

/* Functions that do not come out as instructions are like gaps between functions. */
static int read_function(struct state *state, uint32_t index)
{
	struct function *function = &state->function[index];
	uint64_t len = function->end - function->addr;
	size_t before = state->branches;
	struct insn insn;

	for (uint64_t at = 0; at < len; at += insn.len) {
		if (!insn_read(&insn, function->bytes + at, len - at, function->addr + at)) {
			state->branches = before;
			return 0;
		}
		if (insn.target && add_branch(state, insn.target, index, kind_of(&insn)) < 0)
			return -ENOMEM;
		/* By the GOT it leads to the entry of a function. */
		if (insn.flow == FLOW_INDIRECT && !function->indirect &&
		    !(insn.memory && elf_in_section(state->elf, insn.memory, ".got")))
			function->indirect = true;
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

ORDER_BY(by_target, struct branch, to)

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

static bool begins(void *data, uint64_t at)
{
	const struct state *state = ((const struct own *)data)->state;
	uint32_t index = program_function(state, at);

	return index != NOBODY && state->function[index].decoded &&
	       state->function[index].addr == at;
}

static int follow_function(struct own *own, struct jump_targets *targets)
{
	const struct function *function = &own->state->function[own->index];
	const struct jumps jumps = {
		.elf = own->state->elf, .data = own, .entered = is_entered, .begins = begins
	};
	struct function_code code;
	int ret = function_read(&code, function->bytes, function->addr,
				function->end - function->addr);

	*targets = (struct jump_targets){ 0 };
	if (ret)
		ret = ret == -ENOMEM ? ret : 0;
	else
		ret = jumps_follow(&jumps, &code, targets);
	function_free(&code);
	return ret;
}

/* Where they lead is then known as of other branches, and the function has no indirect jump. */
static int follow_tables(struct state *state)
{
	struct own own = { .state = state, .branches = state->branches };
	int ret = 0;

	for (own.index = 0; own.index < state->n && ret >= 0; own.index++) {
		struct function *function = &state->function[own.index];
		struct jump_targets targets;

		if (!function->decoded || !function->indirect)
			continue;
		ret = follow_function(&own, &targets);
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
	return ARRAY_ADD(state->link, state->links, (struct link){ a, b });
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

static const char *cannot_move(const struct insn *insn)
{
	if (insn->flow == FLOW_CALL)
		return "a call stands in its first five bytes";
	if (insn->traps)
		return "a system call or a trap stands in its first five bytes";
	if (insn->flow == FLOW_INDIRECT)
		return "an indirect jump stands in its first five bytes";
	if (insn->only_short)
		return "a branch that has no long form stands in its first five bytes";
	return NULL;
}

/* Whether len bytes behind a function are what fills the line up. */
static bool is_padding(const struct state *state, const struct function *function, uint64_t len)
{
	const struct piece *code = program_piece(state, function->end, len);
	uint64_t end = function->end;
	struct insn insn;

	if (!code || (end - 1) / LINE != (end + len - 1) / LINE)
		return false;
	for (uint64_t at = end - code->addr; at < end - code->addr + len; at += insn.len)
		if (!insn_read(&insn, code->bytes + at, code->len - at, 0) || !insn.is_nop)
			return false;
	return true;
}

static const char *take_code(const struct state *state, const struct function *function,
			     struct survey_site *site)
{
	static const uint8_t endbr64[ENDBR_LEN] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint64_t len = function->end - function->addr;
	const uint8_t *code = function->bytes;
	struct insn insn;
	const char *why;

	if (len >= ENDBR_LEN && !memcmp(code, endbr64, ENDBR_LEN)) {
		site->site += ENDBR_LEN;
		code += ENDBR_LEN;
		len -= ENDBR_LEN;
	}
	while (site->len < SURVEY_JUMP && site->len < len && !site->ends) {
		if (!insn_read(&insn, code + site->len, len - site->len, 0))
			return "its first bytes are no instructions";
		why = cannot_move(&insn);
		if (why)
			return why;
		site->starts |= (uint8_t)(1u << site->len);
		site->len = (uint8_t)(site->len + insn.len);
		site->ends = insn.flow > FLOW_BRANCH;
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
	if (insn_support())
		return insn_support();
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
