/* SPDX-License-Identifier: MIT */
#include "probes/marker/operand.h"

#include <string.h>

struct text {
	const char *at;
	const char *end;
	const struct operand_symbols *symbols;
	const char *reason;
};

static bool refuse_operand(struct text *t, const char *reason)
{
	if (!t->reason)
		t->reason = reason;
	return false;
}

static bool take_char(struct text *t, char wanted)
{
	if (t->at == t->end || *t->at != wanted)
		return false;
	t->at++;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool in_symbol(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       c == '.' || c == '$';
}

static int digit_of(char c, unsigned base)
{
	unsigned value = is_digit(c)		? (unsigned)(c - '0')
			 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
			 : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
						: base;

	return value < base ? (int)value : -1;
}

static bool parse_number(struct text *t, uint64_t *value)
{
	const char *start;
	unsigned base = 10;

	if (t->end - t->at > 2 && t->at[0] == '0' && (t->at[1] == 'x' || t->at[1] == 'X')) {
		base = 16;
		t->at += 2;
	}
	start = t->at;
	for (*value = 0; t->at < t->end && digit_of(*t->at, base) >= 0; t->at++)
		if (__builtin_mul_overflow(*value, base, value) ||
		    __builtin_add_overflow(*value, (unsigned)digit_of(*t->at, base), value))
			return refuse_operand(t, "a number of it is too large");
	return t->at > start || refuse_operand(t, "a number of it has no digits");
}

static bool symbol(struct text *t, uint64_t *value)
{
	const char *start = t->at;

	while (t->at < t->end && in_symbol(*t->at))
		t->at++;
	if (t->at == start)
		return refuse_operand(t, "its form is unknown");
	if (t->at < t->end && *t->at == '@')
		return refuse_operand(t,
				      "it is relative to a table of the linker or of the thread");
	if (!t->symbols ||
	    !t->symbols->find(t->symbols->object, start, (size_t)(t->at - start), value))
		return refuse_operand(
			t, "it names a symbol that the file does not tell, or tells twice");
	return true;
}

/* Numbers and symbols, added up. Addresses wrap, as in the processor. */
static bool sum(struct text *t, int64_t *value)
{
	uint64_t total = 0, term;

	for (bool first = true;; first = false) {
		bool minus = take_char(t, '-');

		if (!minus && !take_char(t, '+') && !first)
			break;
		if (t->at == t->end)
			return refuse_operand(t, "it ends early");
		if (!(is_digit(*t->at) ? parse_number(t, &term) : symbol(t, &term)))
			return false;
		total = minus ? total - term : total + term;
	}
	*value = (int64_t)total;
	return true;
}

struct reg {
	uint8_t number;
	uint8_t size;
	uint8_t shift;
};

/* Of a name like "r10d": the number, and what follows it. */
static bool numbered_register(const char *name, size_t len, struct reg *found)
{
	unsigned n;
	char rest;

	if (len < 2 || len > 4 || name[0] != 'r' || !is_digit(name[1]))
		return false;
	n = (unsigned)(name[1] - '0');
	if (len > 2 && is_digit(name[2])) {
		n = n * 10 + (unsigned)(name[2] - '0');
		name++;
		len--;
	}
	rest = len == 3 ? name[2] : 0;
	if (n < 8 || n > 15 || len > 3)
		return false;
	found->number = (uint8_t)n;
	found->shift = 0;
	found->size = len == 2 ? 8 : rest == 'd' ? 4 : rest == 'w' ? 2 : rest == 'b' ? 1 : 0;
	return found->size != 0;
}

static bool named(const char *name, size_t len, struct reg *found)
{
	static const char names[][5][4] = {
		{ "rax", "eax", "ax", "al", "ah" }, { "rcx", "ecx", "cx", "cl", "ch" },
		{ "rdx", "edx", "dx", "dl", "dh" }, { "rbx", "ebx", "bx", "bl", "bh" },
		{ "rsp", "esp", "sp", "spl", "" },  { "rbp", "ebp", "bp", "bpl", "" },
		{ "rsi", "esi", "si", "sil", "" },  { "rdi", "edi", "di", "dil", "" },
	};
	static const uint8_t sizes[] = { 8, 4, 2, 1, 1 };

	for (uint8_t n = 0; n < 8; n++)
		for (uint8_t i = 0; i < 5; i++)
			if (len && strlen(names[n][i]) == len &&
			    memcmp(names[n][i], name, len) == 0) {
				*found = (struct reg){ n, sizes[i], i == 4 ? 8 : 0 };
				return true;
			}
	return false;
}

static bool any_register(struct text *t, struct reg *found)
{
	const char *start = t->at;
	size_t len;

	while (t->at < t->end && (is_digit(*t->at) || (*t->at >= 'a' && *t->at <= 'z')))
		t->at++;
	len = (size_t)(t->at - start);
	if (named(start, len, found) || numbered_register(start, len, found))
		return true;
	if (len > 3 && memcmp(start + 1, "mm", 2) == 0)
		return refuse_operand(t, "it is in a vector register");
	return refuse_operand(t, "its register is none of the sixteen");
}

/* A base or index: whole, or its lower half never (an address of 32 bits). */
static bool address_register(struct text *t, uint8_t *number, bool *rip)
{
	struct reg found;

	if (!take_char(t, '%'))
		return refuse_operand(t, "its form is unknown");
	*rip = t->end - t->at >= 3 && memcmp(t->at, "rip", 3) == 0;
	if (*rip) {
		t->at += 3;
		return true;
	}
	if (!any_register(t, &found))
		return false;
	*number = found.number;
	return found.size == 8 || refuse_operand(t, "its address has not 64 bits");
}

/* (base), (base, index), (base, index, scale), (, index, scale) */
static bool parentheses(struct text *t, struct operand *o, bool *rip)
{
	uint64_t scale = 1;
	bool ignored = false;

	if (t->at < t->end && *t->at == '%' && !address_register(t, &o->base, rip))
		return false;
	if (take_char(t, ',')) {
		if (!address_register(t, &o->index, &ignored))
			return false;
		if (take_char(t, ',') && !parse_number(t, &scale))
			return false;
	}
	if (ignored || o->index == 4 || (*rip && o->index != OPERAND_NONE) ||
	    (o->base == OPERAND_NONE && !*rip && o->index == OPERAND_NONE))
		return refuse_operand(t, "there is no such address");
	if (scale != 1 && scale != 2 && scale != 4 && scale != 8)
		return refuse_operand(t, "its scale is none of 1, 2, 4, 8");
	o->scale = (uint8_t)scale;
	return take_char(t, ')') || refuse_operand(t, "its form is unknown");
}

static bool memory(struct text *t, struct operand *o)
{
	bool has_symbol = false, rip = false;

	for (const char *c = t->at; c < t->end && *c != '('; c++)
		has_symbol |= in_symbol(*c) && !is_digit(*c) && (c == t->at || !in_symbol(c[-1]));
	o->form = OPERAND_MEMORY;
	if (t->at < t->end && *t->at != '(' && !sum(t, &o->value))
		return false;
	if (take_char(t, '(') && !parentheses(t, o, &rip))
		return false;
	/* The number in sym+4(%rip) is relative to sym; without one it is to an instruction's end.
	 */
	if (rip && !has_symbol)
		return refuse_operand(t, "it is relative to an instruction that is not told");
	return true;
}

static bool operand_of(struct text *t, struct operand *o)
{
	struct reg found;

	if (take_char(t, '$')) {
		o->form = OPERAND_CONSTANT;
		return sum(t, &o->value);
	}
	if (!take_char(t, '%'))
		return memory(t, o);
	if (t->end - t->at > 2 && t->at[1] == 's' && t->at[2] == ':')
		return refuse_operand(t, "it is relative to a segment");
	if (!any_register(t, &found))
		return false;
	o->form = OPERAND_REGISTER;
	o->base = found.number;
	o->shift = found.shift;
	/* The name may be shorter or longer than the value: the size before the @ counts. */
	if (found.shift && o->size > 1)
		return refuse_operand(t, "it is larger than its register");
	return true;
}

static bool size_of(struct text *t, struct operand *o)
{
	uint64_t size;

	o->is_signed = take_char(t, '-');
	if (t->at == t->end || !is_digit(*t->at) || !parse_number(t, &size))
		return refuse_operand(t, "it has no size");
	if (take_char(t, 'f'))
		return refuse_operand(t, "it is a floating-point value");
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return refuse_operand(t, "its size is none of 1, 2, 4, 8");
	o->size = (uint8_t)size;
	return take_char(t, '@') || refuse_operand(t, "it has no @ behind its size");
}

static void parse_operand(struct text *t, struct operand *o)
{
	*o = (struct operand){ .base = OPERAND_NONE, .index = OPERAND_NONE, .scale = 1 };
	if (size_of(t, o) && operand_of(t, o) && t->at < t->end)
		refuse_operand(t, "its form is unknown");
	if (t->reason) {
		o->form = OPERAND_REFUSED;
		o->reason = t->reason;
	}
}

/* Operands are separated by spaces; inside parentheses a space belongs to one. */
static const char *end_of(const char *at)
{
	for (int depth = 0; *at && (*at != ' ' || depth > 0); at++)
		depth += (*at == '(') - (*at == ')');
	return at;
}

unsigned operands_parse(const char *text, const struct operand_symbols *symbols,
			struct operand operands[OPERANDS_MAX])
{
	char compact[OPERAND_TEXT];
	unsigned count = 0;

	for (const char *at = text, *end; *at && count < OPERANDS_MAX; at = end) {
		struct text t = { .at = compact, .symbols = symbols };
		size_t len = 0;

		end = end_of(at);
		if (end == at) {
			end++;
			continue;
		}
		for (; at < end && len < sizeof(compact); at++)
			if (*at != ' ')
				compact[len++] = *at;
		t.end = compact + len;
		if (at < end)
			refuse_operand(&t, "it is too long");
		parse_operand(&t, &operands[count++]);
	}
	return count;
}

static uint64_t read_register(const uint64_t regs[16], uint8_t number)
{
	return number == OPERAND_NONE ? 0 : regs[number];
}

typedef uint16_t __attribute__((aligned(1), may_alias)) memory_16;
typedef uint32_t __attribute__((aligned(1), may_alias)) memory_32;
typedef uint64_t __attribute__((aligned(1), may_alias)) memory_64;

static uint64_t read_memory(const struct operand *o, const uint64_t regs[16])
{
	uintptr_t at = read_register(regs, o->base) + read_register(regs, o->index) * o->scale +
		       (uint64_t)o->value;

	switch (o->size) {
	case 1:
		return *(const volatile uint8_t *)at;
	case 2:
		return *(const volatile memory_16 *)at;
	case 4:
		return *(const volatile memory_32 *)at;
	default:
		return *(const volatile memory_64 *)at;
	}
}

bool operand_value(const struct operand *o, const uint64_t regs[16], int64_t *value)
{
	unsigned unused = 64 - 8u * o->size;
	uint64_t raw;

	if (o->form == OPERAND_REFUSED)
		return false;
	raw = o->form == OPERAND_CONSTANT   ? (uint64_t)o->value
	      : o->form == OPERAND_REGISTER ? read_register(regs, o->base) >> o->shift
					    : read_memory(o, regs);
	raw <<= unused;
	*value = o->is_signed ? (int64_t)raw >> unused : (int64_t)(raw >> unused);
	return true;
}
