/* SPDX-License-Identifier: MIT */
/*
 * First all direct branches of a file are found, then the jump tables of its functions. Then, for
 * one function after another, the instructions at its entry and the branches to them are judged.
 */
#include "probes/entries/survey.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/core/provider.h"
#include "probes/insn/insn.h"

#define ENDBR_LEN 4
#define LINE	  16 /* functions are aligned to that where bytes are left between them */

struct surveyed_program {
	struct branches code;
	struct elf_symbols symbols; /* also of functions without names */
	bool has_branches;	    /* sites that libfastinst changes itself */
	bool is_go;
};

/* --- Jumps by tables -------------------------------------------------------------------------- */

/* The targets of proven tables become branches, and the function has no indirect jump any more. */
static int follow_function(struct branches *branches, uint32_t index)
{
	struct code_function *function = &branches->function[index];
	struct function_code code;
	int ret = function_read(&code, function->bytes, function->addr,
				function->end - function->addr);

	if (ret)
		ret = ret == -ENOMEM ? ret : 0;
	else
		ret = jumps_follow(branches, index, &code);
	function->indirect = ret <= 0;
	for (uint32_t i = 0; i < code.targets && ret > 0; i++)
		if (branches_add(branches, code.target[i], index, BRANCH_CONDITIONAL) < 0)
			ret = -ENOMEM;
	function_free(&code);
	return ret < 0 ? ret : 0;
}

static int follow_tables(struct branches *branches)
{
	int ret = 0;

	for (uint32_t i = 0; i < branches->n && !ret; i++)
		if (branches->function[i].decoded && branches->function[i].indirect)
			ret = follow_function(branches, i);
	branches_sort(branches);
	return ret;
}

/* --- Parts of one function -------------------------------------------------------------------- */

/*
 * The other function that a branch shows to be a part of the same one: it leads there by a
 * condition, or into the middle. NULL: none.
 */
static struct code_function *other_part(const struct branches *branches,
					const struct branch *branch)
{
	const struct code_function *from;
	uint32_t to;

	if (branch->kind == BRANCH_CALL || branch->kind == BRANCH_MAYBE)
		return NULL;
	from = &branches->function[branch->from];
	to = branch->to - from->addr < from->end - from->addr
		     ? INSN_NONE
		     : branches_function(branches, branch->to);
	if (to == INSN_NONE ||
	    (branch->kind == BRANCH_JUMP && branch->to == branches->function[to].addr))
		return NULL;
	return &branches->function[to];
}

static void spread_indirect(const struct branches *branches)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = 0; i < branches->count; i++) {
			const struct branch *branch = &branches->branch[i];
			struct code_function *to = other_part(branches, branch), *from;

			from = to ? &branches->function[branch->from] : NULL;
			if (!to || from->indirect == to->indirect)
				continue;
			from->indirect = to->indirect = true;
			changed = true;
		}
	}
}

/* --- A site ----------------------------------------------------------------------------------- */

static const char *refusal_of_insn(const struct insn *insn)
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

/* Whether len bytes behind a function are padding up to the next aligned address. */
static bool is_padding(const struct branches *branches, const struct code_function *function,
		       uint64_t len)
{
	const struct elf_section *code = branches_code(branches, function->end, len);
	uint64_t end = function->end;
	struct insn insn;

	if (!code || (end - 1) / LINE != (end + len - 1) / LINE)
		return false;
	for (uint64_t at = end - code->addr; at < end - code->addr + len; at += insn.len)
		if (!insn_read(&insn, code->bytes + at, code->len - at, 0) || !insn.is_nop)
			return false;
	return true;
}

static const char *take_code(const struct branches *branches, const struct code_function *function,
			     struct survey_site *site)
{
	uint64_t len = function->end - function->addr;
	const uint8_t *code = function->bytes;
	struct insn insn;
	size_t endbr = len >= ENDBR_LEN ? site_endbr(code) : 0;
	const char *why;

	site->site += endbr;
	code += endbr;
	len -= endbr;
	while (site->len < SURVEY_JUMP && site->len < len && !site->ends) {
		if (!insn_read(&insn, code + site->len, len - site->len, 0))
			return "its first bytes are no instructions";
		why = refusal_of_insn(&insn);
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
	if (!site->ends || site->len != len || !is_padding(branches, function, SURVEY_JUMP - len))
		return "it ends, or leads elsewhere, within five bytes";
	/* The jump overwrites padding, too. */
	memcpy(site->code, code, SURVEY_JUMP);
	return NULL;
}

static const char *refusal_of_branches(const struct branches *branches, uint32_t index,
				       const struct survey_site *site)
{
	for (size_t i = branches_to(branches, site->function);
	     i < branches->sorted && branches->branch[i].to < site->site + SURVEY_JUMP; i++) {
		const struct branch *branch = &branches->branch[i];
		bool at_entry = branch->to == site->function || branch->to == site->site;

		if (!at_entry && branch->to > site->site)
			return "a branch leads into its first five bytes";
		if (at_entry && branch->kind == BRANCH_CONDITIONAL)
			return "a conditional branch leads to it: it is a loop, or a part of "
			       "another function";
		if (at_entry && branch->kind == BRANCH_JUMP && branch->from == index)
			return "it begins with a loop";
	}
	return NULL;
}

static bool has_label(const struct elf_symbols *symbols, const struct survey_site *site)
{
	const struct elf_symbol *symbol = elf_function_from(symbols, site->site + 1);

	return symbol && symbol->addr < site->site + SURVEY_JUMP;
}

static const char *refusal_of_function(const struct surveyed_program *program, uint32_t index,
				       struct survey_site *site)
{
	const struct code_function *function = &program->code.function[index];
	const char *why = take_code(&program->code, function, site);

