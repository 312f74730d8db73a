/* SPDX-License-Identifier: MIT */
/*
 * Instructions are run one after another with symbolic values: of a number only its identity and
 * its bound are known.
 */
#include "probes/insn/zydis.h"

/* --- Operands --------------------------------------------------------------------------------- */

static bool is_memory(const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       operand->mem.type == ZYDIS_MEMOP_TYPE_MEM;
}

/* --- Values ----------------------------------------------------------------------------------- */

static struct value make_number(struct state *state, uint8_t bits)
{
	return (struct value){ .kind = NUMBER, .bits = bits, .id = ++state->ids };
}

static bool is_equal(const struct value *a, const struct value *b)
{
	return a->kind == b->kind && a->bits == b->bits && a->id == b->id && a->at == b->at &&
	       a->size == b->size;
}

/* The low bits of one, with 0 above. */
static struct value take_low_bits(struct state *state, const struct value *value, uint8_t bits)
{
	struct value result = *value;

	if (value->kind != NUMBER)
		return bits == 64 ? result : make_number(state, bits);
	result.bits = value->bits < bits ? value->bits : bits;
	return result;
}

static void add_fact(struct state *state, const struct fact *fact)
{
	state->fact[state->facts] = *fact;
	state->facts = (uint8_t)((state->facts + 1) % FACTS);
}

/* The largest that a number may be. */
static uint64_t find_largest(const struct state *state, const struct value *value)
{
	uint64_t max = value->bits < 64 ? (UINT64_C(1) << value->bits) - 1 : UINT64_MAX;

	for (int i = 0; i < FACTS; i++) {
		const struct fact *fact = &state->fact[i];

		if (fact->id == value->id && fact->bits >= value->bits && fact->max < max)
			max = fact->max;
	}
	return max;
}

static struct value read_register(const struct state *state, ZydisRegister reg)
{
	int number = register_number(reg);

	return number < 0 || ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg) != 64
		       ? (struct value){ .kind = NUMBER, .bits = 64, .at = (uint64_t)reg }
		       : state->reg[number];
}

/* --- Memory ----------------------------------------------------------------------------------- */

static bool is_cell(const struct state *state, const ZydisDecodedOperand *operand)
{
	const struct memory_cell *cell = &state->cell;
	const ZydisDecodedOperandMem *a = &cell->operand, *b = &operand->mem;
	struct value base = read_register(state, b->base), index = read_register(state, b->index);

	return cell->known && cell->bits == operand->size && a->segment == b->segment &&
	       a->base == b->base && a->index == b->index && a->scale == b->scale &&
	       a->disp.value == b->disp.value && b->base != ZYDIS_REGISTER_RIP &&
	       is_equal(&base, &cell->base) && is_equal(&index, &cell->index);
}

static struct value load_value(struct state *state, const ZydisDecodedOperand *operand)
{
	return is_cell(state, operand) ? state->cell.value
				       : make_number(state, (uint8_t)operand->size);
}

/* Note which number the memory holds. */
static void set_cell(struct state *state, const ZydisDecodedOperand *operand,
		     const struct value *value)
{
	state->cell = (struct memory_cell){
		.known = true,
		.operand = operand->mem,
		.base = read_register(state, operand->mem.base),
		.index = read_register(state, operand->mem.index),
		.value = *value,
		.bits = (uint8_t)operand->size,
	};
}

/* TABLE(,NUMBER,8), or by a register that holds the address of the table. */
static bool is_entry(const struct state *state, const ZydisDecodedOperand *operand, uint8_t size,
		     struct value *entry)
{
	const ZydisDecodedOperandMem *mem = &operand->mem;
	struct value base, index;
	uint64_t at = (uint64_t)mem->disp.value;

	if (!is_memory(operand) || operand->size != size * 8 || mem->scale != size ||
	    mem->index == ZYDIS_REGISTER_NONE || mem->segment == ZYDIS_REGISTER_FS ||
	    mem->segment == ZYDIS_REGISTER_GS)
		return false;
	base = read_register(state, mem->base);
	index = read_register(state, mem->index);
	if (mem->base != ZYDIS_REGISTER_NONE) {
		if (base.kind != ADDRESS)
			return false;
		at += base.at;
	}
	if (index.kind != NUMBER || !index.id)
		return false;
	*entry = index;
	entry->at = at;
	entry->size = size;
	/* Relative entries count from the table's start. */
	return size == 8 || (mem->base != ZYDIS_REGISTER_NONE && !mem->disp.value);
}

