/* SPDX-License-Identifier: MIT */
/*
 * Small probe functions that call nothing: a copy of each, between code that saves registers and
 * sets arguments, and code that restores them and returns to the site. So the function is not
 * called, since a call and its return take as long as all the rest.
 *
 * The trampoline jumps there when it has counted and said that the thread is inside. The stack is
 *
 *	rsp + 32  address to return to
 *	rsp + 24  id, and the flags in its upper half
 *	rsp	  rdx, rcx, rax
 *
 * and rdx is the block, rcx the slot. What else the function changes is saved, arguments are set up
 * that it reads. If it reads its registers, all of struct fi_regs is pushed.
 *
 * A copy stays for good: a thread may be in it at any time. It lies near the function, which it
 * may share data with, and has its address in front, for trampolines that call it there.
 */
#include <string.h>

#include "probes/core/core.h"
#include "probes/core/entry.h"

#define COPY_MAX  320
#define LINE	  64 /* bytes */
#define IN_FRONT  8  /* the address of the function */
#define SAVED_MAX 6

/* Registers by their numbers in machine code. */
enum {
	RCX = 1,
	RDX = 2,
	RSI = 6,
	RDI = 7,
	R8 = 8,
	R11 = 11
};

#define HAS(set, reg) ((set) >> (reg)&1)

struct leaf_code {
	uint8_t bytes[COPY_MAX];
	size_t len;
};

static void put_code(struct leaf_code *code, const void *bytes, size_t len)
{
	memcpy(code->bytes + code->len, bytes, len);
	code->len += len;
}

