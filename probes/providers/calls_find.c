/* SPDX-License-Identifier: MIT */
/*
 * Finds the calls of an object that calls.h describes, which the compiler lists nowhere. A site is
 * a call or a jump that
 *
 *  1. leads to the function that is looked for: an E8 or E9 to it, or to a jump through a slot
 *     where the loader puts its address, which is an entry of the PLT; or, with -fno-plt, an FF 15
 *     or FF 25 through the slot itself; and
 *  2. is an instruction: the function that it lies in, from its symbol to its end, comes out as
 *     instructions, of which one starts there. The same bytes inside of another are no site.
 *
 * Hooks get the address of a function as their first argument. That may be a function that was
 * inlined into the one around the call.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "probes/insn/insn.h"
#include "probes/providers/calls.h"

#define SLOTS_MAX 64 /* of all functions in one object: each is called in three ways at most */
#define ENTRY_LEN 16 /* of the PLT */

/* A place that calls lead to. */
struct call_slot {
	uintptr_t at;
	bool is_code; /* the function itself is there, not its address */
	const struct called *to;
	const char *reason;
};

/* Ways to call or jump: opcodes, and the length of the instruction. */
static const struct way {
	uint8_t opcode[2];
	uint8_t opcodes;
	uint8_t len;
	bool tail;
	bool by_slot;
} ways[] = {
	{ { 0xe8 }, 1, 5, false, false },
	{ { 0xe9 }, 1, 5, true, false },
	{ { 0xff, 0x15 }, 2, 6, false, true },
	{ { 0xff, 0x25 }, 2, 6, true, true },
	/* The linker makes this of FF 15 if the function is in the same object. */
	{ { 0x67, 0xe8 }, 2, 6, false, false },
};

struct call_search {
	const struct calls *calls;
	const struct elf *elf;
	const struct object *object;
	const struct elf_symbols *symbols;
	struct call_slot slots[SLOTS_MAX];
	size_t slots_n;
	struct call_sites *sites;
	bool landing_pads;
	struct elf_values values; /* of slots */
	struct branches branches;
};

static bool is_defined(const struct elf_symbols *symbols, const char *function)
{
	for (size_t i = 0; i < symbols->n; i++)
		if (!strcmp(symbols->symbol[i].name, function))
			return true;
	return false;
}

/* Why calls through a slot are no sites. NULL: their function does nothing. */
static const char *refuse_slot(const struct call_search *place, const struct call_slot *slot)
{
	const struct object *object = place->object;
	bool is_own = is_defined(place->symbols, slot->to->function);
	const void *bound = slot->to->bound;
	uintptr_t put;

	/* In a copy of a file it is not known which function the loader will bind it to. */
	if (!object->is_file && slot->to->own) {
		/* clang takes two names for two functions, and would not compare addresses. */
		asm("" : "+r"(bound));
		is_own = bound != slot->to->own;
	} else if (!object->is_file) {
		/* The slot holds the function's address, before the first call one in the PLT. */
		memcpy(&put, (const void *)slot->at, sizeof(put));
		is_own |= !place->calls->do_nothing ||
			  (put != (uintptr_t)bound && (put < object->start || put >= object->end));
	}
	return is_own ? CALLS_OWN : NULL;
}

static void add_slot(struct call_search *place, const struct called *to, uintptr_t at, bool is_code)
{
	if (place->slots_n == SLOTS_MAX)
		return;
	place->slots[place->slots_n++] = (struct call_slot){
		.at = at,
		.is_code = is_code,
		.to = to,
	};
}

static void take_slot(const char *function, uint64_t slot, void *data)
{
	struct call_search *place = data;
	uintptr_t at = place->object->base + slot;

	for (const struct called *to = place->calls->to; to->function; to++)
		if (!strcmp(function, to->function) &&
		    object_covers(place->object, at, sizeof(void *), PF_R))
			add_slot(place, to, at, false);
}

static const struct call_slot *find_slot(const struct call_search *place, uintptr_t at,
					 bool is_code)
{
	for (size_t i = 0; i < place->slots_n; i++)
		if (place->slots[i].at == at && place->slots[i].is_code == is_code)
			return &place->slots[i];
	return NULL;
}