/* Whether a store by the same base register does not overlap the cell. */
static bool is_beside_cell(const struct state *state, const ZydisDecodedOperand *operand)
{
	const ZydisDecodedOperandMem *cell = &state->cell.operand, *store = &operand->mem;
	struct value base = read_register(state, store->base);
	int64_t from = store->disp.value, to = cell->disp.value;

	return store->index == ZYDIS_REGISTER_NONE && cell->index == ZYDIS_REGISTER_NONE &&
	       store->segment == cell->segment && base.id && is_equal(&base, &state->cell.base) &&
	       (from + operand->size / 8 <= to || to + state->cell.bits / 8 <= from);
}

/* --- Steps ------------------------------------------------------------------------------------ */

static void change_value(struct state *state, const struct decoded *decoded)
{
	for (int i = 0; i < decoded->insn.operand_count; i++) {
		const ZydisDecodedOperand *operand = &decoded->operand[i];
		int reg;

		if (!(operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY && !is_beside_cell(state, operand))
			state->cell.known = false;
		if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER)
			continue;
		reg = register_number(operand->reg.value);
		if (reg >= 0)
			state->reg[reg] = make_number(
				state,
				operand->size == 32 &&
						operand->actions & ZYDIS_OPERAND_ACTION_WRITE &&
						decoded->insn.mnemonic != ZYDIS_MNEMONIC_BSF &&
						decoded->insn.mnemonic != ZYDIS_MNEMONIC_BSR
					? 32
					: 64);
	}
}

/* False: the instruction is no plain move. */
static bool move_value(struct state *state, const struct decoded *decoded)
{
	const ZydisDecodedOperand *to = &decoded->operand[0], *from = &decoded->operand[1];
	int target = low_register(to), source = low_register(from);
	struct value value;

	if (target < 0 || (to->size != 32 && to->size != 64))
		return false;
	if (source >= 0)
		value = take_low_bits(state, &state->reg[source], (uint8_t)from->size);
	else if (!is_memory(from))
		return false;
	else if (is_entry(state, from, 8, &value))
		value.kind = TARGET;
	else
		value = load_value(state, from);
	state->reg[target] = value;
	return true;
}

static bool move_distance(struct state *state, const struct decoded *decoded)
{
	int target = low_register(&decoded->operand[0]);
	struct value value;

	if (target < 0 || decoded->operand[0].size != 64 ||
	    !is_entry(state, &decoded->operand[1], 4, &value))
		return false;
	value.kind = ENTRY;
	state->reg[target] = value;
	return true;
}

static bool follow_add(struct state *state, const struct decoded *decoded)
{
	int target = low_register(&decoded->operand[0]), other = low_register(&decoded->operand[1]);
	const struct value *a, *b;

	if (target < 0 || other < 0 || decoded->operand[0].size != 64)
		return false;
	a = &state->reg[target];
	b = &state->reg[other];
	if (a->at != b->at ||
	    !((a->kind == ENTRY && b->kind == ADDRESS) || (a->kind == ADDRESS && b->kind == ENTRY)))
		return false;
	state->reg[target] = a->kind == ENTRY ? *a : *b;
	state->reg[target].kind = TARGET;
	return true;
}

/* The result is at most the mask. */
static bool mask_value(struct state *state, const struct decoded *decoded)
{
	const ZydisDecodedOperand *by = &decoded->operand[1];
	int target = low_register(&decoded->operand[0]);
	struct fact fact;

	if (target < 0 || by->type != ZYDIS_OPERAND_TYPE_IMMEDIATE || by->imm.value.s < 0 ||
	    (decoded->operand[0].size != 32 && decoded->operand[0].size != 64))
		return false;
	state->reg[target] = make_number(state, 32);
	fact = (struct fact){ state->reg[target].id, 32, by->imm.value.u };
	add_fact(state, &fact);
	return true;
}