	if (program->has_branches)
		return "the object has static branches, which lead to places of their own";
	if (program->is_go)
		return "Go's runtime reads return addresses and moves stacks, by tables of its own";
	if (!function->decoded)
		return "it does not come out as instructions";
	if (why)
		return why;
	if (function->indirect)
		return "it has an indirect jump, which may lead anywhere in it";
	if (has_label(&program->symbols, site))
		return "another function begins in its first five bytes";
	return refusal_of_branches(&program->code, index, site);
}

static int take_sites(const struct surveyed_program *program, struct survey *survey)
{
	const struct branches *code = &program->code;

	survey->site = calloc(code->n + 1, sizeof(*survey->site));
	if (!survey->site)
		return -ENOMEM;
	for (uint32_t i = 0; i < code->n; i++) {
		struct survey_site *site = &survey->site[survey->n++];

		site->function = site->site = code->function[i].addr;
		site->end = code->function[i].end;
		site->name = code->function[i].name;
		site->reason = refusal_of_function(program, i, site);
		survey->usable += !site->reason;
	}
	return 0;
}

static void find_kind(struct surveyed_program *program, const struct elf *elf)
{
	struct elf_section section;

	program->has_branches = elf_find_section(elf, "fi_branch_sites", &section) ||
				elf_find_section(elf, "fi_call_sites", &section);
	program->is_go = elf_find_section(elf, ".go.buildinfo", &section) ||
			 elf_find_section(elf, ".note.go.buildid", &section) ||
			 elf_find_section(elf, ".gopclntab", &section);
}

int survey_make(struct survey *survey, const struct elf *elf)
{
	struct surveyed_program program = { 0 };
	int ret;

	*survey = (struct survey){ 0 };
	find_kind(&program, elf);
	ret = elf_functions(elf, &program.symbols);
	if (!ret)
		ret = elf_frames(elf, &program.symbols);
	if (!ret)
		ret = branches_read(&program.code, elf, &program.symbols);
	if (!ret)
		ret = follow_tables(&program.code);
	if (!ret) {
		spread_indirect(&program.code);
		ret = take_sites(&program, survey);
	}
	branches_free(&program.code);
	elf_free(&program.symbols);
	return ret;
}

void survey_free(struct survey *survey)
{
	free(survey->site);
	*survey = (struct survey){ 0 };
}

/* --- The instructions of a site at another address -------------------------------------------- */

static int put_distance(uint8_t *bytes, uint64_t target, uint64_t next)
{
	int64_t distance = (int64_t)(target - next);
	int32_t near = (int32_t)distance;

	memcpy(bytes, &near, sizeof(near));
	return near == distance ? 0 : -ERANGE;
}

/* Write one instruction for its new address: its length there. */
static int move_insn(const struct insn *insn, const uint8_t *code, uint64_t to, uint8_t *moved)
{
	int len = insn->flow == FLOW_JUMP ? 5 : 6;
	int ret;

	if (insn->flow == FLOW_JUMP || insn->flow == FLOW_BRANCH) {
		moved[0] = len == 5 ? 0xe9 : 0x0f;
		if (len == 6)
			moved[1] = 0x80 | insn->condition;
		ret = put_distance(moved + len - 4, insn->target, to + (uint64_t)len);
		return ret ? ret : len;
	}
	memcpy(moved, code, insn->len);
	if (!insn->distance)
		return insn->len;
	ret = put_distance(moved + insn->distance, insn->memory, to + insn->len);
	return ret ? ret : insn->len;
}

int survey_move(const struct survey_site *site, uint64_t from, uint64_t to,
		uint8_t moved[SURVEY_ROOM])
{
	struct insn insn;
	int used = 0;

	for (unsigned at = 0; at < site->len; at += insn.len) {
		int len;

		if (!insn_read(&insn, site->code + at, site->len - at, from + at))
			return -ENOEXEC;
		len = move_insn(&insn, site->code + at, to + (uint64_t)used, moved + used);
		if (len < 0)
			return len;
		used += len;
	}
	return used;
}
