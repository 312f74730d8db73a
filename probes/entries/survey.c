/* SPDX-License-Identifier: MIT */
/*
 * First all direct branches of a file are found, then the jump tables of its functions. Then, for
 * one function after another, the instructions at its entry and the branches to them are judged.
 */
#include "probes/entries/survey.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/core/provider.h"
#include "probes/elf/array.h"
#include "probes/elf/sorted.h"
#include "probes/insn/insn.h"

#define SECTIONS_MAX 64
#define NO_FUNCTION  UINT32_MAX
#define ENDBR_LEN    4
#define LINE	     16 /* functions are aligned to that where bytes are left between them */

enum kind {
	CALL,
	JUMP,
	CONDITIONAL,
	MAYBE, /* bytes that would be a branch, if they were an instruction */
};

struct branch {
	uint64_t to;
	uint32_t from; /* index of a function, or NO_FUNCTION */
	enum kind kind;
};

struct function {
	uint64_t addr, end;
	const uint8_t *bytes;
	const char *name;
	bool decoded;
	bool indirect; /* it, or a part of it, has an indirect jump */
};

struct program {
	const struct elf *elf;
	struct elf_symbols symbols;	       /* also of functions without names */
	struct elf_section code[SECTIONS_MAX]; /* sorted */
	size_t codes;
	bool has_branches; /* sites that libfastinst changes itself */
	bool is_go;
	struct function *function;
	uint32_t n;
	struct branch *branch;
	size_t branches;
};

/* --- Code and functions ----------------------------------------------------------------------- */

ORDER_BY(by_place, struct elf_section, addr)

static void find_sections(struct program *program)
{
	const struct elf *elf = program->elf;
	struct elf_section section;

	program->has_branches = elf_find_section(elf, "fi_branch_sites", &section) ||
				elf_find_section(elf, "fi_call_sites", &section);
	program->is_go = elf_find_section(elf, ".go.buildinfo", &section) ||
			 elf_find_section(elf, ".note.go.buildid", &section) ||
			 elf_find_section(elf, ".gopclntab", &section);
	for (uint32_t i = 0; elf_next_section(elf, &i, &section);)
		if (section.bytes && section.flags & SHF_EXECINSTR && section.len &&
		    section.len <= UINT64_MAX - section.addr && program->codes < SECTIONS_MAX)
			program->code[program->codes++] = section;
	qsort(program->code, program->codes, sizeof(*program->code), by_place);
}

static const struct elf_section *find_code(const struct program *program, uint64_t addr,
					   uint64_t len)
{
	for (size_t i = 0; i < program->codes; i++) {
		const struct elf_section *code = &program->code[i];

		if (addr >= code->addr && addr - code->addr < code->len &&
		    len <= code->len - (addr - code->addr))
			return code;
	}
	return NULL;
}

/* A symbol inside of another function is a label of that: see has_label(). */
static void add_function(struct program *program, const struct elf_symbol *symbol)
{
	const struct elf_section *code = find_code(program, symbol->addr, symbol->size);
	uint64_t end = program->n ? program->function[program->n - 1].end : 0;

	if (!code || !symbol->size || symbol->addr < end ||
	    elf_in_section(program->elf, symbol->addr, ".plt"))
		return;
	program->function[program->n++] = (struct function){
		.addr = symbol->addr,
		.end = symbol->addr + symbol->size,
		.bytes = code->bytes + (symbol->addr - code->addr),
		.name = symbol->name,
	};
}

static int find_functions(struct program *program)
{
	const struct elf_symbols *symbols = &program->symbols;
	int ret = elf_functions(program->elf, &program->symbols);

	if (!ret)
		ret = elf_frames(program->elf, &program->symbols);
	if (ret)
		return ret;
	program->function = calloc(symbols->n + 1, sizeof(*program->function));
	if (!program->function)
		return -ENOMEM;
	for (size_t i = 0; i < symbols->n; i++)
		add_function(program, &symbols->symbol[i]);
	return 0;
}

static uint32_t find_function(const struct program *program, uint64_t addr)
{
	size_t i = SORTED_FROM(program->function, program->n, end, addr + 1);

	return i < program->n && program->function[i].addr <= addr ? (uint32_t)i : NO_FUNCTION;
}

/* --- Branches --------------------------------------------------------------------------------- */

static int add_branch(struct program *program, uint64_t to, uint32_t from, enum kind kind)
{
	return ARRAY_ADD(program->branch, program->branches, (struct branch){ to, from, kind });
}