#define PUT(code, ...)                                                                             \
	put_code(code, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

/* PUSH is 0x50, POP 0x58. */
static void put_stack(struct leaf_code *code, uint8_t opcode, unsigned reg)
{
	if (reg >= R8)
		PUT(code, 0x41);
	PUT(code, (uint8_t)(opcode + (reg & 7)));
}

/* mov disp(%rsp), %reg */
static void put_load(struct leaf_code *code, unsigned reg, uint8_t disp)
{
	PUT(code, reg >= R8 ? 0x4c : 0x48, 0x8b, (uint8_t)(0x44 | (reg & 7) << 3), 0x24, disp);
}

static void put_block(struct leaf_code *code)
{
	uint32_t offset = (uint32_t)block_offset();

	PUT(code, 0x64, 0x48, 0x8b, 0x14, 0x25); /* mov %fs:offset, %rdx */
	put_code(code, &offset, sizeof(offset));
}

/* The arguments in rsi and rcx; rcx has been the slot. */
static void put_slot_arguments(struct leaf_code *code, uint16_t reads)
{
	if (HAS(reads, RSI))
		PUT(code, 0x48, 0x8b, 0x71, SLOT_SITE); /* mov SLOT_SITE(%rcx), %rsi */
	if (HAS(reads, RCX))
		PUT(code, 0x48, 0x8b, 0x49, SLOT_DATA); /* mov SLOT_DATA(%rcx), %rcx */
}

/* Distances are taken from where the copy will be. */
static bool put_body(struct leaf_code *code, uintptr_t function, const struct effects *leaf,
		     uintptr_t at)
{
	uint8_t *body = code->bytes + code->len;
	int64_t by = (int64_t)(function - (at + code->len));

	put_code(code, (const void *)function, leaf->size);
	for (unsigned i = 0; i < leaf->relatives; i++) {
		int32_t distance;

		memcpy(&distance, body + leaf->relative[i], sizeof(distance));
		if (distance + by != (int32_t)(distance + by))
			return false;
		distance = (int32_t)(distance + by);
		memcpy(body + leaf->relative[i], &distance, sizeof(distance));
	}
	return true;
}

/* Registers that a call clobbers, but for rax, rcx and rdx, in the order of struct fi_regs. */
static const uint8_t others[SAVED_MAX] = { RSI, RDI, R8, R8 + 1, R8 + 2, R11 };

/* Push all of struct fi_regs that the trampoline has not pushed; set up edi and rdx. */
static void put_registers(struct leaf_code *code)
{
	PUT(code, 0x8b, 0x44, 0x24, 76);       /* mov 76(%rsp), %eax: the flags */
	PUT(code, 0x8b, 0x7c, 0x24, 72);       /* mov 72(%rsp), %edi: the id */
	PUT(code, 0x50);		       /* push %rax */
	PUT(code, 0x48, 0x8d, 0x44, 0x24, 96); /* lea 96(%rsp), %rax: rsp at the site */
	PUT(code, 0x48, 0x89, 0x44, 0x24, 80); /* mov %rax, 80(%rsp) */
	PUT(code, 0x48, 0x8d, 0x54, 0x24, 8);  /* lea 8(%rsp), %rdx */
}

/* The other way around; of the registers those that were set. */
static void put_registers_back(struct leaf_code *code, uint16_t set)
{
	PUT(code, 0x58); /* pop %rax */
	for (size_t i = 0; i < SAVED_MAX; i++)
		if (HAS(set, others[i]))
			put_load(code, others[i], (uint8_t)(8 * (SAVED_MAX - 1 - i)));
	PUT(code, 0x48, 0x8d, 0x64, 0x24, 48); /* lea 48(%rsp), %rsp */
}

static bool put_leaf(struct leaf_code *code, uintptr_t function, const struct effects *leaf,
		     uintptr_t at)
{
	bool reads_registers = HAS(leaf->reads, RDX);
	uint16_t set = leaf->reads | leaf->writes;
	uint8_t saved[SAVED_MAX];
	size_t n = 0;

	for (size_t i = 0; i < SAVED_MAX; i++)
		if (reads_registers || HAS(others[i] < R8 ? set : leaf->writes, others[i]))
			saved[n++] = others[i];
	for (size_t i = 0; i < n; i++)
		put_stack(code, 0x50, saved[i]);
	if (reads_registers)
		put_registers(code);
	else if (HAS(leaf->reads, RDI))
		PUT(code, 0x8b, 0x7c, 0x24, (uint8_t)(24 + 8 * n)); /* mov 24(%rsp), %edi */
	put_slot_arguments(code, leaf->reads | (reads_registers ? 1u << RSI : 0));
	if (!put_body(code, function, leaf, at))
		return false;
	if (reads_registers || HAS(leaf->writes, RDX))
		put_block(code);
	PUT(code, 0x48, 0xff, 0x02); /* incq (%rdx): the thread is no longer inside */
	if (reads_registers) {
		put_registers_back(code, leaf->writes | 1u << RSI | 1u << RDI);
	} else {
		while (n)
			put_stack(code, 0x58, saved[--n]);
		PUT(code, 0x8b, 0x44, 0x24, 28); /* mov 28(%rsp), %eax */
	}
	PUT(code, 0x04, 0x7f, 0x9e);		    /* add $127, %al; sahf */
	PUT(code, 0x5a, 0x59, 0x58);		    /* pop %rdx; pop %rcx; pop %rax */
	PUT(code, 0x48, 0x8d, 0x64, 0x24, 8, 0xc3); /* lea 8(%rsp), %rsp; ret */
	return true;
}

uintptr_t leaf_word(uintptr_t function, const struct effects *leaf)
{
	const struct object *object = object_at(function);
	int64_t offset = (int64_t)block_offset();
	struct leaf_code code = { .len = 0 };
	uintptr_t place, start;

	if (!leaf->moves || !object || offset != (int32_t)offset)
		return 0;
	place = (uintptr_t)near_alloc(object, COPY_MAX + LINE);
	if (!place)
		return 0;
	start = (place + IN_FRONT + LINE - 1) & ~(uintptr_t)(LINE - 1);
	put_code(&code, &function, sizeof(function));
	if (!put_leaf(&code, function, leaf, start - IN_FRONT) ||
	    near_write((void *)(start - IN_FRONT), code.bytes, code.len) < 0)
		return 0;
	return start | UINT64_C(1) << SLOT_LEAF;
}
