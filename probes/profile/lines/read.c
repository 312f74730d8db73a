/* SPDX-License-Identifier: MIT */
#include "probes/profile/lines/body.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEEPEST	      64     /* of functions inlined in each other */
#define DISCRIMINATOR 0x2136 /* DW_AT_GNU_discriminator, of a call */

struct lines {
	const struct block *block;
	size_t blocks;
	const struct target *target;
	size_t targets;
	Dwarf_Die *function;
	size_t functions;
	struct body *body; /* outermost ones */
	int error;
};

/* --- Discriminators --------------------------------------------------------------------------- */

/* LLVM packs three numbers into one: which, copies, and a factor of those. Each has 1, 7 or 14
 * bits. */
static unsigned first_of(unsigned packed)
{
	if (packed & 1)
		return 0;
	packed >>= 1;
	return packed & 0x20 ? (packed >> 1 & 0xfe0) | (packed & 0x1f) : packed & 0x1f;
}

static unsigned rest_of(unsigned packed)
{
	if (packed & 1)
		return packed >> 1;
	return packed >> (packed & 0x40 ? 14 : 7);
}

static unsigned factor_of(unsigned packed)
{
	unsigned factor = first_of(rest_of(packed));

	return factor ? factor : 1;
}

/* --- Functions -------------------------------------------------------------------------------- */

static void *one_more(struct lines *lines, void *array, size_t n, size_t size)
{
	void *more = array;

	if (!(n & (n - 1)))
		more = reallocarray(array, n ? 2 * n : 1, size);
	if (!more)
		lines->error = -ENOMEM;
	return more;
}

static const char *name_of(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute))
		name = dwarf_formstring(&attribute);
	return name ? name : dwarf_diename(die);
}

static unsigned number_of(Dwarf_Die *die, unsigned which)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value = 0;

	if (dwarf_attr_integrate(die, which, &attribute))
		dwarf_formudata(&attribute, &value);
	return (unsigned)value;
}

static int add_function(Dwarf_Die *die, void *data)
{
	struct lines *lines = data;
	Dwarf_Die *more;
	Dwarf_Addr low;

	if (dwarf_entrypc(die, &low))
		return DWARF_CB_OK;
	more = one_more(lines, lines->function, lines->functions, sizeof(*more));
	if (!more)
		return DWARF_CB_ABORT;
	lines->function = more;
	more[lines->functions++] = *die;
	return DWARF_CB_OK;
}

static Dwarf_Addr entry_of(const void *die)
{
	Dwarf_Die copy = *(const Dwarf_Die *)die;
	Dwarf_Addr low = 0;

	dwarf_entrypc(&copy, &low);
	return low;
}

static int by_entry(const void *a, const void *b)
{
	Dwarf_Addr one = entry_of(a), two = entry_of(b);

	return (one > two) - (one < two);
}

/* Of n that are sorted by address, how many are at or before one. */
static size_t count_until(const void *array, size_t n, size_t size,
			  Dwarf_Addr (*address_of)(const void *), Dwarf_Addr address)
{
	size_t low = 0;

	while (low < n) {
		size_t middle = (low + n) / 2;

		if (address_of((const char *)array + middle * size) <= address)
			low = middle + 1;
		else
			n = middle;
	}
	return low;
}

/* The last that starts at or before an address, if that is in it. */
static Dwarf_Die *function_at(const struct lines *lines, Dwarf_Addr address)
{
	size_t n = count_until(lines->function, lines->functions, sizeof(*lines->function),
			       entry_of, address);
	Dwarf_Die *function = n ? &lines->function[n - 1] : NULL;

	return function && dwarf_haspc(function, address) > 0 ? function : NULL;
}

/* Outermost first: the chain of what is inlined around an address. Blocks of scope are passed. */
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

static struct body *body_of(struct lines *lines, struct body **list, Dwarf_Die *die, struct spot at)
{
	const char *name = name_of(die);
	struct body *body;