static enum kind find_kind(const struct insn *insn)
{
	if (insn->flow == FLOW_CALL)
		return CALL;
	return insn->flow == FLOW_JUMP ? JUMP : CONDITIONAL;
}

/* A function that cannot be decoded is read like a gap between functions. */
static int read_function(struct program *program, uint32_t index)
{
	struct function *function = &program->function[index];
	uint64_t len = function->end - function->addr;
	size_t before = program->branches;
	struct insn insn;

	for (uint64_t at = 0; at < len; at += insn.len) {
		if (!insn_read(&insn, function->bytes + at, len - at, function->addr + at)) {
			program->branches = before;
			return 0;
		}
		if (insn.target && add_branch(program, insn.target, index, find_kind(&insn)) < 0)
			return -ENOMEM;
		/* A jump by the GOT leads to the entry of a function. */
		if (insn.flow == FLOW_INDIRECT && !function->indirect &&
		    !(insn.memory && elf_in_section(program->elf, insn.memory, ".got")))
			function->indirect = true;
	}
	function->decoded = true;
	return 0;
}

/* A branch may begin at any of these bytes, and reach over their end. */
static int read_gap(struct program *program, const struct elf_section *code, uint64_t from,
		    uint64_t to)
{
	uint64_t target;
	int ret = 0;

	for (uint64_t at = from; at < to && !ret; at++)
		if (insn_guess(code->bytes + at, code->len - at, code->addr + at, &target))
			ret = add_branch(program, target, NO_FUNCTION, MAYBE);
	return ret;
}

static int read_gaps(struct program *program)
{
	int ret = 0;

	for (size_t i = 0; i < program->codes && !ret; i++) {
		const struct elf_section *code = &program->code[i];
		uint64_t from = 0;

		for (uint32_t k = 0; k < program->n && !ret; k++) {
			const struct function *function = &program->function[k];
			uint64_t at = function->addr - code->addr;

			if (function->addr < code->addr || at >= code->len || !function->decoded)
				continue;
			ret = read_gap(program, code, from, at);
			from = function->end - code->addr;
		}
		if (!ret)
			ret = read_gap(program, code, from, code->len);
	}
	return ret;
}

ORDER_BY(by_target, struct branch, to)

/* The first branch to the address or behind it, of those that are sorted. */
static size_t find_branch(const struct program *program, uint64_t to, size_t sorted)
{
	return SORTED_FROM(program->branch, sorted, to, to);
}

/* --- Jumps by tables -------------------------------------------------------------------------- */

struct jump_context {
	struct program *program;
	uint32_t index;	 /* of the function */
	size_t branches; /* that are sorted */
};

static bool is_branch_target(void *data, uint64_t at)
{
	const struct jump_context *context = data;
	const struct program *program = context->program;
	const struct elf_symbol *symbol;

	for (size_t i = find_branch(program, at, context->branches);
	     i < context->branches && program->branch[i].to == at; i++)
		if (program->branch[i].from != context->index)
			return true;
	symbol = elf_function_from(&program->symbols, at);
	return symbol && symbol->addr == at;
}

static bool is_entry_point(void *data, uint64_t at)
{
	const struct program *program = ((const struct jump_context *)data)->program;
	uint32_t index = find_function(program, at);

	return index != NO_FUNCTION && program->function[index].decoded &&
	       program->function[index].addr == at;
}

