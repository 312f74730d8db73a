/* SPDX-License-Identifier: MIT */
/*
 * What the notes that list markers say (.note.stapsdt): where they are, and their operands in AT&T
 * syntax, which are parsed when a marker is found, and read when its probe function asks.
 */
#include "probes/providers/marker.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- Notes ------------------------------------------------------------------------------------ */

#define NOTE_TYPE 3
#define NOTE_NAME "stapsdt"

/* The string at *at, which is moved behind it; NULL: it does not end. */
static const char *take_string(const uint8_t **at, const uint8_t *end)
{
	const char *start = (const char *)*at;
	const uint8_t *zero = memchr(*at, 0, (size_t)(end - *at));

	if (!zero)
		return NULL;
	*at = zero + 1;
	return start;
}

static bool parse_note(const uint8_t *at, size_t size, struct note *note)
{
	const uint8_t *end = at + size;
	uint64_t words[3];

	if (size < sizeof(words))
		return false;
	memcpy(words, at, sizeof(words));
	at += sizeof(words);
	note->address = words[0];
	note->semaphore = words[2];
	note->provider = take_string(&at, end);
	note->name = note->provider ? take_string(&at, end) : NULL;
	note->operands = note->name ? take_string(&at, end) : NULL;
	return note->operands != NULL;
}

static size_t round_to_word(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

static int read_section(const uint8_t *at, size_t size, note_fn *tell, void *data)
{
	Elf64_Nhdr head;
	struct note note;
	size_t whole;
	int ret = 0;

	for (; size >= sizeof(head) && !ret; at += whole, size -= whole) {
		const uint8_t *name = at + sizeof(head);
		size_t words;

		memcpy(&head, at, sizeof(head));
		words = sizeof(head) + round_to_word(head.n_namesz);
		/* The last one need not be filled up to a multiple of four. */
		if (words + head.n_descsz > size)
			return 0;
		if (head.n_type == NOTE_TYPE && head.n_namesz == sizeof(NOTE_NAME) &&
		    !memcmp(name, NOTE_NAME, sizeof(NOTE_NAME)) &&
		    parse_note(at + words, head.n_descsz, &note))
			ret = tell(&note, data);
		whole = words + round_to_word(head.n_descsz);
		whole = whole < size ? whole : size;
	}
	return ret;
}

int notes_read(const struct elf *elf, note_fn *tell, void *data)
{
	struct elf_section section;
	int ret = 0;

	for (uint32_t i = 0; !ret && elf_next_section(elf, &i, &section);)
		if (section.type == SHT_NOTE && section.bytes &&
		    strcmp(section.name, ".note.stapsdt") == 0)
			ret = read_section(section.bytes, section.len, tell, data);
	return ret;
}

/* Symbols of one table: how many places have the name. */
static unsigned count_places(const struct elf *elf, const struct elf_section *table,
			     const char *name, size_t len, uint64_t *address)
{
	unsigned found = 0;
	Elf64_Sym symbol;
	const char *its;

	for (uint64_t i = 0; elf_read_symbol(elf, table, i, &symbol, &its); i++) {
		if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= SHN_LORESERVE ||
		    ELF64_ST_TYPE(symbol.st_info) == STT_TLS || strncmp(its, name, len) ||
		    its[len] || (found && *address == symbol.st_value))
			continue;
		*address = symbol.st_value;
		found++;
	}
	return found;
}

bool notes_symbol(const struct elf *elf, const char *name, size_t len, uint64_t *address)
{
	static const uint32_t tables[] = { SHT_SYMTAB, SHT_DYNSYM };
	struct elf_section section;
	unsigned found = 0;

	/* A stripped file has only .dynsym. */
	for (size_t t = 0; t < 2 && !found && len > 0; t++)
		for (uint32_t i = 0; elf_next_section(elf, &i, &section);)
			if (section.type == tables[t])
				found += count_places(elf, &section, name, len, address);
	return found == 1;
}

/* --- Operands --------------------------------------------------------------------------------- */

#define DIGITS "0123456789"
#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define SYMBOL DIGITS LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ_.$"

/* An operand without blanks, from the character that is next. */
struct operand_text {
	const char *at;
	const struct operand_symbols *symbols;
	bool has_symbol;
};

/* Functions that take a part of it return why the operand is refused, or NULL. */
static const char unknown_form[] = "its form is unknown";

static bool take_char(struct operand_text *t, char wanted)
{
	bool is = *t->at == wanted;

	t->at += is;
	return is;
}