	for (body = *list; body; body = body->next)
		if (body->at.line == at.line && body->at.which == at.which &&
		    !strcmp(body->name, name))
			return body;
	body = calloc(1, sizeof(*body));
	if (!body) {
		lines->error = -ENOMEM;
		return NULL;
	}
	*body = (struct body){ .name = name,
			       .plain = dwarf_diename(die),
			       .first = (int)number_of(die, DW_AT_decl_line),
			       .column = (int)number_of(die, DW_AT_decl_column),
			       .at = at,
			       .low = UINT64_MAX,
			       .next = *list };
	*list = body;
	return body;
}

/* NULL: no memory. */
static struct sample *sample_of(struct lines *lines, struct body *body, struct spot spot)
{
	struct sample *more;

	for (size_t i = 0; i < body->samples; i++) {
		struct sample *sample = &body->sample[i];

		if (sample->spot.line == spot.line && sample->spot.which == spot.which)
			return sample;
	}
	more = one_more(lines, body->sample, body->samples, sizeof(*more));
	if (!more)
		return NULL;
	body->sample = more;
	more += body->samples++;
	*more = (struct sample){ .spot = spot };
	return more;
}

/* The same call may stand there more than once. */
static void add_target(struct lines *lines, struct sample *sample, const struct target *target,
		       double factor)
{
	struct target *more;

	for (size_t i = 0; i < sample->targets; i++) {
		if (strcmp(sample->target[i].function, target->function) != 0)
			continue;
		sample->target[i].count += target->count * factor;
		return;
	}
	more = one_more(lines, sample->target, sample->targets, sizeof(*more));
	if (!more)
		return;
	sample->target = more;
	more[sample->targets++] =
		(struct target){ .function = target->function, .count = target->count * factor };
}

static Dwarf_Addr target_at(const void *target)
{
	return ((const struct target *)target)->address;
}

/* Those from an address on, of an instruction or several of one line. */
static void add_targets(struct lines *lines, struct sample *sample, Dwarf_Addr from, Dwarf_Addr to,
			double factor)
{
	size_t low = count_until(lines->target, lines->targets, sizeof(*lines->target), target_at,
				 from - 1);

	for (; low < lines->targets && lines->target[low].address < to; low++)
		add_target(lines, sample, &lines->target[low], factor);
}

/* LLVM keeps 16 bits of it. */
static struct spot spot_of(unsigned line, Dwarf_Die *function, unsigned packed)
{
	int first = (int)number_of(function, DW_AT_decl_line);

	return (struct spot){ ((int)line - first) & 0xffff, first_of(packed) };
}

/* One instruction, or several of one line in one block. */
static void add_line(struct lines *lines, Dwarf_Line *line, Dwarf_Addr address, Dwarf_Addr end,
		     double count)
{
	struct sample *sample;
	Dwarf_Die chain[DEEPEST], *function = function_at(lines, address), *scope = function;
	unsigned packed = 0;
	struct body *body;
	int number = 0;
	size_t n;

	if (!function || !name_of(function) || dwarf_lineno(line, &number) || !number)
		return;
	dwarf_linediscriminator(line, &packed);
	n = inlined_at(function, address, chain);
	body = body_of(lines, &lines->body, function, (struct spot){ 0, 0 });
	for (size_t i = 0; i < n && body; i++) {
		struct spot at = spot_of(number_of(&chain[i], DW_AT_call_line), scope,
					 number_of(&chain[i], DISCRIMINATOR));

		if (!name_of(&chain[i]))
			return;
		scope = &chain[i];
		body = body_of(lines, &body->inlined, scope, at);
	}
	if (!body)
		return;
	/* The compiler does not note it with the function when there are line tables only. */
	if (!body->file)
		body->file = dwarf_linesrc(line, NULL, NULL);
	sample = sample_of(lines, body, spot_of((unsigned)number, scope, packed));
	if (!sample)
		return;
	sample->count = fmax(sample->count, count * factor_of(packed));
	add_targets(lines, sample, address, end, factor_of(packed));
	/* What is inlined begins where its code does. */
	if (n ? address < body->low : entry_of(function) == address) {
		body->head = count;
		body->low = address;
	}
}