static int follow_function(struct jump_context *context, struct jump_targets *targets)
{
	const struct function *function = &context->program->function[context->index];
	const struct jumps jumps = { .elf = context->program->elf,
				     .data = context,
				     .is_entry = is_branch_target,
				     .is_function = is_entry_point };
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

/* The targets of proven tables become branches, and the function has no indirect jump any more. */
static int follow_tables(struct program *program)
{
	struct jump_context context = { .program = program, .branches = program->branches };
	int ret = 0;

	for (context.index = 0; context.index < program->n && ret >= 0; context.index++) {
		struct function *function = &program->function[context.index];
		struct jump_targets targets;

		if (!function->decoded || !function->indirect)
			continue;
		ret = follow_function(&context, &targets);
		function->indirect = ret <= 0;
		for (uint32_t i = 0; i < targets.n && ret > 0; i++)
			if (add_branch(program, targets.to[i], context.index, CONDITIONAL) < 0)
				ret = -ENOMEM;
		free(targets.to);
	}
	return ret < 0 ? ret : 0;
}

/* --- Parts of one function -------------------------------------------------------------------- */

static void sort_branches(struct program *program)
{
	if (program->branches)
		qsort(program->branch, program->branches, sizeof(*program->branch), by_target);
}

/*
 * The other function that a branch shows to be a part of the same one: it leads there by a
 * condition, or into the middle. NULL: none.
 */
static struct function *other_part(const struct program *program, const struct branch *branch)
{
	const struct function *from;
	uint32_t to;

	if (branch->kind == CALL || branch->kind == MAYBE)
		return NULL;
	from = &program->function[branch->from];
	to = branch->to - from->addr < from->end - from->addr ? NO_FUNCTION
							      : find_function(program, branch->to);
	if (to == NO_FUNCTION || (branch->kind == JUMP && branch->to == program->function[to].addr))
		return NULL;
	return &program->function[to];
}

static void spread_indirect(const struct program *program)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = 0; i < program->branches; i++) {
			const struct branch *branch = &program->branch[i];
			struct function *to = other_part(program, branch);
			struct function *from = to ? &program->function[branch->from] : NULL;

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
static bool is_padding(const struct program *program, const struct function *function, uint64_t len)
{
	const struct elf_section *code = find_code(program, function->end, len);
	uint64_t end = function->end;
	struct insn insn;

	if (!code || (end - 1) / LINE != (end + len - 1) / LINE)
		return false;
	for (uint64_t at = end - code->addr; at < end - code->addr + len; at += insn.len)
		if (!insn_read(&insn, code->bytes + at, code->len - at, 0) || !insn.is_nop)
			return false;
	return true;
}

static const char *take_code(const struct program *program, const struct function *function,
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
	if (!site->ends || site->len != len || !is_padding(program, function, SURVEY_JUMP - len))
		return "it ends, or leads elsewhere, within five bytes";
	/* The jump overwrites padding, too. */
	memcpy(site->code, code, SURVEY_JUMP);
	return NULL;
}

static const char *refusal_of_branches(const struct program *program, uint32_t index,
				       const struct survey_site *site)
{
	for (size_t i = find_branch(program, site->function, program->branches);
	     i < program->branches && program->branch[i].to < site->site + SURVEY_JUMP; i++) {
		const struct branch *branch = &program->branch[i];
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

static bool has_label(const struct elf_symbols *symbols, const struct survey_site *site)
{
	const struct elf_symbol *symbol = elf_function_from(symbols, site->site + 1);

	return symbol && symbol->addr < site->site + SURVEY_JUMP;
}

static const char *refusal_of_function(const struct program *program, uint32_t index,
				       struct survey_site *site)
{
	const struct function *function = &program->function[index];
	const char *why = take_code(program, function, site);

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
	return refusal_of_branches(program, index, site);
}

static int take_sites(const struct program *program, struct survey *survey)
{
	survey->site = calloc(program->n + 1, sizeof(*survey->site));
	if (!survey->site)
		return -ENOMEM;
	for (uint32_t i = 0; i < program->n; i++) {
		struct survey_site *site = &survey->site[survey->n++];

		site->function = site->site = program->function[i].addr;
		site->end = program->function[i].end;
		site->name = program->function[i].name;
		site->reason = refusal_of_function(program, i, site);
		survey->usable += !site->reason;
	}
	return 0;
}

int survey_make(struct survey *survey, const struct elf *elf)
{
	struct program program = { .elf = elf };
	int ret;

	*survey = (struct survey){ 0 };
	if (insn_support())
		return insn_support();
	find_sections(&program);
	ret = find_functions(&program);
	for (uint32_t i = 0; i < program.n && !ret; i++)
		ret = read_function(&program, i);
	if (!ret)
		ret = read_gaps(&program);
	if (!ret) {
		sort_branches(&program);
		ret = follow_tables(&program);
	}
	if (!ret) {
		sort_branches(&program);
		spread_indirect(&program);
		ret = take_sites(&program, survey);
	}
	elf_free(&program.symbols);
	free(program.function);
	free(program.branch);
	return ret;
}

void survey_free(struct survey *survey)
{
	free(survey->site);
	*survey = (struct survey){ 0 };
}

/* --- The instructions of a site at another address -------------------------------------------- */

bool survey_ready(void)
{
	return insn_support() == 0;
}

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

	if (insn_support())
		return insn_support();
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
