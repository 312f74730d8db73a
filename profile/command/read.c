/* SPDX-License-Identifier: MIT */
/* Counts of blocks become counts of lines, by the line tables and the scopes of DWARF. */
#include "profile/command/lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"

#define DEEPEST	      64     /* levels of functions inlined in each other */
#define DISCRIMINATOR 0x2136 /* DW_AT_GNU_discriminator, of a call */

struct lines {
	const struct executed *run;
	struct entry {
		Dwarf_Addr low;
		Dwarf_Die die;
	} * function;
	size_t functions;
	struct body *body; /* the outermost functions of the unit */
	int error;
};

/* --- Discriminators --------------------------------------------------------------------------- */

/* LLVM packs three numbers into one: the discriminator, copies, and a factor of those. Each has 1,
 * 7 or 14 bits. */
static unsigned unpack_first(unsigned packed)
{
	if (packed & 1)
		return 0;
	packed >>= 1;
	return packed & 0x20 ? (packed >> 1 & 0xfe0) | (packed & 0x1f) : packed & 0x1f;
}

static unsigned drop_first(unsigned packed)
{
	if (packed & 1)
		return packed >> 1;
	return packed >> (packed & 0x40 ? 14 : 7);
}

static unsigned unpack_factor(unsigned packed)
{
	unsigned factor = unpack_first(drop_first(packed));

	return factor ? factor : 1;
}

/* --- Functions -------------------------------------------------------------------------------- */

static const char *read_name(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute))
		name = dwarf_formstring(&attribute);
	return name ? name : dwarf_diename(die);
}

static unsigned read_number(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value = 0;

	if (dwarf_attr_integrate(die, name, &attribute))
		dwarf_formudata(&attribute, &value);
	return (unsigned)value;
}

static int add_function(Dwarf_Die *die, void *data)
{
	struct lines *lines = data;
	Dwarf_Addr low;

	if (!dwarf_entrypc(die, &low))
		lines->error =
			ARRAY_ADD(lines->function, lines->functions, ((struct entry){ low, *die }));
	return lines->error ? DWARF_CB_ABORT : DWARF_CB_OK;
}

ORDER_BY(by_entry, struct entry, low)

/* The last function that starts at or before an address, if it has that address. */
static struct entry *function_at(const struct lines *lines, Dwarf_Addr address)
{
	size_t n = SORTED_FROM(lines->function, lines->functions, low, address + 1);
	struct entry *function = n ? &lines->function[n - 1] : NULL;

	return function && dwarf_haspc(&function->die, address) > 0 ? function : NULL;
}

/* The functions inlined around an address, outermost first. Lexical blocks are skipped. */
static size_t inlined_at(Dwarf_Die *function, Dwarf_Addr address, Dwarf_Die *chain)
{
	Dwarf_Die parent = *function, child;
	size_t n = 0;
	int end = dwarf_child(&parent, &child);

	while (!end && n < DEEPEST) {
		int tag = dwarf_tag(&child);
		bool inside = (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) &&
			      dwarf_haspc(&child, address) > 0;

		if (!inside) {
			end = dwarf_siblingof(&child, &child);
			continue;
		}
		if (tag == DW_TAG_inlined_subroutine)
			chain[n++] = child;
		parent = child;
		end = dwarf_child(&parent, &child);
	}
	return n;
}

/* --- Counts ----------------------------------------------------------------------------------- */

static struct body *body_of(struct lines *lines, struct body **list, Dwarf_Die *die, line_offset at)
{
	const char *name = read_name(die);
	struct body *body;

	for (body = *list; body; body = body->next)
		if (body->at == at && !strcmp(body->name, name))
			return body;
	body = calloc(1, sizeof(*body));
	if (!body) {
		lines->error = -ENOMEM;
		return NULL;
	}
	*body = (struct body){ .name = name,
			       .plain = dwarf_diename(die),
			       .first = (int)read_number(die, DW_AT_decl_line),
			       .column = (int)read_number(die, DW_AT_decl_column),
			       .at = at,
			       .low = UINT64_MAX,
			       .next = *list };
	*list = body;
	return body;
}

/* NULL: no memory. */
static struct sample *sample_of(struct lines *lines, struct body *body, line_offset offset)
{
	for (size_t i = 0; i < body->samples; i++)
		if (body->sample[i].offset == offset)
			return &body->sample[i];
	lines->error =
		ARRAY_ADD(body->sample, body->samples, ((struct sample){ .offset = offset }));
	return lines->error ? NULL : &body->sample[body->samples - 1];
}

/* A copy of the call may have added the function already. */
static void add_target(struct lines *lines, struct sample *sample,
		       const struct called_function *target, double factor)
{
	struct called_function one = { .function = target->function,
				       .count = target->count * factor };

	for (size_t i = 0; i < sample->targets; i++) {
		if (strcmp(sample->target[i].function, one.function) != 0)
			continue;
		sample->target[i].count += one.count;
		return;
	}
	lines->error = ARRAY_ADD(sample->target, sample->targets, one);
}

/* Add the targets of calls in a range of addresses that belong to one line. */
static void add_targets(struct lines *lines, struct sample *sample, Dwarf_Addr from, Dwarf_Addr to,
			double factor)
{
	size_t i = SORTED_FROM(lines->run->target, lines->run->targets, address, from);

	for (; i < lines->run->targets && lines->run->target[i].address < to; i++)
		add_target(lines, sample, &lines->run->target[i], factor);
}

/* LLVM keeps 16 bits of the line. */
static line_offset make_offset(unsigned line, Dwarf_Die *function, unsigned packed)
{
	line_offset lines = (line - read_number(function, DW_AT_decl_line)) & 0xffff;

	return lines << 32 | unpack_first(packed);
}