static Dwarf_Addr block_at(const void *block)
{
	return ((const struct block *)block)->address;
}

/* The first block behind an address. */
static size_t block_behind(const struct lines *lines, Dwarf_Addr address)
{
	return count_until(lines->block, lines->blocks, sizeof(*lines->block), block_at, address);
}

/* Where a block or a line ends, whichever is first. */
static Dwarf_Addr end_of(const struct lines *lines, size_t next, Dwarf_Addr to)
{
	return next < lines->blocks && lines->block[next].address < to ? lines->block[next].address
								       : to;
}

/* What stands before a function's first block is as that one is. */
static void add_row(struct lines *lines, Dwarf_Line *line, Dwarf_Addr from, Dwarf_Addr to)
{
	size_t next = block_behind(lines, from);
	Dwarf_Die *function = function_at(lines, from);
	Dwarf_Addr entry = function ? entry_of(function) : 0;

	if (next && lines->block[next - 1].address >= entry)
		add_line(lines, line, from, end_of(lines, next, to), lines->block[next - 1].count);
	else if (next < lines->blocks && dwarf_haspc(function, lines->block[next].address) > 0)
		add_line(lines, line, from, end_of(lines, next, to), lines->block[next].count);
	for (; next < lines->blocks && lines->block[next].address < to; next++)
		add_line(lines, line, lines->block[next].address, end_of(lines, next + 1, to),
			 lines->block[next].count);
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

/* --- All -------------------------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
	return (block_at(a) > block_at(b)) - (block_at(a) < block_at(b));
}

static bool next_unit(Dwarf *dwarf, Dwarf_Off *at, Dwarf_Die *unit)
{
	Dwarf_Off next;
	size_t header;

	while (!dwarf_nextcu(dwarf, *at, &next, &header, NULL, NULL, NULL)) {
		Dwarf_Off die = *at + header;

		*at = next;
		if (dwarf_offdie(dwarf, die, unit))
			return true;
	}
	return false;
}

static void count_blocks(struct lines *lines)
{
	for (size_t i = 0; i < lines->blocks; i++) {
		Dwarf_Die *function = function_at(lines, lines->block[i].address);
		struct body *body;

		if (!function || !name_of(function))
			continue;
		body = body_of(lines, &lines->body, function, (struct spot){ 0, 0 });
		if (!body)
			return;
		body->blocks++;
		body->run += lines->block[i].count > 0;
	}
}

/* Functions of one unit at a time: what is inlined may stand in another, what has code does not. */
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
	qsort(lines->function, lines->functions, sizeof(*lines->function), by_entry);
	add_rows(lines, rows, n);
	count_blocks(lines);
	for (struct body *body = lines->body; body && !lines->error; body = body->next)
		function(body, arg);
	free_bodies(lines->body);
	lines->body = NULL;
	return n > 0;
}

int lines_each(const char *object, const struct seen *seen, void (*function)(struct body *, void *),
	       void *arg)
{
	struct lines lines = { .block = seen->block,
			       .blocks = seen->blocks,
			       .target = seen->target,
			       .targets = seen->targets };
	int file = open(object, O_RDONLY | O_CLOEXEC), found = 0;
	Dwarf *dwarf = file < 0 ? NULL : dwarf_begin(file, DWARF_C_READ);
	Dwarf_Off at = 0;
	Dwarf_Die unit;

	qsort(seen->block, seen->blocks, sizeof(*seen->block), by_address);
	while (dwarf && !lines.error && next_unit(dwarf, &at, &unit))
		found += read_unit(&lines, &unit, function, arg);
	free(lines.function);
	dwarf_end(dwarf);
	if (file >= 0)
		close(file);
	if (lines.error)
		return lines.error;
	return found ? 0 : -ENODATA;
}
