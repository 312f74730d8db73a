/* SPDX-License-Identifier: MIT */
#include "stress/cell/code.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "base/emit.h"
#include "stress/placement/placement.h"

#define PAGE	     4096u
#define LINE	     64u
#define ARENA_STRIDE UINT64_C(0x200000000) /* room for calls of 2 GiB on both sides */
#define ARENA_FIRST  UINT64_C(0x100000000000)
#define ARENA_TRIES  4096
#define PAGES	     CODE_ARENA_PAGES

#define OPCODE_STC 0xf9
#define OPCODE_CLD 0xfc

/* Slots of the NOP pairs; call-call and word use front * 3 + back. */
#define SLOT_CALL   0
#define SLOT_PAD    2 /* + toggle % 2: call front, NOP back */
#define SLOT_CARRY  4 /* + toggle % 2: NOP front, call back */
#define SLOT_SORTED 9 /* call-call and word: as many slots are in use */

/* Behind the last boundary: the additions of a cell, and what else there is. */
#define ADDITIONS (CELL_LOOP_MAX * 4 + CODE_CHAIN * 4 + (CODE_EXTRA * 2 + 1) * LINE)
_Static_assert(2 * PAGE + ADDITIONS + 1024 <= PAGES * PAGE, "the loop does not fit");
_Static_assert(CODE_MARKS == 256 && sizeof(struct code_mark) == 16, "see put_mix()");

static bool has_site_place(const struct cell *cell)
{
	return (uint32_t)cell->place != 0;
}

uint8_t *code_place_site(uint8_t *arena, const struct cell *cell)
{
	uint8_t *second = arena + PAGE;
	unsigned bytes = crossing_bytes(cell->crossing);
	struct site_place place = site_place_of(cell->place);
	bool placed = has_site_place(cell);
	unsigned choice = placed ? place.word : (unsigned)(cell->seed % 8);
	uint8_t *line = second + LINE * (placed ? place.line : 8);

	switch (cell->crossing) {
	case CROSSING_NONE:
		return line + 8 * (choice % 8) + cell->split - 1;
	case CROSSING_PAGE:
		return second - cell->split;
	case CROSSING_LINE:
		return line + (placed ? 0 : LINE * choice) - cell->split;
	case CROSSING_INSIDE:
		return line + bytes - cell->split;
	default:
		/* 8, 24, 40, 56, or 16, 48, or 32 bytes into the line. */
		return line + bytes + choice * 2 * bytes % LINE - cell->split;
	}
}

#define CALL_A 0xe8, 0x10, 0x11, 0x21, 0x31
#define JUMP_A 0xe9, 0x10, 0x11, 0x21, 0x31
#define NOP    0x66, 0x66, 0x66, 0x66, 0x90

static const struct {
	unsigned codes;
	uint8_t bytes[3][CODE_LENGTH];
} pairs[PAIR_COUNT] = {
	[PAIR_CALL_NOP] = { 2, { { CALL_A }, { NOP } } },
	[PAIR_JMP_NOP] = { 2, { { JUMP_A }, { NOP } } },
	[PAIR_CALL_CALL] = { 3,
			     { { CALL_A },
			       { 0xe8, 0x50, 0x42, 0x52, 0x42 },
			       { 0xe8, 0x90, 0x83, 0x83, 0x53 } } },
	[PAIR_WORD] = { 3, { { 0xb8, 0, 0, 0, 0 }, { 0xb8, 1, 1, 1, 1 }, { 0xb8, 2, 2, 2, 2 } } },
};