static bool is_size(uint64_t n)
{
	return n == 1 || n == 2 || n == 4 || n == 8;
}

static const char *take_number(struct operand_text *t, uint64_t *value)
{
	bool is_hex = t->at[0] == '0' && (t->at[1] | 0x20) == 'x';
	char *end;

	if (is_hex ? !strspn(t->at + 2, DIGITS "abcdefABCDEF") : !isdigit((unsigned char)*t->at))
		return "a number of it has no digits";
	errno = 0;
	*value = strtoull(t->at, &end, is_hex ? 16 : 10);
	t->at = end;
	return errno ? "a number of it is too large" : NULL;
}

static const char *take_symbol(struct operand_text *t, uint64_t *value)
{
	const char *name = t->at;
	size_t len = strspn(name, SYMBOL);

	t->at += len;
	t->has_symbol = true;
	if (!len)
		return unknown_form;
	if (*t->at == '@')
		return "it is relative to a table of the linker or of the thread";
	return t->symbols && t->symbols->find(t->symbols->object, name, len, value)
		       ? NULL
		       : "it names a symbol that the file does not tell, or tells twice";
}

/* Numbers and symbols, added up. Addresses wrap, as in the processor. */
static const char *take_sum(struct operand_text *t, int64_t *value)
{
	uint64_t total = 0, term;
	const char *why = NULL;

	for (bool first = true; !why; first = false) {
		bool minus = take_char(t, '-');

		if (!minus && !take_char(t, '+') && !first)
			break;
		if (!*t->at)
			return "it ends early";
		why = isdigit((unsigned char)*t->at) ? take_number(t, &term)
						     : take_symbol(t, &term);
		if (!why)
			total = minus ? total - term : total + term;
	}
	*value = (int64_t)total;
	return why;
}

struct reg {
	uint8_t number;
	uint8_t size;
	uint8_t shift;
};

static const char *take_register(struct operand_text *t, struct reg *found)
{
	static const char names[16][5][5] = {
		{ "rax", "eax", "ax", "al", "ah" }, { "rcx", "ecx", "cx", "cl", "ch" },
		{ "rdx", "edx", "dx", "dl", "dh" }, { "rbx", "ebx", "bx", "bl", "bh" },
		{ "rsp", "esp", "sp", "spl" },	    { "rbp", "ebp", "bp", "bpl" },
		{ "rsi", "esi", "si", "sil" },	    { "rdi", "edi", "di", "dil" },
		{ "r8", "r8d", "r8w", "r8b" },	    { "r9", "r9d", "r9w", "r9b" },
		{ "r10", "r10d", "r10w", "r10b" },  { "r11", "r11d", "r11w", "r11b" },
		{ "r12", "r12d", "r12w", "r12b" },  { "r13", "r13d", "r13w", "r13b" },
		{ "r14", "r14d", "r14w", "r14b" },  { "r15", "r15d", "r15w", "r15b" },
	};
	static const uint8_t sizes[] = { 8, 4, 2, 1, 1 };
	size_t len = strspn(t->at, DIGITS LOWER);
	const char *name = t->at;

	t->at += len;
	for (uint8_t n = 0; n < 16; n++)
		for (uint8_t i = 0; i < 5 && len; i++)
			if (strlen(names[n][i]) == len && !memcmp(names[n][i], name, len)) {
				*found = (struct reg){ n, sizes[i], i == 4 ? 8 : 0 };
				return NULL;
			}
	return len > 3 && !memcmp(name + 1, "mm", 2) ? "it is in a vector register"
						     : "its register is none of the sixteen";
}

/* A base or index of 64 bits, or RIP. Addresses of 32 bits are refused. */
static const char *take_address_register(struct operand_text *t, uint8_t *number, bool *rip)
{
	struct reg found;
	const char *why;

	if (!take_char(t, '%'))
		return unknown_form;
	*rip = !strncmp(t->at, "rip", 3);
	if (*rip) {
		t->at += 3;
		return NULL;
	}
	why = take_register(t, &found);
	if (why)
		return why;
	*number = found.number;
	return found.size == 8 ? NULL : "its address has not 64 bits";
}

