/* SPDX-License-Identifier: MIT */
/* The code that storms patch and run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/storm/storm.h"

#define LINE	64u
#define INVALID 0x06 /* no opcode in 64-bit mode */
#define RET	0xc3
#define ROOM	16u /* bytes of a place */

/* Where a place of a line lies, and those of a page: all in lines of their own. */
#define LINE_PLACE(i) (256u * (i) + 4 * LINE)
#define PAGE_PLACE(i) (((i) + 1) * CODE_PAGE)

/* Column by column: two registers, as number of the register and place in regs. */
static const struct {
	uint8_t number[2];
	uint8_t at[2];
} columns[STORM_SITES] = {
	{ { 0, 1 }, { 0, 1 } }, /* eax, ecx */
	{ { 2, 6 }, { 2, 3 } }, /* edx, esi */
	{ { 7, 3 }, { 4, 5 } }, /* edi, ebx */
};

static const uint32_t numbers[2] = { CODE_OLD, CODE_NEW };
static const uint8_t lows[2] = { 0x11, 0x21 }; /* of pairs */

struct storm_arena storm_arena;

/* What six registers hold after a place was run. */
struct regs {
	uint32_t at[6];
};

unsigned storm_columns(enum storm_shape shape)
{
	return shape == STORM_PAIRS ? 1 : STORM_SITES;
}

/* mov r32, number */
static void put_load(uint8_t *to, unsigned column, unsigned code)
{
	to[0] = (uint8_t)(0xb8 + columns[column].number[code]);
	memcpy(to + 1, &numbers[code], sizeof(numbers[code]));
}

/* mov al, number; mov ecx or edx, number */
static void put_pair(uint8_t *to, unsigned code)
{
	to[0] = 0xb0;
	to[1] = lows[code];
	to[2] = (uint8_t)(0xb9 + code);
	memcpy(to + 3, &numbers[code], sizeof(numbers[code]));
}

static uint8_t *target_of_call(unsigned column, unsigned code)
{
	return storm_arena.elsewhere + (column * 2 + code) * STORM_TARGET;
}

static void put_call(uint8_t *to, unsigned column)
{
	int32_t rel = (int32_t)(target_of_call(column, 0) - (to + CODE_LEN));

	to[0] = 0xe8;
	memcpy(to + 1, &rel, sizeof(rel));
}

static void place_site(struct storm_site *site, enum storm_shape shape, uint8_t *at,
		       unsigned column)
{
	*site = (struct storm_site){ .at = at, .column = column, .len = CODE_LEN };
	if (shape == STORM_PAIRS)
		site->len = CODE_LEN + 2;
	for (unsigned code = 0; code < 2; code++) {
		if (shape == STORM_PAIRS)
			put_pair(site->code[code], code);
		else
			put_load(site->code[code], column, code);
	}
	if (shape == STORM_CALLS)
		put_call(at, column);
	else
		memcpy(at, site->code[0], site->len);
}

static void place_build(struct storm_place *place, enum storm_shape shape, unsigned boundary,
			unsigned split)
{
	uint8_t *at = storm_arena.code + boundary - split;

	place->at = at;
	place->split = split;
	place->page = boundary % CODE_PAGE == 0;
	for (unsigned i = 0; i < storm_columns(shape); i++) {
		place_site(&place->site[i], shape, at, i);
		at += place->site[i].len;
	}
	*at = RET;
}

static void build_elsewhere(void)
{
	uint8_t *page = storm_arena.elsewhere;

	for (unsigned i = 0; i < STORM_SITES; i++)
		for (unsigned code = 0; code < 2; code++) {
			put_load(target_of_call(i, code), i, code);
			target_of_call(i, code)[CODE_LEN] = RET;
		}
	storm_arena.foreign = page + CODE_PAGE - LINE;
	storm_arena.foreign[0] = CODE_INT3;
	storm_arena.foreign[1] = RET;
	MUST(mprotect(page, CODE_PAGE, RX) == 0);
}

void storm_arena_build(const struct storm *storm)
{
	size_t size = STORM_PAGES * CODE_PAGE;
	struct storm_arena *arena = &storm_arena;
	uint8_t *all = code_map(STORM_PAGES + 1, PROT_READ | PROT_WRITE);

	memset(all, INVALID, size + CODE_PAGE);
	arena->code = all;
	arena->elsewhere = all + size;
	arena->prot = storm->raw ? RWX : RX;
	arena->original = malloc(size);
	MUST(arena->original);
	build_elsewhere();
	/* A line and a page by turns, of each split; the first is the children's. */
	place_build(&arena->place[0], storm->way->shape, LINE_PLACE(0), 2);
	for (unsigned i = 0; i + 1 < STORM_PLACES; i++)
		place_build(&arena->place[i + 1], storm->way->shape,
			    i % 2 ? PAGE_PLACE(i / 2) : LINE_PLACE(i / 2 + 1), i / 2);
	MUST(mprotect(all, size, arena->prot) == 0);
	memcpy(arena->original, all, size);
}