static void write_codes(struct code *code, const struct cell *cell)
{
	struct code_site *first = &code->site[0];

	code->codes = pairs[cell->pair].codes;
	for (unsigned k = 0; k < code->codes; k++)
		memcpy(first->bytes[k], pairs[cell->pair].bytes[k], CODE_LENGTH);
	/* The call or jump of a NOP pair; see the table in code.h. */
	if (code_is_nop_pair(code)) {
		memset(first->bytes[0] + cell->split, OPCODE_CLD, CODE_LENGTH - cell->split);
		first->bytes[0][cell->split] =
			cell->oracle == ORACLE_CRASH ? CODE_INVALID : OPCODE_STC;
	}
	code->pair = cell->pair;
	if (cell->crossing != CROSSING_INSIDE)
		return;
	code->sites = CELL_INSIDE;
	for (unsigned i = 1; i < CELL_INSIDE; i++) {
		struct code_site *beside = &code->site[i];

		*beside = *first;
		/* 16 and 32 bytes into the line; the first is at 8. */
		beside->at += (8u << i) - 8;
		/* No mix of one site lands near one of another. */
		for (unsigned k = 0; k < 3; k++)
			beside->bytes[k][2] = (uint8_t)(beside->bytes[k][2] + 4 * i);
	}
}

static uint8_t *destination(const uint8_t *site, const uint8_t *bytes)
{
	int32_t rel;

	memcpy(&rel, bytes + 1, sizeof(rel));
	return (uint8_t *)(uintptr_t)site + CODE_LENGTH + rel;
}

/* Where the counters of a site begin, from the first one's. */
static size_t slots_of(unsigned site)
{
	return site * sizeof(struct code_slots);
}

static void put_jump(struct emit *e, const uint8_t *target)
{
	PUT(e, 0xe9);
	put_rel32(e, target, 0);
}

static void put_return(const struct code *code, struct emit *e)
{
	if (code->pair != PAIR_JMP_NOP) {
		PUT(e, 0xc3); /* ret */
		return;
	}
	put_jump(e, code->site[0].at + CODE_LENGTH); /* behind the site */
}

/* An instruction on something of the counters: [r9 + ...] */
#define PUT_AT(e, offset, ...)                                                                     \
	do {                                                                                       \
		uint32_t at_ = (uint32_t)(offset);                                                 \
		PUT(e, __VA_ARGS__);                                                               \
		put(e, &at_, sizeof(at_));                                                         \
	} while (0)

/*
 * Count a whole code in a fixed slot, and whether it is another than the last one; or the call of a
 * NOP pair, and whether the execution before was one, too.
 *
 *		inc qword [r9 + slot * 8]		inc qword [r9 + slot * 8]
 *		cmp qword [r9 + last], slot + 1		lea rax, [rdi + 1]
 *							cmp rax, rcx
 *							mov rcx, rdi
 *		jne other				jne other
 *							clc
 *		ret					ret
 * other:	mov qword [r9 + last], slot + 1
 *		inc qword [r9 + seen]			inc qword [r9 + seen]
 *							clc
 *		ret					ret
 */
static int write_target(const struct code *code, unsigned site, const uint8_t *bytes, unsigned slot)
{
	const size_t last = slots_of(site) + offsetof(struct code_slots, last);
	struct emit e = { .at = destination(code->site[site].at, bytes) };
	bool of_nop = code_is_nop_pair(code);
	uint8_t *other;
	int ret = code_map_landing(e.at);

	if (ret < 0)
		return ret;
	PUT_AT(&e, slots_of(site) + slot * 8, 0x49, 0xff, 0x81);
	if (of_nop) {
		PUT(&e, 0x48, 0x8d, 0x47, 1, 0x48, 0x39, 0xc8, 0x48, 0x89, 0xf9);
	} else {
		PUT_AT(&e, last, 0x49, 0x83, 0xb9);
		PUT(&e, (uint8_t)(slot + 1));
	}
	PUT(&e, 0x75, 0);
	other = e.at;
	if (of_nop)
		PUT(&e, 0xf8);
	put_return(code, &e);
	other[-1] = (uint8_t)(e.at - other);
	if (!of_nop) {
		PUT_AT(&e, last, 0x49, 0xc7, 0x81);
		PUT(&e, (uint8_t)(slot + 1), 0, 0, 0);
	}
	PUT_AT(&e, slots_of(site) + offsetof(struct code_slots, seen), 0x49, 0xff, 0x81);
	if (of_nop)
		PUT(&e, 0xf8);
	put_return(code, &e);
	return 0;
}