/* (base), (base, index), (base, index, scale), (, index, scale) */
static const char *take_parentheses(struct operand_text *t, struct operand *o, bool *rip)
{
	const char *why = *t->at == '%' ? take_address_register(t, &o->base, rip) : NULL;
	bool ignored = false;
	uint64_t scale = 1;

	if (!why && take_char(t, ',')) {
		why = take_address_register(t, &o->index, &ignored);
		if (!why && take_char(t, ','))
			why = take_number(t, &scale);
	}
	if (why)
		return why;
	if (ignored || o->index == 4 || (*rip && o->index != OPERAND_NONE) ||
	    (o->base == OPERAND_NONE && !*rip && o->index == OPERAND_NONE))
		return "there is no such address";
	if (!is_size(scale))
		return "its scale is none of 1, 2, 4, 8";
	o->scale = (uint8_t)scale;
	return take_char(t, ')') ? NULL : unknown_form;
}

static const char *take_memory(struct operand_text *t, struct operand *o)
{
	const char *why = *t->at && *t->at != '(' ? take_sum(t, &o->value) : NULL;
	bool rip = false;

	o->form = OPERAND_MEMORY;
	if (!why && take_char(t, '('))
		why = take_parentheses(t, o, &rip);
	/* Without a symbol, a number is relative to the end of an instruction. */
	if (!why && rip && !t->has_symbol)
		why = "it is relative to an instruction that is not told";
	return why;
}

static const char *take_place(struct operand_text *t, struct operand *o)
{
	struct reg found;
	const char *why;

	if (take_char(t, '$')) {
		o->form = OPERAND_CONSTANT;
		return take_sum(t, &o->value);
	}
	if (!take_char(t, '%'))
		return take_memory(t, o);
	if (*t->at && t->at[1] == 's' && t->at[2] == ':')
		return "it is relative to a segment";
	why = take_register(t, &found);
	if (why)
		return why;
	o->form = OPERAND_REGISTER;
	o->base = found.number;
	o->shift = found.shift;
	/* The name may be shorter or longer than the value: the size before the @ counts. */
	return found.shift && o->size > 1 ? "it is larger than its register" : NULL;
}

static const char *take_size(struct operand_text *t, struct operand *o)
{
	uint64_t size;

	o->is_signed = take_char(t, '-');
	if (!isdigit((unsigned char)*t->at) || take_number(t, &size))
		return "it has no size";
	if (take_char(t, 'f'))
		return "it is a floating-point value";
	if (!is_size(size))
		return "its size is none of 1, 2, 4, 8";
	o->size = (uint8_t)size;
	return take_char(t, '@') ? NULL : "it has no @ behind its size";
}

static const char *take_operand(struct operand_text *t, struct operand *o)
{
	const char *why = take_size(t, o);

	if (!why)
		why = take_place(t, o);
	return !why && *t->at ? unknown_form : why;
}

/* Operands are separated by spaces; inside parentheses a space belongs to one. */
unsigned operands_parse(const char *text, const struct operand_symbols *symbols,
			struct operand operands[OPERANDS_MAX])
{
	char compact[OPERAND_TEXT + 2];
	unsigned count = 0;

	while (*(text += strspn(text, " ")) && count < OPERANDS_MAX) {
		struct operand *o = &operands[count++];
		struct operand_text t = { .at = compact, .symbols = symbols };
		size_t len = 0;

		for (int depth = 0; *text && (*text != ' ' || depth > 0); text++) {
			depth += (*text == '(') - (*text == ')');
			if (*text != ' ' && len <= OPERAND_TEXT)
				compact[len++] = *text;
		}
		compact[len] = '\0';
		*o = (struct operand){ .base = OPERAND_NONE, .index = OPERAND_NONE, .scale = 1 };
		o->reason = len > OPERAND_TEXT ? "it is too long" : take_operand(&t, o);
		if (o->reason)
			o->form = OPERAND_REFUSED;
	}
	return count;
}

static uint64_t read_register(const uint64_t regs[16], uint8_t number)
{
	return number == OPERAND_NONE ? 0 : regs[number];
}

bool operand_value(const struct operand *o, const uint64_t regs[16], int64_t *value)
{
	unsigned unused = 64 - 8u * o->size;
	uint64_t raw = (uint64_t)o->value;

	if (o->form == OPERAND_REFUSED)
		return false;
	if (o->form == OPERAND_REGISTER)
		raw = read_register(regs, o->base) >> o->shift;
	if (o->form == OPERAND_MEMORY) {
		uintptr_t at = raw + read_register(regs, o->base) +
			       read_register(regs, o->index) * o->scale;

		raw = 0;
		memcpy(&raw, (const void *)at, o->size);
	}
	raw <<= unused;
	*value = o->is_signed ? (int64_t)raw >> unused : (int64_t)(raw >> unused);
	return true;
}