/* Add a range of instructions of one line in one block. */
static void add_line(struct lines *lines, Dwarf_Line *line, Dwarf_Addr address, Dwarf_Addr end,
		     double count)
{
	struct sample *sample;
	struct entry *function = function_at(lines, address);
	Dwarf_Die chain[DEEPEST], *scope = function ? &function->die : NULL;
	unsigned packed = 0;
	struct body *body;
	int number = 0;
	size_t n;

	if (!scope || !read_name(scope) || dwarf_lineno(line, &number) || !number)
		return;
	dwarf_linediscriminator(line, &packed);
	n = inlined_at(scope, address, chain);
	body = body_of(lines, &lines->body, scope, 0);
	for (size_t i = 0; i < n && body; i++) {
		line_offset at = make_offset(read_number(&chain[i], DW_AT_call_line), scope,
					     read_number(&chain[i], DISCRIMINATOR));

		if (!read_name(&chain[i]))
			return;
		scope = &chain[i];
		body = body_of(lines, &body->inlined, scope, at);
	}
	if (!body)
		return;
	/* With line tables only, the compiler notes no file with the function. */
	if (!body->file)
		body->file = dwarf_linesrc(line, NULL, NULL);
	sample = sample_of(lines, body, make_offset((unsigned)number, scope, packed));
	if (!sample)
		return;
	sample->count = fmax(sample->count, count * unpack_factor(packed));
	add_targets(lines, sample, address, end, unpack_factor(packed));
	/* An inlined function begins at its lowest address. */
	if (n ? address < body->low : function->low == address) {
		body->head = count;
		body->low = address;
	}
}

/* Where a block or a line ends, whichever is first. */
static Dwarf_Addr end_of(const struct lines *lines, size_t next, Dwarf_Addr to)
{
	return next < lines->run->blocks && lines->run->block[next].address < to
		       ? lines->run->block[next].address
		       : to;
}

/* Code before a function's first block runs as often as that block. */
static void add_row(struct lines *lines, Dwarf_Line *line, Dwarf_Addr from, Dwarf_Addr to)
{
	const struct function *block = lines->run->block;
	size_t n = lines->run->blocks, next = SORTED_FROM(block, n, address, from + 1);
	struct entry *function = function_at(lines, from);

	if (next && block[next - 1].address >= (function ? function->low : 0))
		add_line(lines, line, from, end_of(lines, next, to), block[next - 1].calls.value);
	else if (function && next < n && dwarf_haspc(&function->die, block[next].address) > 0)
		add_line(lines, line, from, end_of(lines, next, to), block[next].calls.value);
	for (; next < n && block[next].address < to; next++)
		add_line(lines, line, block[next].address, end_of(lines, next + 1, to),
			 block[next].calls.value);
}

static void add_rows(struct lines *lines, Dwarf_Lines *rows, size_t n)
{
	for (size_t i = 0; i + 1 < n && !lines->error; i++) {
		Dwarf_Line *line = dwarf_onesrcline(rows, i);
		Dwarf_Addr from = 0, to = 0;
		bool end = true;

		dwarf_lineendsequence(line, &end);
		if (!end && !dwarf_lineaddr(line, &from) &&
		    !dwarf_lineaddr(dwarf_onesrcline(rows, i + 1), &to) && from < to)
			add_row(lines, line, from, to);
	}
}

static void free_bodies(struct body *body)
{
	while (body) {
		struct body *next = body->next;

		free_bodies(body->inlined);
		for (size_t i = 0; i < body->samples; i++)
			free(body->sample[i].target);
		free(body->sample);
		free(body);
		body = next;
	}
}

static void count_blocks(struct lines *lines)
{
	for (size_t i = 0; i < lines->run->blocks; i++) {
		struct entry *function = function_at(lines, lines->run->block[i].address);
		struct body *body;

		if (!function || !read_name(&function->die))
			continue;
		body = body_of(lines, &lines->body, &function->die, 0);
		if (!body)
			return;
		body->blocks++;
		body->run += lines->run->block[i].calls.value > 0;
	}
}

/*
 * Read one unit. Inlined functions may be declared in another unit, but functions with code are in
 * their own.
 */
static int read_unit(struct lines *lines, Dwarf_Die *unit, void (*function)(struct body *, void *),
		     void *arg)
{
	Dwarf_Lines *rows;
	size_t n;

	if (dwarf_getsrclines(unit, &rows, &n))
		return 0;
	lines->functions = 0;
	free(lines->function);
	lines->function = NULL;
	dwarf_getfuncs(unit, add_function, lines, 0);
	if (lines->functions)
		qsort(lines->function, lines->functions, sizeof(*lines->function), by_entry);
	add_rows(lines, rows, n);
	count_blocks(lines);
	for (struct body *body = lines->body; body && !lines->error; body = body->next)
		function(body, arg);
	free_bodies(lines->body);
	lines->body = NULL;
	return n > 0;
}

int lines_each(const struct executed *executed, void (*function)(struct body *, void *), void *arg)
{
	struct lines lines = { .run = executed };
	int file = open(executed->block->object, O_RDONLY | O_CLOEXEC), found = 0;
	Dwarf *dwarf = file < 0 ? NULL : dwarf_begin(file, DWARF_C_READ);
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;

	while (dwarf && !lines.error && !dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &unit, NULL))
		found += read_unit(&lines, &unit, function, arg);
	free(lines.function);
	dwarf_end(dwarf);
	if (file >= 0)
		close(file);
	if (lines.error)
		return lines.error;
	return found ? 0 : -ENODATA;
}