/* The slot of a mix, by the toggle's number: mov r8, [r10]; and r8d, 1; add r8d, slot */
static void put_slot_by_toggle(struct emit *e, unsigned slot)
{
	PUT(e, 0x4d, 0x8b, 0x02, 0x41, 0x83, 0xe0, 1, 0x41, 0x83, 0xc0, (uint8_t)slot);
}

/*
 * A mix, its slot in r8: count it, leave a mark, and see whether it is the first of its toggle.
 * Leaves rcx, rdi, r9 and r10, which the loop needs, and the carry clear. The mark is complete
 * before it is counted; the low byte of the count is its place in the ring.
 */
static void put_mix(struct emit *e, unsigned site)
{
	const size_t slots = slots_of(site);
	const size_t marks = slots + offsetof(struct code_slots, marks);
	const size_t tsc = slots + offsetof(struct code_slots, mark[0].tsc);
	const size_t where = slots + offsetof(struct code_slots, mark[0].where);
	const size_t torn = slots + offsetof(struct code_slots, torn);
	const size_t last = slots + offsetof(struct code_slots, torn_last);

	PUT_AT(e, slots, 0x4b, 0xff, 0x84, 0xc1);   /* inc qword [r9 + r8 * 8 + slots] */
	PUT(e, 0x0f, 0x31);			    /* rdtsc */
	PUT_AT(e, marks, 0x45, 0x0f, 0xb6, 0x99);   /* movzx r11d, byte [r9 + marks] */
	PUT(e, 0x4f, 0x8d, 0x1c, 0x1b);		    /* lea r11, [r11 + r11] */
	PUT_AT(e, tsc, 0x43, 0x89, 0x84, 0xd9);	    /* mov [r9 + r11 * 8 + tsc], eax */
	PUT_AT(e, tsc + 4, 0x43, 0x89, 0x94, 0xd9); /* and the upper half from edx */
	PUT(e, 0x49, 0x8b, 0x02);		    /* mov rax, [r10] */
	PUT(e, 0x31, 0xd2, 0x48, 0xff, 0xc0);	    /* xor edx, edx; inc rax */
	PUT_AT(e, last, 0x49, 0x3b, 0x81);	    /* cmp rax, [r9 + torn_last] */
	PUT(e, 0x0f, 0x95, 0xc2);		    /* setne dl */
	PUT_AT(e, torn, 0x49, 0x01, 0x91);	    /* add [r9 + torn], rdx */
	PUT_AT(e, last, 0x49, 0x89, 0x81);	    /* mov [r9 + torn_last], rax */
	PUT(e, 0x48, 0xff, 0xc8);		    /* dec rax */
	PUT(e, 0x48, 0xc1, 0xe0, 8);		    /* shl rax, 8 */
	PUT(e, 0x49, 0x09, 0xc0);		    /* or r8, rax: clears the carry */
	PUT_AT(e, where, 0x4f, 0x89, 0x84, 0xd9);   /* mov [r9 + r11 * 8 + where], r8 */
	PUT_AT(e, marks, 0x49, 0xff, 0x81);	    /* inc qword [r9 + marks]: leaves it so */
}

static int write_pad(const struct code *code, unsigned site, const uint8_t *bytes, unsigned slot,
		     const uint8_t *mix)
{
	struct emit e = { .at = destination(code->site[site].at, bytes) };
	int ret = code_map_landing(e.at);

	if (ret < 0)
		return ret;
	if (code_is_nop_pair(code))
		put_slot_by_toggle(&e, slot);
	else
		PUT(&e, 0x41, 0xb8, (uint8_t)slot, 0, 0, 0); /* mov r8d, slot */
	put_jump(&e, mix);
	return 0;
}