/* --- Looking at it ------------------------------------------------------------------------ */

bool storm_holds(const struct storm_site *site, enum storm_shape shape, unsigned code)
{
	struct pc_call_info info;

	if (shape != STORM_CALLS)
		return memcmp(site->at, site->code[code], site->len) == 0;
	if (pc_call_get(&site->call, &info) < 0)
		return false;
	return code == 2 ? !info.active
			 : info.active && info.target == target_of_call(site->column, code);
}

static bool is_whole(const struct storm_site *site, enum storm_shape shape)
{
	return storm_holds(site, shape, 0) || storm_holds(site, shape, 1) ||
	       (shape == STORM_CALLS && storm_holds(site, shape, 2));
}

bool storm_place_is_original(const struct storm_place *place)
{
	return memcmp(place->at, storm_arena.original + (place->at - storm_arena.code), ROOM) == 0;
}

/* What is left when the sites are as they were is all that is not theirs. */
static void check_neighbours(enum storm_shape shape)
{
	const struct storm_arena *arena = &storm_arena;
	size_t size = STORM_PAGES * CODE_PAGE;
	uint8_t *now = malloc(size);

	MUST(now);
	memcpy(now, arena->code, size);
	for (unsigned i = 0; i < STORM_PLACES; i++)
		for (unsigned j = 0; j < storm_columns(shape); j++) {
			const struct storm_site *site = &arena->place[i].site[j];
			size_t at = (size_t)(site->at - arena->code);

			memcpy(now + at, arena->original + at, site->len);
		}
	MUST(memcmp(now, arena->original, size) == 0);
	free(now);
}

void storm_arena_check(const struct storm *storm)
{
	enum storm_shape shape = storm->way->shape;

	for (unsigned i = 1; i < STORM_PLACES; i++)
		for (unsigned j = 0; j < storm_columns(shape); j++)
			MUST(is_whole(&storm_arena.place[i].site[j], shape));
	MUST(storm_place_is_original(&storm_arena.place[0]));
	check_neighbours(shape);
	for (unsigned i = 0; i < STORM_PAGES; i++)
		MUST(code_prot(storm_arena.code + i * CODE_PAGE) == storm_arena.prot);
}

/* --- Running it --------------------------------------------------------------------------- */

/* Nothing of a run is left over for the next. */
static inline struct regs run_place(const uint8_t *at)
{
	struct regs r;

	__asm__ volatile("lea -128(%%rsp), %%rsp\n" /* leave the red zone to the compiler */
			 "xor %%eax, %%eax\n"
			 "xor %%ecx, %%ecx\n"
			 "xor %%edx, %%edx\n"
			 "xor %%esi, %%esi\n"
			 "xor %%edi, %%edi\n"
			 "xor %%ebx, %%ebx\n"
			 "call *%[at]\n"
			 "lea 128(%%rsp), %%rsp\n"
			 : "=&a"(r.at[0]), "=&c"(r.at[1]), "=&d"(r.at[2]), "=&S"(r.at[3]),
			   "=&D"(r.at[4]), "=&b"(r.at[5])
			 : [at] "r"(at)
			 : "memory", "cc");
	return r;
}

/* One of two registers holds its own number, and the other nothing. */
static void judge_load(uint32_t one, uint32_t two, bool may_be_off, struct storm_result *seen)
{
	if (one == CODE_OLD && two == 0)
		seen->ran[0]++;
	else if (one == 0 && two == CODE_NEW)
		seen->ran[1]++;
	else if (one == 0 && two == 0 && may_be_off)
		seen->ran[2]++;
	else
		seen->torn[one == 0]++;
}

static void judge_pair(const struct regs *r, struct storm_result *seen)
{
	bool old = r->at[1] == CODE_OLD && r->at[2] == 0;
	bool new = r->at[1] == 0 && r->at[2] == CODE_NEW;

	if (r->at[0] == lows[0] && old)
		seen->ran[0]++;
	else if (r->at[0] == lows[1] && new)
		seen->ran[1]++;
	else if ((old || new) && (r->at[0] == lows[0] || r->at[0] == lows[1]))
		seen->between++;
	else
		seen->torn[r->at[0] != lows[0]]++;
}

static void judge_run(const struct regs *r, enum storm_shape shape, struct storm_result *seen)
{
	seen->executions += storm_columns(shape);
	if (shape == STORM_PAIRS) {
		judge_pair(r, seen);
		return;
	}
	for (unsigned i = 0; i < STORM_SITES; i++)
		judge_load(r->at[columns[i].at[0]], r->at[columns[i].at[1]], shape == STORM_CALLS,
			   seen);
}

void storm_execute(const struct storm_place *place, enum storm_shape shape, unsigned times,
		   struct storm_result *seen)
{
	for (unsigned i = 0; i < times; i++) {
		struct regs r = run_place(place->at);

		judge_run(&r, shape, seen);
	}
}