/* An entry of the PLT: ENDBR64 and BND where there are any, then a jump through a slot. */
static const struct call_slot *find_plt_slot(const struct call_search *place, uintptr_t entry)
{
	const uint8_t *code = (const uint8_t *)entry;
	int32_t rel;

	if (!object_covers(place->object, entry, ENTRY_LEN, PF_X | PF_R))
		return NULL;
	code += site_endbr(code);
	if (*code == 0xf2)
		code++;
	if (code[0] != 0xff || code[1] != 0x25)
		return NULL;
	memcpy(&rel, code + 2, sizeof(rel));
	return find_slot(place, (uintptr_t)code + 6 + (uintptr_t)(intptr_t)rel, false);
}

/* The form of the call or jump by one of the slots that the bytes would be; NULL: none. */
static const struct way *find_way(const struct call_search *place, const uint8_t *code, size_t len,
				  const struct call_slot **slot)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		const struct way *way = &ways[i];
		uintptr_t target;
		int32_t rel;

		if (len < way->len || code[0] != way->opcode[0] ||
		    (way->opcodes == 2 && code[1] != way->opcode[1]))
			continue;
		memcpy(&rel, code + way->opcodes, sizeof(rel));
		target = (uintptr_t)code + way->len + (uintptr_t)(intptr_t)rel;
		*slot = find_slot(place, target, !way->by_slot);
		if (!*slot && !way->by_slot)
			*slot = find_plt_slot(place, target);
		if (*slot)
			return way;
	}
	return NULL;
}

/* The name of the function that the constant is the address of. NULL: of none, or the same. */
static const char *name_constant(const struct call_search *place, const struct constant *constant,
				 const struct elf_symbol *same)
{
	uint64_t addr = constant->at;
	const struct elf_symbol *function;

	if (constant->kind == CONSTANT_SLOT) {
		const struct elf_value *slot = elf_value_at(&place->values, addr);

		if (!slot || *slot->name)
			return slot ? slot->name : NULL;
		addr = slot->value;
	}
	function = elf_function_at(place->symbols, addr);
	return function && function->addr == addr && addr != same->addr ? function->name : NULL;
}

/* --- Indirect jumps in a function with such calls --------------------------------------------- */

/* 1: all targets of the function's indirect jumps are known; 0: they may lead anywhere. */
static int follow_jumps(const struct call_search *place, struct function_code *code)
{
	uint32_t index = branches_function(&place->branches, code->addr);

	if (index == INSN_NONE)
		return 0;
	return code->indirect ? jumps_follow(&place->branches, index, code) : 1;
}

/* Targets of jump tables, and addresses that other parts of the function jump to. */
static void open_entries(struct constants *constants, const struct branches *branches,
			 bool anywhere)
{
	struct function_code *code = constants->code;
	uint32_t index = branches_function(branches, code->addr);

	for (uint32_t i = 0; i < code->targets; i++) {
		function_open(code, code->target[i]);
		if (code->target[i] < code->addr || code->target[i] >= code->end)
			constants->over_open = 0;
	}
	for (size_t i = branches_to(branches, code->addr + 1);
	     i < branches->sorted && branches->branch[i].to < code->end; i++) {
		if (branches->branch[i].from == index)
			continue;
		function_open(code, branches->branch[i].to);
		constants->over_open = 0;
	}
	if (index != INSN_NONE && branches->function[index].is_open) {
		constants->over_open = 0;
		anywhere = true;
	}
	if (anywhere && branches->has_open_part)
		constants->over_open = 0;
	if (anywhere)
		function_open_all(code);
}

/* --- Sites ------------------------------------------------------------------------------------ */

static void name_site(const struct call_search *place, const struct constants *constants,
		      struct call_site *site)
{
	const char *in = site->function->name;
	const struct constant *first =
		argument_at(constants, (uintptr_t)site->at - place->object->base);
	const char *name = first ? name_constant(place, first, site->function) : NULL;
	size_t len = name ? strlen(name) : 0;

	if (!name)
		return;
	site->name = name;
	/* f.cold and f.isra.0 are a part and a copy of f; any other function has f inlined. */
	site->own = !strncmp(in, name, len) && (!in[len] || in[len] == '.');
}