/* Of NOP pairs the NOP lands nowhere, nor does its front; of word nothing does. */
static int write_landings(const struct code *code, unsigned site, const struct cell *cell,
			  const uint8_t *mix)
{
	unsigned codes = cell->pair == PAIR_WORD ? 0 : code->codes, fronts = codes == 2 ? 1 : codes;
	uint8_t bytes[CODE_LENGTH];
	int ret = 0;

	for (unsigned i = 0; i < fronts * codes && ret == 0; i++) {
		unsigned front = i / codes, back = i % codes;
		bool same_front = codes == 3 && cell->split == 1;

		/* The front of one code with the back of another, as an executor could fetch it. */
		memcpy(bytes, code->site[site].bytes[back], CODE_LENGTH);
		memcpy(bytes, code->site[site].bytes[front], cell->split);
		if (front == back)
			ret = write_target(code, site, bytes, codes == 2 ? SLOT_CALL : i);
		/* The crash oracle has landings for whole codes only. */
		else if (cell->oracle != ORACLE_CRASH && !same_front)
			ret = write_pad(code, site, bytes, codes == 2 ? SLOT_PAD : i, mix);
	}
	return ret;
}

/* A branch out of the loop that only a mix takes, and where it comes back. */
struct mix_branch {
	uint8_t *hole;
	uint8_t *back;
};

static struct mix_branch put_branch(struct emit *e, uint8_t condition)
{
	struct mix_branch branch;

	PUT(e, 0x0f, condition);
	branch.hole = e->at;
	PUT(e, 0, 0, 0, 0);
	branch.back = e->at;
	return branch;
}

/* The branch ends here. */
static void land_branch(const struct mix_branch *branch, const struct emit *e)
{
	struct emit hole = { .at = branch->hole };

	put_rel32(&hole, e->at, 0);
}

/*
 * entry:	mov r9, rsi	counters
 *		mov r10, rdx	number of the toggle
 *		clc
 * site:	the 5 bytes
 *		(the sites beside it, NOPs between them)
 *		(what the pair needs to see its mixes)
 *		(what the cell adds)
 *		dec rdi		leaves the carry alone
 *		jnz site
 *		mov rax, rcx	what the NOP pairs keep there
 *		ret
 *		(where mixes are counted)
 * mix:		(where pads go, their slot in r8; one for each site)
 *
 * Pair word sees its mixes by the lowest and the highest byte of eax:
 *
 *		movzx ecx, al
 *		shr eax, 24
 *		cmp ecx, eax
 *		jne mix
 *		lea ecx, [rcx + rcx * 2]
 *		add ecx, eax
 *		inc qword [r9 + rcx * 8]
 *		inc ecx
 *		cmp rcx, [r9 + last]
 *		jne other
 * back:
 */
