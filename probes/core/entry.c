/* SPDX-License-Identifier: MIT */
/*
 * The trampoline that sites call.
 *
 * The site calls the probe's stub, which pushes the id and jumps here. The stack then is
 *
 *	rsp + 8	  address to return to
 *	rsp	  id
 *
 *  1. Save rax, rcx, rdx and the status flags: all that counting takes.
 *  2. Count: one instruction, so that a signal handler that comes in between loses nothing.
 *  3. No function: go back.
 *  4. Save the other registers that a function may change, as struct fi_regs.
 *  5. In a probe function already: the event is lost.
 *  6. Say that the thread is inside, and read the function after that. fi_synchronize() reads the
 *     two in the other order, with a membarrier between, so either it sees the thread inside, or
 *     the thread sees what was stored before the membarrier.
 *  7. Save the vectors, unless the function keeps them. The x87 stack is empty at calls, but not at
 *     markers: the function gets an empty one.
 *     By moves, which take a tenth of the time of XSAVEC and XRSTOR, where it is known which halves
 *     are in use: halves that are not are zero, and stay so, or SSE code would be slow afterwards.
 *
 * The library has all of it. Where stubs are there is a copy of what is in a hurry: 1 to 6 for
 * functions that keep the vectors, or change some of the lower ones by SSE instructions, which
 * leave the upper parts as they are. These few are saved. Small functions that call nothing are
 * copied, and not called: leaf.c.
 *
 * It returns by a RET to where the site's CALL came from, which shadow stacks agree with.
 */
#include "probes/core/entry.h"

#include <assert.h>
#include <cpuid.h>
#include <stddef.h>
#include <string.h>

#include "probes/keeps/keeps.h"

static_assert(sizeof(struct slot) == 1 << SLOT_SHIFT, "the trampoline shifts the id");
static_assert(offsetof(struct slot, function) == 0, "the trampoline reads it there");
static_assert(offsetof(struct slot, data) == SLOT_DATA, "the trampoline reads it there");
static_assert(offsetof(struct slot, site) == SLOT_SITE, "the trampoline reads it there");
static_assert(offsetof(struct slot, lost) == SLOT_LOST, "the trampoline counts there");
static_assert(offsetof(struct block, inside) == BLOCK_INSIDE, "the trampoline counts there");
static_assert(offsetof(struct block, counts) == BLOCK_COUNTS, "the trampoline counts there");
static_assert(KEEPS_XMM == 8, "the trampoline saves eight");
static_assert(sizeof(struct fi_regs) == 80, "the trampoline pushes ten registers");

#define VECTOR_STATES 0xe7 /* x87, SSE, AVX, opmask, the upper halves, zmm16 to 31 */

#define STATES_AVX    0x6
#define STATES_AVX512 0xe0
#define UPPER_AREA    144  /* xmm0 to 7, MXCSR twice */
#define MOVES_AREA    2176 /* zmm0 to 31, k0 to 7, MXCSR; in whole lines */

enum {
	BY_FXSAVE = 0,
	BY_XSAVE = 1,
	BY_XSAVEC = 2
};

struct slot probe_slots[FI_PROBES_MAX];
struct slot *const entry_slots __attribute__((visibility("hidden"))) = probe_slots;

/* For the assembly. */
uint32_t entry_way __attribute__((visibility("hidden")));
uint32_t entry_states __attribute__((visibility("hidden"))); /* mask for xsave */
uint64_t entry_area __attribute__((visibility("hidden"))) = 512;
uint32_t entry_moves __attribute__((visibility("hidden"))); /* 1: up to ymm15, 2: all of AVX-512 */

#define TEXT_(x) #x
#define TEXT(x)	 TEXT_(x)

/* clang-format off */

#define CFA_MOVES(by) ".cfi_adjust_cfa_offset " by "\n"
#define CFA_UNTOLD(by)

/* What a site's stub comes to first. Leaves rdx: the block, rcx: the slot, ax: the flags. */
#define COUNT(block_offset, slots, CFA)                                                            \
	COUNT_ONE(block_offset, slots, CFA)                                                        \
	"12:	cmpq $0, (%rcx)\n"                                                                 \
	"	jne 2f\n"                                                                          \
	"	add $127, %al\n" /* 1 and 127 overflow, 0 and 127 do not */                        \
	"	sahf\n"                                                                            \
	"	pop %rdx\n"                                                                        \
	CFA("-8")                                                                                  \
	"	pop %rcx\n"                                                                        \
	CFA("-8")                                                                                  \
	"	pop %rax\n"                                                                        \
	CFA("-8")                                                                                  \
	"	lea 8(%rsp), %rsp\n"                                                               \
	CFA("-8")                                                                                  \
	"	ret\n"                                                                             \
	CFA("32")