/* Name the calls in one function by their first argument, where that is known. */
static int name_sites(struct call_search *place, struct function_code *code, size_t first)
{
	struct call_sites *sites = place->sites;
	struct constants constants;
	int found = follow_jumps(place, code);
	int ret = arguments_open(&constants, code, place->landing_pads);

	if (!ret && found >= 0) {
		open_entries(&constants, &place->branches, !found);
		/* Most registers of a cold part are set in the part that it was split from. */
		if (strstr(sites->site[first].function->name, ".cold"))
			constants.over_calls = constants.over_open = 0;
		for (size_t i = first; i < sites->n; i++) {
			struct insn *hook = function_at(code, (uintptr_t)sites->site[i].at -
								      place->object->base);

			if (hook)
				hook->returns = true;
		}
		constants_find(&constants);
		for (size_t i = first; i < sites->n; i++)
			name_site(place, &constants, &sites->site[i]);
	}
	constants_close(&constants);
	return found < 0 ? found : ret;
}

static int add_sites(struct call_search *place, const struct elf_symbol *function, uint8_t *bytes,
		     const struct function_code *code, int error)
{
	const char *failed = error ? "its function does not come out as instructions" : NULL;
	int ret = 0;

	for (size_t i = 0; i < function->size && !ret; i++) {
		const struct call_slot *slot;
		const struct way *way = find_way(place, bytes + i, function->size - i, &slot);

		if (!way || (!error && function_index(code, function->addr + i) == INSN_NONE))
			continue;
		ret = ARRAY_ADD(
			place->sites->site, place->sites->n,
			(struct call_site){ .at = bytes + i,
					    .len = way->len,
					    .tail = way->tail,
					    .to = slot->to,
					    .function = function,
					    .name = function->name,
					    .own = true,
					    .reason = slot->reason ? slot->reason : failed });
	}
	return ret;
}

static int scan_function(struct call_search *place, const struct elf_symbol *function)
{
	uint8_t *bytes = (uint8_t *)place->object->base + function->addr;
	size_t before = place->sites->n, i = 0;
	struct function_code code;
	const struct call_slot *slot;
	int error, ret;

	if (!object_covers(place->object, (uintptr_t)bytes, function->size, PF_X | PF_R))
		return 0;
	/* Functions without such bytes, which most are, need not be decoded. */
	while (i < function->size && !find_way(place, bytes + i, function->size - i, &slot))
		i++;
	if (i >= function->size)
		return 0;
	error = function_read(&code, bytes, function->addr, function->size);
	ret = error == -ENOMEM ? error : add_sites(place, function, bytes, &code, error);
	if (!ret && !error && place->calls->by_argument && place->sites->n > before)
		ret = name_sites(place, &code, before);
	function_free(&code);
	return ret;
}

static int scan_functions(struct call_search *place, const struct elf_symbols *symbols)
{
	uint64_t end = 0;
	int ret = 0;

	for (size_t i = 0; i < symbols->n && !ret; i++) {
		const struct elf_symbol *function = &symbols->symbol[i];

		/* An alias of the one before. */
		if (function->addr < end)
			continue;
		ret = scan_function(place, function);
		if (function->size <= UINT64_MAX - function->addr)
			end = function->addr + function->size;
	}
	return ret;
}

/* Few objects have any: what can be told without their symbols and code is asked first. */
int calls_find(const struct calls *calls, const struct object *object, const struct elf *elf,
	       struct call_sites *sites)
{
	struct call_search place = {
		.calls = calls,
		.elf = elf,
		.object = object,
		.symbols = &sites->symbols,
		.sites = sites,
	};
	struct elf_section section;
	int ret;

	*sites = (struct call_sites){ 0 };
	for (const struct called *to = calls->to; to->function; to++)
		if (to->own && object_covers(object, (uintptr_t)to->own, 1, PF_X))
			add_slot(&place, to, (uintptr_t)to->own, true);
	elf_slots(elf, take_slot, &place);
	if (!place.slots_n)
		return 0;
	ret = elf_functions(elf, &sites->symbols);
	for (struct call_slot *slot = place.slots; slot < place.slots + place.slots_n && !ret;
	     slot++)
		slot->reason = refuse_slot(&place, slot);
	if (calls->by_argument && !ret) {
		place.landing_pads = elf_find_section(elf, ".gcc_except_table", &section);
		ret = elf_values(elf, &place.values);
		if (!ret)
			ret = branches_read(&place.branches, elf, place.symbols);
	}
	if (!ret)
		ret = scan_functions(&place, place.symbols);
	free(place.values.value);
	branches_free(&place.branches);
	return ret;
}

void calls_free(struct call_sites *sites)
{
	elf_free(&sites->symbols);
	free(sites->site);
}