static void write_loop(struct code *code, const struct cell *cell, const uint8_t *pads[CELL_INSIDE])
{
	struct emit e = { .at = code->site[0].at - 7 };
	struct mix_branch mix = { 0 }, other = { 0 };

	code->loop = (code_loop_fn *)(uintptr_t)e.at;
	PUT(&e, 0x49, 0x89, 0xf1, 0x49, 0x89, 0xd2, 0xf8);
	for (unsigned i = 0; i < code->sites; i++) {
		put_copies(&e, 0x90, (size_t)(code->site[i].at - e.at));
		put(&e, code->site[i].bytes[0], CODE_LENGTH);
	}
	if (code->pair == PAIR_WORD) {
		PUT(&e, 0x0f, 0xb6, 0xc8, 0xc1, 0xe8, 0x18, 0x39, 0xc1);
		mix = put_branch(&e, 0x85);
		PUT(&e, 0x8d, 0x0c, 0x49, 0x01, 0xc1, 0x49, 0xff, 0x04, 0xc9, 0xff, 0xc1);
		PUT_AT(&e, offsetof(struct code_slots, last), 0x49, 0x3b, 0x89);
		other = put_branch(&e, 0x85);
		mix.back = other.back = e.at;
	} else if (code_is_nop_pair(code)) {
		mix = put_branch(&e, 0x82); /* jc */
	}
	code_put_additions(&e, code, cell);
	PUT(&e, 0x48, 0xff, 0xcf, 0x0f, 0x85);
	put_rel32(&e, code->site[0].at, 0);
	PUT(&e, 0x48, 0x89, 0xc8, 0xc3);
	if (code->pair == PAIR_WORD) {
		land_branch(&mix, &e); /* lea r8d, [rcx + rcx * 2]; add r8d, eax */
		PUT(&e, 0x44, 0x8d, 0x04, 0x49, 0x41, 0x01, 0xc0);
		put_mix(&e, 0);
		put_jump(&e, mix.back);
		land_branch(&other, &e); /* mov [r9 + last], rcx; inc qword [r9 + seen] */
		PUT_AT(&e, offsetof(struct code_slots, last), 0x49, 0x89, 0x89);
		PUT_AT(&e, offsetof(struct code_slots, seen), 0x49, 0xff, 0x81);
		put_jump(&e, other.back);
	} else if (code_is_nop_pair(code)) {
		land_branch(&mix, &e); /* a set carry is a tear: counted, and cleared */
		put_slot_by_toggle(&e, SLOT_CARRY);
		put_mix(&e, 0);
		put_jump(&e, mix.back);
	}
	for (unsigned i = 0; i < code->sites; i++) {
		pads[i] = e.at;
		put_mix(&e, i);
		put_return(code, &e);
	}
}

int code_build(struct code *code, const struct cell *cell)
{
	bool two = cell->crossing == CROSSING_PAGE;
	const uint8_t *pads[CELL_INSIDE];
	int error = -EEXIST;
	char why[WORDS_WHY];
	uint8_t *arena = NULL;

	/* Sites cross at the second page. Nothing of others is within 2 GiB on either side. */
	for (unsigned i = 0; i < ARENA_TRIES && error == -EEXIST; i++) {
		uint64_t second =
			ARENA_FIRST + i * ARENA_STRIDE + site_place_of(cell->place).boundary;

		arena = (uint8_t *)(uintptr_t)(second - PAGE);
		error = code_map(second - PAGE, PAGES * PAGE);
	}
	if (error < 0)
		return error;
	/* Under the site: the second page, and where it ends in it also the first. */
	if (has_site_place(cell))
		error = place_pages(two ? arena : arena + PAGE, two ? 2 : 1, cell->place);
	/* Or a fork of a provoker's would leave the patcher with copies, elsewhere. */
	if (error == 0 && madvise(arena, PAGES * PAGE, MADV_DONTFORK) < 0)
		error = -errno;
	if (error < 0)
		return error;
	*code = (struct code){ .site[0].at = code_place_site(arena, cell), .sites = 1 };
	code->length = CODE_LENGTH;
	code->split = cell->split;
	code->again = code->site[0].at;
	if (!protocol_is_compiled(cell->protocol))
		error = protocol_file(cell->protocol, &code->protocol, why);
	if (error == 0 && cell->pair == PAIR_OWN)
		return own_build(code, cell);
	if (error < 0)
		return error;
	write_codes(code, cell);
	write_loop(code, cell, pads);
	for (unsigned i = 0; i < code->sites && error == 0; i++)
		error = write_landings(code, i, cell, pads[i]);
	return error;
}

static bool is_whole(const struct code *code, unsigned slot)
{
	return code_is_nop_pair(code) ? slot == SLOT_CALL : slot % 4 == 0;
}

/* Of NOP pairs a call front is old in even toggles, call to NOP; odd ones are back. */
static enum tear_kind kind_of_mix(const struct code *code, unsigned slot)
{
	bool old_front = code_is_nop_pair(code) ? slot == SLOT_PAD || slot == SLOT_CARRY + 1
						: slot % 3 == (slot / 3 + 1) % 3;

	if (code->pair == PAIR_OWN)
		return TEAR_OTHER;
	return old_front ? TEAR_OLD_FRONT : TEAR_NEW_FRONT;
}