#define COUNT_ONE(block_offset, slots, CFA)                                                        \
	"	push %rax\n"                                                                       \
	CFA("8")                                                                                   \
	"	push %rcx\n"                                                                       \
	CFA("8")                                                                                   \
	"	push %rdx\n"                                                                       \
	CFA("8")                                                                                   \
	"	lahf\n"                                                                            \
	"	seto %al\n"                                                                        \
	"	mov 24(%rsp), %rcx\n"                                                              \
	"	mov " block_offset "(%rip), %rdx\n"                                                \
	"	mov %fs:(%rdx), %rdx\n"                                                            \
	"	test %rdx, %rdx\n"                                                                 \
	"	jz 2f\n"                                                                           \
	"	incq " TEXT(BLOCK_COUNTS) "(%rdx,%rcx,8)\n"                                        \
	"	shl $" TEXT(SLOT_SHIFT) ", %rcx\n"                                                 \
	"	add " slots "(%rip), %rcx\n"

/*
 * To the copy of a small function: see leaf.c. The flags wait beside the id. What says that the
 * thread is inside has to be odd, and another number each time: the count is, and nothing has to
 * wait for what the last call stored.
 */
#define JUMP_LEAF(inside, other, meanwhile)                                                        \
	"	testb $1, " TEXT(BLOCK_INSIDE) "(%rdx)\n"                                          \
	"	jnz " inside "\n"                                                                  \
	"	testb $" TEXT(SLOT_IS_LEAF) ", 7(%rcx)\n"                                          \
	"	jz " other "\n"                                                                    \
	"	mov %eax, 28(%rsp)\n"                                                              \
	"	mov 24(%rsp), %eax\n"                                                              \
	"	mov " TEXT(BLOCK_COUNTS) "(%rdx,%rax,8), %rax\n"                                   \
	"	lea 1(%rax,%rax), %rax\n"                                                          \
	"	mov %rax, " TEXT(BLOCK_INSIDE) "(%rdx)\n"                                          \
	"	mov (%rcx), %rax\n"                                                                \
	"	btr $" TEXT(SLOT_LEAF) ", %rax\n"                                                  \
	"	jnc " meanwhile "\n"                                                                \
	"	jmp *%rax\n"

/* What struct fi_regs keeps, from its beginning. */
#define POP_REGISTERS                                                                              \
	"	pop %r11\n"                                                                        \
	"	pop %r10\n"                                                                        \
	"	pop %r9\n"                                                                         \
	"	pop %r8\n"                                                                         \
	"	pop %rdi\n"                                                                        \
	"	pop %rsi\n"                                                                        \
	"	pop %rdx\n"                                                                        \
	"	pop %rcx\n"                                                                        \
	"	pop %rax\n"

/* Of a function that the copy calls. */
#define ENTRY_ARGUMENTS                                                                            \
	"	mov 88(%rbp), %edi\n"                                                             \
	"	lea 104(%rbp), %rsi\n"                                                            \
	"	mov %rsi, 88(%rbp)\n"                                                             \
	"	mov " TEXT(SLOT_SITE) "(%rcx), %rsi\n"                                            \
	"	lea 16(%rbp), %rdx\n"                                                             \
	"	mov " TEXT(SLOT_DATA) "(%rcx), %rcx\n"                                            \
	"	and $-16, %rsp\n"

