/* SPDX-License-Identifier: MIT */
/*
 * From the jump at a marker to the trampoline of the core, and back.
 *
 *	stub:	lea	-128(%rsp), %rsp	over the red zone, before anything is pushed
 *		push	$id
 *		call	*1f(%rip)		marker_entry
 *		jmp	behind the marker
 *	1:	.quad	marker_entry
 *
 * marker_entry pushes the callee-saved registers, so that operands in them can be read, and calls
 * the core's trampoline as an entry's stub does. That saves and restores all other registers and
 * the flags, so nothing here may change a flag. RET 136 takes away the id and the red zone, and
 * shadow stacks agree with it.
 *
 * A stub is never freed nor changed: a thread may be in it at any time after the marker is off.
 */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "probes/core/entry.h"
#include "probes/providers/marker.h"

static_assert(offsetof(struct marker_saved, back) == 48, "marker_entry takes away six registers");
static_assert(offsetof(struct marker_saved, id) == 56, "marker_entry reads it from there");
static_assert(sizeof(struct marker_saved) == 64 + 128, "RET takes away 136 behind the address");

#define PUSH(what) "	push " what "\n.cfi_adjust_cfa_offset 8\n"

/* clang-format off */
asm(".pushsection .text\n"
    ".p2align 6\n"
    ".globl marker_entry\n"
    ".hidden marker_entry\n"
    ".type marker_entry, @function\n"
    "marker_entry:\n"
    ".cfi_startproc\n"
    ".cfi_def_cfa_offset 8\n"
    "	endbr64\n"
    PUSH("%rbx") PUSH("%rbp") PUSH("%r12") PUSH("%r13") PUSH("%r14") PUSH("%r15")
    "	call 1f\n"
    "	lea 48(%rsp), %rsp\n"
    ".cfi_adjust_cfa_offset -48\n"
    "	ret $136\n"
    ".cfi_adjust_cfa_offset 56\n"
    "1:" PUSH("64(%rsp)")
    "	jmp probe_entry\n"
    ".cfi_endproc\n"
    ".size marker_entry, . - marker_entry\n"
    ".popsection\n");
/* clang-format on */

static const uint8_t stub_code[] = {
	0x48, 0x8d, 0x64, 0x24, 0x80,	    /* lea -128(%rsp), %rsp */
	0x68, 0x00, 0x00, 0x00, 0x00,	    /* push $id */
	0xff, 0x15, 0x08, 0x00, 0x00, 0x00, /* call *8(%rip) */
	0xe9, 0x00, 0x00, 0x00, 0x00,	    /* jmp back */
	0xcc, 0xcc, 0xcc,
};
#define STUB_ID	  6
#define STUB_BACK 16

static_assert(sizeof(stub_code) == 24, "the address is at 24, 8 behind the call");

int stub_make(uint8_t stub[STUB_BYTES], const uint8_t *at, uint32_t id, const uint8_t *back)
{
	void (*entry)(void) = marker_entry;

	memcpy(stub, stub_code, sizeof(stub_code));
	memcpy(stub + STUB_ID, &id, sizeof(id));
	memcpy(stub + sizeof(stub_code), &entry, sizeof(entry));
	return site_rel32(stub + STUB_BACK, 0xe9, at + STUB_BACK, back);
}