void code_collect(const struct code *code, const struct code_slots *slots, uint64_t executions,
		  struct cell_result *result)
{
	for (const struct code_slots *s = slots; s < slots + code->sites; s++) {
		uint64_t others = executions;

		result->executions += executions;
		for (unsigned i = 0; i < SLOT_SORTED; i++) {
			others -= s->at[i];
			if (is_whole(code, i))
				result->old_new[i != 0] += s->at[i];
			else
				result->tears[kind_of_mix(code, i)] += s->at[i];
		}
		/* Else an execution that is in no slot ran something that was not foreseen. */
		*(code_is_nop_pair(code) ? &result->old_new[1] : &result->tears[TEAR_OTHER]) +=
			others;
	}
}

/* A call that ended the round before comes right before this one. */
void code_run(const struct code *code, uint64_t iterations, struct code_slots *slots,
	      const uint64_t *toggle)
{
	uint64_t last = slots->last == 1 ? iterations + 1 : 0;

	last = code->loop(iterations, slots, toggle, last);
	if (code_is_nop_pair(code))
		slots->last = last;
}

uint64_t code_exposed(const struct code *code, const struct code_slots *slots, uint64_t toggles)
{
	uint64_t standing = toggles % code->codes, seen = slots->seen;

	/*
	 * No toggle has replaced the code that stands at the end. NOP pairs: a call that follows
	 * no call ends a run of NOPs and begins a run of calls, but the first has no NOPs before
	 * it, and the last run of calls has no end if calls stand. Other pairs: the first run of
	 * the first code was counted as a change, too.
	 */
	if (code_is_nop_pair(code) && seen)
		seen = 2 * seen - (toggles % 2 ? 1 : 2);
	else if (!code_is_nop_pair(code) && slots->last == standing * 4 + 1)
		seen--;
	return seen < toggles ? seen : toggles;
}

uint64_t code_tears(const struct code *code, const struct code_slots *slots)
{
	struct cell_result so_far = { 0 };

	code_collect(code, slots, 0, &so_far);
	so_far.tears[TEAR_OTHER] = 0; /* made of the executions, which are not known */
	return cell_result_tears(&so_far);
}

bool code_mark(const struct code_slots *slots, uint64_t number, struct code_mark *mark)
{
	uint64_t made = __atomic_load_n(&slots->marks, __ATOMIC_ACQUIRE);
	const struct code_mark *at = &slots->mark[number % CODE_MARKS];

	if (number >= made)
		return false;
	mark->tsc = __atomic_load_n(&at->tsc, __ATOMIC_RELAXED);
	mark->where = __atomic_load_n(&at->where, __ATOMIC_RELAXED);
	/* The executor may have written the next mark over it meanwhile. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&slots->marks, __ATOMIC_RELAXED) - number < CODE_MARKS;
}

/*
 * In toggle A -> B a mix of the third code C with A is one of C -> A, counted late. With B it may
 * be two changes old, or one of B -> C, counted two toggles late: the blame cannot be told.
 */
enum tear_kind code_mark_kind(const struct code *code, const struct code_mark *mark)
{
	unsigned slot = mark->where & 0xff, front = slot / 3, back = slot % 3;
	unsigned from = (unsigned)(code_mark_toggle(mark) % 3);

	if (code->codes == 3 && (slot >= SLOT_SORTED || (front != from && back != from)))
		return TEAR_OTHER;
	return kind_of_mix(code, slot);
}

unsigned code_stir(const struct code *code, uint64_t number)
{
	uint16_t bytes = (uint16_t)(number * 0x0101);
	unsigned i;

	for (i = 0; i < CODE_EXTRA && code->extra[i]; i++)
		/* One store across the line: any mix of the two bytes is as good. */
		__asm__ volatile("movw %1, %0"
				 : "=m"(*(uint8_t(*)[2])(code->extra[i] + 3))
				 : "r"(bytes)
				 : "memory");
	return i;
}