static void note_comparison(struct state *state, const struct decoded *decoded)
{
	const ZydisDecodedOperand *what = &decoded->operand[0], *with = &decoded->operand[1];
	int reg = low_register(what);
	uint64_t max = with->imm.value.u;
	struct value value;

	if (with->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return;
	if (what->size < 64)
		max &= (UINT64_C(1) << what->size) - 1;
	if (is_memory(what)) {
		value = load_value(state, what);
		set_cell(state, what, &value);
	} else if (reg >= 0 && state->reg[reg].kind == NUMBER) {
		value = take_low_bits(state, &state->reg[reg], (uint8_t)what->size);
	} else {
		return;
	}
	state->compared = true;
	state->comparison = (struct fact){ value.id, value.bits, max };
}

static bool is_bound(const struct state *state, uint32_t id)
{
	for (int i = 0; i < FACTS; i++)
		if (state->fact[i].id == id)
			return true;
	return state->compared && state->comparison.id == id;
}

/* Code without optimization keeps a number in memory between its check and the table. */
static void note_store(struct state *state, const struct decoded *decoded)
{
	const ZydisDecodedOperand *to = &decoded->operand[0];
	int reg = low_register(&decoded->operand[1]);
	struct value value;

	if (decoded->insn.mnemonic != ZYDIS_MNEMONIC_MOV || !is_memory(to) || reg < 0 ||
	    state->reg[reg].kind != NUMBER || !state->reg[reg].id ||
	    (state->cell.known && is_bound(state, state->cell.value.id)))
		return;
	value = take_low_bits(state, &state->reg[reg], (uint8_t)to->size);
	set_cell(state, to, &value);
}

static bool follow_known(struct state *state, const struct decoded *decoded,
			 const struct insn *insn)
{
	switch (decoded->insn.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
		return move_value(state, decoded);
	case ZYDIS_MNEMONIC_MOVSXD:
		return move_distance(state, decoded);
	case ZYDIS_MNEMONIC_ADD:
		return follow_add(state, decoded);
	case ZYDIS_MNEMONIC_AND:
		return mask_value(state, decoded);
	case ZYDIS_MNEMONIC_LEA:
		if (insn->sets >= 0)
			state->reg[insn->sets] =
				(struct value){ .kind = ADDRESS, .at = insn->constant.at };
		return insn->sets >= 0;
	default:
		return false;
	}
}

static bool changes_flags(const ZydisDecodedInstruction *insn)
{
	const ZydisAccessedFlags *flags = insn->cpu_flags;

	return flags && (flags->modified | flags->set_0 | flags->set_1 | flags->undefined) &
				(ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_ZF);
}

void state_step(struct state *state, const struct decoded *decoded, const struct insn *insn)
{
	if (changes_flags(&decoded->insn))
		state->compared = false;
	if (decoded->insn.mnemonic == ZYDIS_MNEMONIC_CMP) {
		note_comparison(state, decoded);
		return;
	}
	if (decoded->insn.mnemonic == ZYDIS_MNEMONIC_CALL) {
		state->cell.known = false;
		state->compared = false;
		for (int i = 0; i < INSN_REGISTERS; i++)
			if (INSN_CLOBBERED >> i & 1)
				state->reg[i] = make_number(state, 64);
		return;
	}
	if (decoded->insn.meta.category == ZYDIS_CATEGORY_SYSCALL)
		state->cell.known = false;
	/* A SUB sets flags as a comparison does. */
	if (decoded->insn.mnemonic == ZYDIS_MNEMONIC_SUB && !is_memory(&decoded->operand[0]))
		note_comparison(state, decoded);
	if (!follow_known(state, decoded, insn))
		change_value(state, decoded);
	note_store(state, decoded);
}

void state_branch(struct state *state, const struct decoded *decoded, bool taken)
{
	struct fact fact = state->comparison;
	ZydisMnemonic mnemonic = decoded->insn.mnemonic;
	bool up_to = mnemonic == (taken ? ZYDIS_MNEMONIC_JBE : ZYDIS_MNEMONIC_JNBE);
	bool below = mnemonic == (taken ? ZYDIS_MNEMONIC_JB : ZYDIS_MNEMONIC_JNB);

	/* LOOP counts in a register. */
	change_value(state, decoded);
	if (!state->compared || (!up_to && !below) || (below && !fact.max))
		return;
	fact.max -= below;
	add_fact(state, &fact);
}

void state_begin(struct state *state, const uint64_t *address)
{
	uint32_t ids = state->ids;

	*state = (struct state){ .ids = ids };
	for (int i = 0; i < INSN_REGISTERS; i++)
		state->reg[i] = address[i] ? (struct value){ .kind = ADDRESS, .at = address[i] }
					   : make_number(state, 64);
}

struct jump_table state_jump(const struct state *state, const struct decoded *decoded)
{
	const ZydisDecodedOperand *operand = &decoded->operand[0];
	int reg = low_register(operand);
	struct value entry = { 0 };
	uint64_t max;

	if (reg >= 0)
		entry = state->reg[reg];
	else if (is_entry(state, operand, 8, &entry))
		entry.kind = TARGET;
	if (entry.kind != TARGET)
		return (struct jump_table){ 0 };
	max = find_largest(state, &entry);
	if (max >= ENTRIES_MAX)
		return (struct jump_table){ 0 };
	return (struct jump_table){ .at = entry.at, .n = (uint32_t)max + 1, .size = entry.size };
}
