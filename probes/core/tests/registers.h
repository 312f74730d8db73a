/* SPDX-License-Identifier: MIT */
/*
 * A function with a probe that is called with all registers set, and tells what they are behind the
 * site. For one file of a test.
 */
#ifndef PROBES_CORE_TESTS_REGISTERS_H
#define PROBES_CORE_TESTS_REGISTERS_H

#include <stdint.h>
#include <string.h>
#include <xmmintrin.h>

#include "patchcore/tests/child.h"
#include "probes/include/fastinst.h"

/* Layout known to the assembly below. */
struct registers {
	uint64_t general[15]; /* all but rsp */
	uint64_t flags;
	uint8_t vector[32][64];
	uint64_t mask[8];
};

struct registers set, got;
uint64_t vectors; /* 0: xmm, 1: ymm, 2: zmm and masks */
uint64_t rsp_at_site;

void register_site(void);
void register_run(void);

#define STATUS_FLAGS  0x8d5
#define DEFAULT_MXCSR 0x1f80

/*
 * register_run loads all registers from set and calls register_site, which stores them to got.
 * In the order of struct registers: rax rbx rcx rdx rsi rdi rbp r8 to r15.
 */
asm(".pushsection .text\n"
    ".p2align 4\n"
    ".globl register_site\n"
    ".type register_site, @function\n"
    "register_site:\n"
    "	.fill 5, 1, 0x90\n"
    "	mov %rsp, rsp_at_site(%rip)\n"
    "	mov %rax, got(%rip)\n"
    "	pushf\n"
    "	pop got+120(%rip)\n"
    "	mov %rbx, got+8(%rip)\n"
    "	mov %rcx, got+16(%rip)\n"
    "	mov %rdx, got+24(%rip)\n"
    "	mov %rsi, got+32(%rip)\n"
    "	mov %rdi, got+40(%rip)\n"
    "	mov %rbp, got+48(%rip)\n"
    "	mov %r8, got+56(%rip)\n"
    "	mov %r9, got+64(%rip)\n"
    "	mov %r10, got+72(%rip)\n"
    "	mov %r11, got+80(%rip)\n"
    "	mov %r12, got+88(%rip)\n"
    "	mov %r13, got+96(%rip)\n"
    "	mov %r14, got+104(%rip)\n"
    "	mov %r15, got+112(%rip)\n"
    "	cmpq $1, vectors(%rip)\n"
    "	ja 2f\n"
    "	je 1f\n"
    ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "	movdqu %xmm\\i, got+128+64*\\i(%rip)\n"
    ".endr\n"
    "	ret\n"
    "1:\n"
    ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "	vmovdqu %ymm\\i, got+128+64*\\i(%rip)\n"
    ".endr\n"
    "	ret\n"
    "2:\n"
    ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
    "	vmovdqu64 %zmm\\i, got+128+64*\\i(%rip)\n"
    ".endr\n"
    ".irp i,0,1,2,3,4,5,6,7\n"
    "	kmovw %k\\i, got+2176+8*\\i(%rip)\n"
    ".endr\n"
    "	ret\n"
    ".size register_site, . - register_site\n"

    ".globl register_run\n"
    ".type register_run, @function\n"
    "register_run:\n"
    "	push %rbx\n"
    "	push %rbp\n"
    "	push %r12\n"
    "	push %r13\n"
    "	push %r14\n"
    "	push %r15\n"
    "	sub $8, %rsp\n"
    "	cmpq $1, vectors(%rip)\n"
    "	ja 2f\n"
    "	je 1f\n"
    ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "	movdqu set+128+64*\\i(%rip), %xmm\\i\n"
    ".endr\n"
    "	jmp 3f\n"
    "1:\n"
    ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "	vmovdqu set+128+64*\\i(%rip), %ymm\\i\n"
    ".endr\n"
    "	jmp 3f\n"
    "2:\n"
    ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
    "	vmovdqu64 set+128+64*\\i(%rip), %zmm\\i\n"
    ".endr\n"
    ".irp i,0,1,2,3,4,5,6,7\n"
    "	kmovw set+2176+8*\\i(%rip), %k\\i\n"
    ".endr\n"
    "3:	push set+120(%rip)\n"
    "	popf\n"
    "	mov set(%rip), %rax\n"
    "	mov set+8(%rip), %rbx\n"
    "	mov set+16(%rip), %rcx\n"
    "	mov set+24(%rip), %rdx\n"
    "	mov set+32(%rip), %rsi\n"
    "	mov set+40(%rip), %rdi\n"
    "	mov set+48(%rip), %rbp\n"
    "	mov set+56(%rip), %r8\n"
    "	mov set+64(%rip), %r9\n"
    "	mov set+72(%rip), %r10\n"
    "	mov set+80(%rip), %r11\n"
    "	mov set+88(%rip), %r12\n"
    "	mov set+96(%rip), %r13\n"
    "	mov set+104(%rip), %r14\n"
    "	mov set+112(%rip), %r15\n"
    "	call register_site\n"
    "	add $8, %rsp\n"
    "	pop %r15\n"
    "	pop %r14\n"
    "	pop %r13\n"
    "	pop %r12\n"
    "	pop %rbp\n"
    "	pop %rbx\n"
    "	cmpq $0, vectors(%rip)\n"
    "	je 4f\n"
    "	vzeroupper\n"
    "4:	ret\n"
    ".size register_run, . - register_run\n"
    ".popsection\n"
    ".pushsection __patchable_function_entries, \"awo\", @progbits, .text\n"
    "	.quad register_site\n"
    ".popsection\n");

static uint32_t register_probe(void)
{
	uint32_t id;

	MUST(fi_init() == 0);
	MUST(fi_find("register_site", &id, 1) == 1);
	return id;
}

static void fill(unsigned seed, uint64_t flags)
{
	uint8_t *bytes = (uint8_t *)&set;

	for (size_t i = 0; i < sizeof(set); i++)
		bytes[i] = (uint8_t)(i * 37 + seed * 101 + 13);
	set.flags = flags | 2;
	for (int i = 0; i < 8; i++)
		set.mask[i] &= 0xffff;
	memset(&got, 0, sizeof(got));
}

static void must_be_kept(void)
{
	size_t width = vectors == 0 ? 16 : vectors == 1 ? 32 : 64;

	MUST(memcmp(set.general, got.general, sizeof(set.general)) == 0);
	MUST(((set.flags ^ got.flags) & STATUS_FLAGS) == 0);
	for (int i = 0; i < (vectors == 2 ? 32 : 16); i++)
		MUST(memcmp(set.vector[i], got.vector[i], width) == 0);
	MUST(vectors < 2 || memcmp(set.mask, got.mask, sizeof(set.mask)) == 0);
}

static void run_all(void)
{
	static const uint64_t flags[] = {
		0, STATUS_FLAGS, 0x800, 0x1, 0x40, 0x80, 0x4, 0x10, 0x8d4
	};

	for (unsigned i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		fill(i, flags[i]);
		_mm_setcsr(DEFAULT_MXCSR);
		register_run();
		MUST(_mm_getcsr() == DEFAULT_MXCSR);
		must_be_kept();
	}
}

#endif
