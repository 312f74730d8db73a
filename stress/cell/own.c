/* SPDX-License-Identifier: MIT */
/*
 * Sites of pair own: the old and new code of a protocol's file, of any length and of several
 * instructions.
 *
 * What an execution left in registers, flags and stack pointer, and where it landed, makes a
 * signature. Those of the two whole codes are learned by running each alone, before there are
 * executors; any other signature is a mix that was run to its end. A mix that is no code at all, or
 * leads elsewhere, dies of SIGILL or SIGSEGV and is counted by the parent. So no execution of a mix
 * goes unseen, unless it leaves all that a whole code leaves.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/emit.h"
#include "patchcore/machine/wait.h"
#include "stress/cell/code.h"

#define SCRATCH	    0x00061000u /* page of the table's address, and what stray code may write to */
#define SCRATCH_AT  0x00061800u
#define PAGE	    4096u
#define HEAD_MAX    96 /* bytes before the site */
#define SLOT_OF(k)  ((k)*4)
#define LANDING_MIX 16

/* Distances of the two codes' branches: as those of the pairs, each byte its own. */
static const uint8_t distances[2][4] = { { 0x50, 0x42, 0x52, 0x42 }, { 0x10, 0x11, 0x21, 0x31 } };

/* Called by the loop: an execution whose signature is of no whole code. */
static void count_mix(struct code_slots *slots, const uint64_t *toggle, uint64_t signature)
{
	uint64_t number = *toggle;
	struct code_mark *mark = &slots->mark[slots->marks % CODE_MARKS];

	slots->strange = signature;
	slots->at[CODE_OWN_MIX]++;
	slots->torn += slots->torn_last != number + 1;
	slots->torn_last = number + 1;
	mark->tsc = ticks_now();
	mark->where = number << 8 | CODE_OWN_MIX;
	/* The patcher reads the mark once it is counted. */
	__atomic_store_n(&slots->marks, slots->marks + 1, __ATOMIC_RELEASE);
}

/* [r14 + ...]: something of the counters. */
static void put_counter(struct emit *e, const void *opcode, size_t bytes, size_t offset)
{
	uint32_t at = (uint32_t)offset;

	put(e, opcode, bytes);
	put(e, &at, sizeof(at));
}

#define PUT_COUNTER(e, offset, ...)                                                                \
	put_counter(e, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }), \
		    offset)

/* A branch of two opcode bytes whose end is not known yet. */
static uint8_t *put_branch_ahead(struct emit *e, uint8_t first, uint8_t second)
{
	uint8_t *hole;

	PUT(e, first, second);
	hole = e->at;
	PUT(e, 0, 0, 0, 0);
	return hole;
}

static void land_here(uint8_t *hole, const struct emit *e)
{
	struct emit at = { .at = hole };

	put_rel32(&at, e->at, 0);
}

/*
 * Before the site:
 *
 *		push rbx, rbp, r12 to r15; sub rsp, 8
 *		mov rbx, rdi; mov r14, rsi; mov r13, rdx; mov rbp, rsp
 * again:	mov rsp, rbp
 *		mov eax, scratch; mov ecx, edx, esi and edi, eax
 *		xor r12d, r12d; xor r10d, r10d		clears the carry
 */
static void write_head(struct code *code)
{
	uint8_t head[HEAD_MAX];
	struct emit e = { .at = head };
	uint32_t scratch = SCRATCH_AT;
	size_t entry;
	uint8_t *at;

	PUT(&e, 0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57, 0x48, 0x83, 0xec, 8);
	PUT(&e, 0x48, 0x89, 0xfb, 0x49, 0x89, 0xf6, 0x49, 0x89, 0xd5, 0x48, 0x89, 0xe5);
	entry = e.done;
	PUT(&e, 0x48, 0x89, 0xec, 0xb8);
	put(&e, &scratch, sizeof(scratch));
	PUT(&e, 0x89, 0xc1, 0x89, 0xc2, 0x89, 0xc6, 0x89, 0xc7);
	PUT(&e, 0x45, 0x31, 0xe4, 0x45, 0x31, 0xd2);
	at = code->site[0].at - e.done;
	memcpy(at, head, e.done);
	code->loop = (code_loop_fn *)(uintptr_t)at;
	code->again = at + entry;
}

/*
 * Behind it:
 *
 *		adc r12, r12				where it landed, and the carry
 *		r11 = rax, r10, r12 and rsp - rbp, each rotated
 *		cmp r11, [signature of old]; je old
 *		cmp r11, [signature of new]; je new
 *		count_mix(r14, r13, r11)
 * next:	(what the cell adds)
 *		dec rbx; jnz again
 *		mov rsp, rbp; add rsp, 8; pop all; ret
 * old:		inc qword [r14 + slot * 8]
 *		cmp qword [r14 + last], slot + 1; je next
 *		mov qword [r14 + last], slot + 1; inc qword [r14 + seen]; jmp next
 * new:		(likewise)
 * signatures:	two numbers. Returned.
 */