asm(".pushsection .text\n"
    ".p2align 6\n"
    ".globl probe_entry\n"
    ".hidden probe_entry\n"
    ".type probe_entry, @function\n"
    "probe_entry:\n"
    ".cfi_startproc\n"
    ".cfi_def_cfa_offset 16\n"
    "	endbr64\n"
    COUNT("block_of_thread@gottpoff", "entry_slots", CFA_MOVES)

    /*
     * The registers of struct fi_regs from 8(%rbx). The id becomes its rsp. Below: rbp, r12,
     * the flags, the id, and r13 where the vectors are saved.
     */
    ".globl probe_called\n"
    ".hidden probe_called\n"
    "probe_called:\n"
    "2:	push %rsi\n"
    ".cfi_adjust_cfa_offset 8\n"
    "	push %rdi\n"
    ".cfi_adjust_cfa_offset 8\n"
    "	push %r8\n"
    ".cfi_adjust_cfa_offset 8\n"
    "	push %r9\n"
    ".cfi_adjust_cfa_offset 8\n"
    "	push %r10\n"
    ".cfi_adjust_cfa_offset 8\n"
    "	push %r11\n"
    ".cfi_adjust_cfa_offset 8\n"
    "	push %rbx\n"
    ".cfi_adjust_cfa_offset 8\n"
    "	mov %rsp, %rbx\n"
    ".cfi_def_cfa rbx, 96\n"
    ".cfi_offset rbx, -96\n"
    "	push %rbp\n"
    ".cfi_offset rbp, -104\n"
    "	push %r12\n"
    ".cfi_offset r12, -112\n"
    "	push %rax\n"
    "	mov 80(%rbx), %rdi\n"
    "	push %rdi\n"
    "	lea 96(%rbx), %rax\n"
    "	mov %rax, 80(%rbx)\n"
    "	mov %rdx, %rbp\n"
    "	mov %rcx, %r12\n"
    "	test %rbp, %rbp\n"
    "	jz 3f\n"
    "	testb $1, " TEXT(BLOCK_INSIDE) "(%rbp)\n"
    "	jnz 7f\n"
    "	incq " TEXT(BLOCK_INSIDE) "(%rbp)\n"
    "	mov (%r12), %rax\n"
    "	test %rax, %rax\n"
    "	jz 6f\n"
    "	btr $" TEXT(SLOT_LEAF) ", %rax\n"
    "	jc 12f\n"
    "	btr $" TEXT(SLOT_KEEPS_VECTORS) ", %rax\n"
    "	jnc 3f\n"
    "9:	and $-16, %rsp\n"
    "	mov " TEXT(SLOT_SITE) "(%r12), %rsi\n"
    "	lea 8(%rbx), %rdx\n"
    "	mov " TEXT(SLOT_DATA) "(%r12), %rcx\n"
    "	call *%rax\n"

    "6:	incq " TEXT(BLOCK_INSIDE) "(%rbp)\n"
    "10:	mov -24(%rbx), %rax\n"
    "	add $127, %al\n"
    "	sahf\n"
    "	mov -8(%rbx), %rbp\n"
    "	mov -16(%rbx), %r12\n"
    "	lea 8(%rbx), %rsp\n"
    "	mov (%rbx), %rbx\n"
    ".cfi_remember_state\n"
    ".cfi_def_cfa rsp, 88\n"
    ".cfi_restore rbx\n"
    ".cfi_restore rbp\n"
    ".cfi_restore r12\n"
    POP_REGISTERS
    "	lea 8(%rsp), %rsp\n"
    ".cfi_def_cfa rsp, 8\n"
    "	ret\n"
    ".cfi_restore_state\n"

    /* The function of which it is a copy. */
    "12:	mov -8(%rax), %rax\n"
    "	jmp 9b\n"

    /* The event is lost. */
    "7:	lock incq " TEXT(SLOT_LOST) "(%r12)\n"
    "	jmp 10b\n"

    /* There is a block now: start again, with the id where it was. */
    "11:	mov -32(%rbx), %rax\n"
    "	mov %rax, 80(%rbx)\n"
    "	mov -24(%rbx), %rax\n"
    "	add $127, %al\n"
    "	sahf\n"
    "	mov -8(%rbx), %rbp\n"
    "	mov -16(%rbx), %r12\n"
    "	lea 8(%rbx), %rsp\n"
    "	mov (%rbx), %rbx\n"
    ".cfi_remember_state\n"
    ".cfi_def_cfa rsp, 88\n"
    ".cfi_restore rbx\n"
    ".cfi_restore rbp\n"
    ".cfi_restore r12\n"
    POP_REGISTERS
    ".cfi_def_cfa rsp, 16\n"
    "	jmp probe_entry\n"
    ".cfi_restore_state\n"

    /* The vectors. r11 keeps the function meanwhile. */
    "3:	push %r13\n"
    ".cfi_offset r13, -136\n"
    "	and $-64, %rsp\n"
    "	sub entry_area(%rip), %rsp\n"
    "	mov %rax, %r11\n"
    "	btr $" TEXT(SLOT_KEEPS_UPPER) ", %r11\n"
    "	btr $" TEXT(SLOT_KEEPS_FLAGS) ", %r11\n"
    "	xor %r13d, %r13d\n"
    "	cmpl $0, entry_moves(%rip)\n"
    "	jne 20f\n"
    "30:	xor %edx, %edx\n"
    "	cmpl $1, entry_way(%rip)\n"
    "	jb 4f\n"
    "	mov %rdx, 512(%rsp)\n"
    "	mov %rdx, 520(%rsp)\n"
    "	mov %rdx, 528(%rsp)\n"
    "	mov %rdx, 536(%rsp)\n"
    "	mov %rdx, 544(%rsp)\n"
    "	mov %rdx, 552(%rsp)\n"
    "	mov %rdx, 560(%rsp)\n"
    "	mov %rdx, 568(%rsp)\n"
    "	mov entry_states(%rip), %eax\n"
    "	jne 31f\n"
    "	xsave64 (%rsp)\n"
    "	jmp 32f\n"
    "31:	xsavec64 (%rsp)\n"
    "32:	testb $1, 512(%rsp)\n" /* is x87 in use? */
    "	jz 5f\n"
    "	emms\n"
    "	jmp 5f\n"
    "4:	fxsave64 (%rsp)\n"
    "	emms\n"
    "5:	test %rbp, %rbp\n"
    "	jz 8f\n"
    "	mov -32(%rbx), %edi\n"
    "	mov " TEXT(SLOT_SITE) "(%r12), %rsi\n"
    "	lea 8(%rbx), %rdx\n"
    "	mov " TEXT(SLOT_DATA) "(%r12), %rcx\n"
    "	call *%r11\n"
    "51:	test %r13d, %r13d\n"
    "	jnz 26f\n"
    "	xor %edx, %edx\n"
    "	mov entry_states(%rip), %eax\n"
    "	cmpl $1, entry_way(%rip)\n"
    "	jb 52f\n"
    "	xrstor64 (%rsp)\n"
    "	jmp 53f\n"
    "52:	fxrstor64 (%rsp)\n"
    "53:	mov -40(%rbx), %r13\n"
    "	test %rbp, %rbp\n"
    "	jnz 6b\n"
    "	cmpq $0, -32(%rbx)\n" /* the event is lost */
    "	js 10b\n"
    "	jmp 11b\n"

    /* A thread without a block: make one, and start again, or lose the event. */
    "8:	call block_make\n"
    "	test %rax, %rax\n"
    "	jnz 51b\n"
    "	mov -32(%rbx), %rax\n"
    "	shl $" TEXT(SLOT_SHIFT) ", %rax\n"
    "	add entry_slots(%rip), %rax\n"
    "	lock incq " TEXT(SLOT_LOST) "(%rax)\n"
    "	movq $-1, -32(%rbx)\n"
    "	jmp 51b\n"

    /* By moves. r13 keeps what was in use, and a bit that is never 0. */
    "20:	mov $1, %ecx\n"
    "	xgetbv\n"
    "	test $1, %al\n" /* x87: by the instructions that know it */
    "	jnz 30b\n"
    "	mov %eax, %r13d\n"
    "	or $0x100, %r13d\n"
    "	stmxcsr 2112(%rsp)\n"
    "	test $0x40, %al\n"
    "	jnz 22f\n"
    "	test $4, %al\n"
    "	jnz 21f\n"
    ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "	movups %xmm\\i, 64*\\i(%rsp)\n"
    ".endr\n"
    "	jmp 23f\n"
    "21:\n"
    ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "	vmovups %ymm\\i, 64*\\i(%rsp)\n"
    ".endr\n"
    "	jmp 23f\n"
    "22:\n"
    ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "	vmovups %zmm\\i, 64*\\i(%rsp)\n"
    ".endr\n"
    "23:	cmpl $2, entry_moves(%rip)\n"
    "	jb 5b\n"
    ".irp i,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
    "	vmovups %zmm\\i, 64*\\i(%rsp)\n"
    ".endr\n"
    ".irp i,0,1,2,3,4,5,6,7\n"
    "	kmovq %k\\i, 2048+8*\\i(%rsp)\n"
    ".endr\n"
    "	jmp 5b\n"

    "26:	test $0x40, %r13b\n"
    "	jnz 28f\n"
    "	test $4, %r13b\n"
    "	jnz 27f\n"
    "	vzeroupper\n"
    ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "	movups 64*\\i(%rsp), %xmm\\i\n"
    ".endr\n"
    "	jmp 29f\n"
    "27:\n"
    ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "	vmovups 64*\\i(%rsp), %ymm\\i\n"
    ".endr\n"
    "	jmp 29f\n"
    "28:\n"
    ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "	vmovups 64*\\i(%rsp), %zmm\\i\n"
    ".endr\n"
    "29:	ldmxcsr 2112(%rsp)\n"
    "	cmpl $2, entry_moves(%rip)\n"
    "	jb 53b\n"
    ".irp i,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
    "	vmovups 64*\\i(%rsp), %zmm\\i\n"
    ".endr\n"
    ".irp i,0,1,2,3,4,5,6,7\n"
    "	kmovq 2048+8*\\i(%rsp), %k\\i\n"
    ".endr\n"
    "	jmp 53b\n"
    ".cfi_endproc\n"
    ".size probe_entry, . - probe_entry\n"
    ".popsection\n"

    /*
     * What is copied to where stubs are: see entry_copy(). A jump out of reach costs as much as
     * all the rest, so it also calls functions that keep the vectors. No table tells unwinders of
     * it: a frame with rbp does. What it cannot do it leaves to the library, as if from there.
     *
     * inside is raised by a load and stores, not in memory, which would be waited for twice by the
     * next call. A handler that comes in between leaves it even, and what it did is forgotten:
     * fi_synchronize() then waits longer, never shorter.
     */
    ".pushsection .rodata\n"
    ".p2align 6\n"
    ".globl entry_copied, entry_copied_leaf, entry_copied_words\n"
    ".hidden entry_copied, entry_copied_leaf, entry_copied_words\n"
    "entry_copied:\n"
    COUNT("91f", "92f", CFA_UNTOLD)
    "2:	test %rdx, %rdx\n"
    "	jz 4f\n"
    JUMP_LEAF("4f", "10f", "13f")
    "10:	testb $" TEXT(SLOT_KEEPS) ", 7(%rcx)\n"
    "	jz 4f\n"
    "	push %rsi\n"
    "	push %rdi\n"
    "	push %r8\n"
    "	push %r9\n"
    "	push %r10\n"
    "	push %r11\n"
    "	push 80(%rsp)\n"
    "	push %rbp\n"
    "	mov %rsp, %rbp\n"
    "	push %rbx\n"
    "	push %r12\n"
    "	push %rax\n"
    "	mov %rdx, %rbx\n"
    "	mov " TEXT(BLOCK_INSIDE) "(%rbx), %r12\n"
    "	add $1, %r12\n"
    "	mov %r12, " TEXT(BLOCK_INSIDE) "(%rbx)\n"
    "	mov (%rcx), %rax\n"
    "	btr $" TEXT(SLOT_KEEPS_VECTORS) ", %rax\n"
    "	jnc 5f\n"
    ENTRY_ARGUMENTS
    "	call *%rax\n"
    "6:	add $1, %r12\n"
    "	mov %r12, " TEXT(BLOCK_INSIDE) "(%rbx)\n"
    "	mov -24(%rbp), %rax\n"
    "	add $127, %al\n"
    "	sahf\n"
    "	mov -16(%rbp), %r12\n"
    "	mov -8(%rbp), %rbx\n"
    "	lea 16(%rbp), %rsp\n"
    "	mov (%rbp), %rbp\n"
    POP_REGISTERS
    "	lea 8(%rsp), %rsp\n"
    "	ret\n"

    /* To read MXCSR takes longer than all the rest. */
    "5:	btr $" TEXT(SLOT_KEEPS_UPPER) ", %rax\n"
    "	jnc 3f\n"
    ENTRY_ARGUMENTS
    "	sub $" TEXT(UPPER_AREA) ", %rsp\n"
    ".irp i,0,1,2,3,4,5,6,7\n"
    "	movaps %xmm\\i, 16*\\i(%rsp)\n"
    ".endr\n"
    "	btr $" TEXT(SLOT_KEEPS_FLAGS) ", %rax\n"
    "	jc 8f\n"
    "	stmxcsr 128(%rsp)\n"
    "	call *%rax\n"
    "	stmxcsr 132(%rsp)\n"
    "	mov 132(%rsp), %eax\n"
    "	cmp 128(%rsp), %eax\n"
    "	je 7f\n"
    "	ldmxcsr 128(%rsp)\n"
    "	jmp 7f\n"
    "8:	call *%rax\n"
    "7:\n"
    ".irp i,0,1,2,3,4,5,6,7\n"
    "	movaps 16*\\i(%rsp), %xmm\\i\n"
    ".endr\n"
    "	jmp 6b\n"

    /* Another function has come meanwhile, or none. */
    "3:	add $1, %r12\n"
    "	mov %r12, " TEXT(BLOCK_INSIDE) "(%rbx)\n"
    "	mov %rbx, %rdx\n"
    "	mov -24(%rbp), %rax\n"
    "	mov -16(%rbp), %r12\n"
    "	mov -8(%rbp), %rbx\n"
    "	lea 64(%rbp), %rsp\n"
    "	mov (%rbp), %rbp\n"
    "4:	jmp *93f(%rip)\n"
    "13:	incq " TEXT(BLOCK_INSIDE) "(%rdx)\n"
    "	mov 28(%rsp), %eax\n"
    "	movl $0, 28(%rsp)\n"
    "	jmp 4b\n"
    ".p2align 3\n"
    "entry_copied_words:\n"
    "91:	.quad 0\n"
    "92:	.quad 0\n"
    "93:	.quad 0\n"

    /* For stubs of probes that had such a function first: a jump less. */
    ".p2align 6\n"
    "entry_copied_leaf:\n"
    COUNT_ONE("91b", "92b", CFA_UNTOLD)
    JUMP_LEAF("4b", "12b", "13b")
    "2:	jmp 4b\n"
    ".org entry_copied + " TEXT(ENTRY_COPY) "\n"
    ".popsection\n");
/* clang-format on */

extern const uint8_t entry_copied[ENTRY_COPY] __attribute__((visibility("hidden")));
extern const uint8_t entry_copied_leaf[] __attribute__((visibility("hidden")));
extern const uint8_t entry_copied_words[] __attribute__((visibility("hidden")));
extern void probe_called(void) __attribute__((visibility("hidden")));

size_t entry_at(uint32_t id)
{
	uintptr_t word = atomic_load_explicit(&probe_slots[id].function, memory_order_relaxed);

	return word >> SLOT_LEAF & 1 ? (size_t)(entry_copied_leaf - entry_copied) : 0;
}

void entry_copy(uint8_t to[ENTRY_COPY])
{
	const uintptr_t words[] = {
		block_offset(),
		(uintptr_t)probe_slots,
		(uintptr_t)probe_called,
	};

	memcpy(to, entry_copied, ENTRY_COPY);
	memcpy(to + (entry_copied_words - entry_copied), words, sizeof(words));
}

static uint64_t xcr0(void)
{
	uint32_t low, high;

	asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | low;
}

/* To the end of the last component in the usual format; the compact one is never longer. */
static uint64_t area_size(uint32_t states)
{
	uint64_t end = 576;
	unsigned size, offset, c, d;

	for (unsigned i = 2; i < 32; i++) {
		if (!(states & 1u << i) || !__get_cpuid_count(0xd, i, &size, &offset, &c, &d))
			continue;
		if (offset + size > end)
			end = offset + size;
	}
	/* Compact components may be aligned to 64 bytes. */
	return (end + 64 * 8 + 63) & ~UINT64_C(63);
}

/* Needs XGETBV of what is in use. Halves of AVX-512 without BW are left to XSAVE. */
static void moves_start(void)
{
	unsigned a, b = 0, c, d;

	if ((entry_states & STATES_AVX) != STATES_AVX)
		return;
	__get_cpuid_count(7, 0, &a, &b, &c, &d);
	if ((entry_states & STATES_AVX512) == STATES_AVX512 && b & bit_AVX512F && b & bit_AVX512BW)
		entry_moves = 2;
	else if (!(entry_states & STATES_AVX512))
		entry_moves = 1;
	if (entry_moves && entry_area < MOVES_AREA)
		entry_area = MOVES_AREA;
}

void entry_start(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return;
	entry_states = (uint32_t)xcr0() & VECTOR_STATES;
	entry_area = area_size(entry_states);
	entry_way = BY_XSAVE;
	if (!__get_cpuid_count(0xd, 1, &a, &b, &c, &d))
		return;
	if (a & 2)
		entry_way = BY_XSAVEC;
	if (a & 4)
		moves_start();
}