static uint64_t *write_tail(struct code *code, const struct cell *cell)
{
	struct emit e = { .at = code->site[0].at + code->length };
	void (*mix)(struct code_slots *, const uint64_t *, uint64_t) = count_mix;
	uint8_t *compare[2], *equal[2], *next;
	uint64_t *signatures;

	PUT(&e, 0x4d, 0x11, 0xe4);
	PUT(&e, 0x49, 0x89, 0xc3, 0x49, 0xc1, 0xc3, 21, 0x4d, 0x31, 0xd3);
	PUT(&e, 0x49, 0xc1, 0xc3, 21, 0x4d, 0x31, 0xe3, 0x49, 0xc1, 0xc3, 21);
	PUT(&e, 0x48, 0x89, 0xe1, 0x48, 0x29, 0xe9, 0x49, 0x31, 0xcb);
	for (unsigned k = 0; k < 2; k++) {
		PUT(&e, 0x4c, 0x3b, 0x1d);
		compare[k] = e.at;
		PUT(&e, 0, 0, 0, 0);
		equal[k] = put_branch_ahead(&e, 0x0f, 0x84);
	}
	PUT(&e, 0x48, 0x89, 0xec, 0x4c, 0x89, 0xf7, 0x4c, 0x89, 0xee, 0x4c, 0x89, 0xda);
	PUT(&e, 0x48, 0xb8);
	put(&e, &mix, sizeof(mix));
	PUT(&e, 0xff, 0xd0);
	next = e.at;
	code_put_additions(&e, code, cell);
	PUT(&e, 0x48, 0xff, 0xcb, 0x0f, 0x85);
	put_rel32(&e, code->again, 0);
	PUT(&e, 0x48, 0x89, 0xec, 0x48, 0x83, 0xc4, 8);
	PUT(&e, 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, 0xc3);
	for (unsigned k = 0; k < 2; k++) {
		const uint8_t last = (uint8_t)(SLOT_OF(k) + 1);

		land_here(equal[k], &e);
		PUT_COUNTER(&e, SLOT_OF(k) * sizeof(uint64_t), 0x49, 0xff, 0x86);
		PUT_COUNTER(&e, offsetof(struct code_slots, last), 0x49, 0x83, 0xbe);
		PUT(&e, last, 0x0f, 0x84);
		put_rel32(&e, next, 0);
		PUT_COUNTER(&e, offsetof(struct code_slots, last), 0x49, 0xc7, 0x86);
		PUT(&e, last, 0, 0, 0);
		PUT_COUNTER(&e, offsetof(struct code_slots, seen), 0x49, 0xff, 0x86);
		PUT(&e, 0xe9);
		put_rel32(&e, next, 0);
	}
	/* In a line of their own: they are written while the code is run. */
	signatures = (uint64_t *)(void *)(((uintptr_t)e.at + 127) & ~(uintptr_t)63);
	for (unsigned k = 0; k < 2; k++) {
		e.at = compare[k];
		put_rel32(&e, &signatures[k], 0);
	}
	return signatures;
}

/* Where a branch with these bytes leads: mov r12d, landing; and back behind the site. */
static int write_landing(const struct code *code, const struct site_code *own,
			 const uint8_t *distance, unsigned landing)
{
	const uint8_t *behind = code->site[0].at + code->length;
	struct emit e = { 0 };
	int32_t rel;
	int ret;

	memcpy(&rel, distance, sizeof(rel));
	e.at = code->site[0].at + own->branch_at + 5 + rel;
	ret = code_map_landing(e.at);
	if (ret < 0)
		return ret;
	if (own->branch == BRANCH_TABLE)
		memcpy((void *)(uintptr_t)BRANCH_TABLE_ADDRESS, &e.at, sizeof(e.at));
	PUT(&e, 0x41, 0xbc, (uint8_t)landing, 0, 0, 0);
	if (own->branch == BRANCH_CALL) {
		PUT(&e, 0xc3);
		return 0;
	}
	PUT(&e, 0xe9);
	put_rel32(&e, behind, 0);
	return 0;
}

/* The codes, and where their branches lead; also that of a branch cut by the boundary. */
static int write_codes(struct code *code, unsigned split)
{
	struct code_site *site = &code->site[0];
	int ret = 0;

	for (unsigned k = 0; k < 2 && ret == 0; k++) {
		const struct site_code *own = &code->protocol->code[k];
		unsigned at = own->branch_at + 1;
		uint8_t mixed[4];

		memcpy(site->bytes[k], own->bytes, SITE_BYTES);
		if (own->branch == BRANCH_NONE)
			continue;
		if (own->branch != BRANCH_TABLE)
			memcpy(site->bytes[k] + at, distances[k], sizeof(distances[k]));
		ret = write_landing(code, own, distances[k], 1 + k);
		if (ret < 0 || own->branch == BRANCH_TABLE || split <= at || split >= at + 4)
			continue;
		memcpy(mixed, code->protocol->code[!k].bytes + at, sizeof(mixed));
		memcpy(mixed, distances[k], split - at);
		ret = write_landing(code, own, mixed, LANDING_MIX + k);
	}
	return ret;
}

/* What a whole code leaves: the signature that it has where none is known. */
static uint64_t learn_signature(struct code *code, unsigned k)
{
	static struct code_slots slots;
	const uint64_t toggle = 0;

	slots = (struct code_slots){ 0 };
	memcpy(code->site[0].at, code->site[0].bytes[k], code->length);
	/* A thread that runs what it wrote serialises in between. */
	__asm__ volatile("cpuid" : : "a"(0), "c"(0) : "rbx", "rdx", "memory");
	code->loop(1, &slots, &toggle, 0);
	return slots.strange;
}

int own_build(struct code *code, const struct cell *cell)
{
	uint64_t *signatures, learned[2];
	int ret = code_map(SCRATCH, PAGE);

	if (ret < 0 && ret != -EEXIST)
		return ret;
	code->pair = PAIR_OWN;
	code->codes = 2;
	code->length = code->protocol->length;
	ret = write_codes(code, cell->split);
	if (ret < 0)
		return ret;
	write_head(code);
	signatures = write_tail(code, cell);
	for (unsigned k = 2; k-- > 0;)
		learned[k] = learn_signature(code, k);
	memcpy(signatures, learned, sizeof(learned));
	/* Codes that cannot be told apart are none to test. */
	return learned[0] == learned[1] ? -EINVAL : 0;
}
