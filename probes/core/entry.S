/* SPDX-License-Identifier: MIT */
/*
 * The trampoline that sites call. The site calls the probe's stub, which pushes the id and jumps
 * here. The stack then is
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
 *  7. Change to the block's stack where the thread is not on its own with room enough: stack.c.
 *  8. Save the vectors, unless the function keeps them. The x87 stack is empty at calls, but not at
 *     markers: the function gets an empty one.
 *     By moves, which take a tenth of the time of XSAVE and XRSTOR, where it is known which halves
 *     are in use: halves that are not are zero, and stay so, or SSE code would be slow afterwards.
 *
 * The library has all steps. Each region of stubs has a copy of the fast path: steps 1 to 6 for
 * functions that keep the vectors, or change some of the lower ones by SSE instructions, which
 * leave the upper parts as they are. These few are saved. Small functions that call nothing are
 * copied, and not called: leaf.c.
 *
 * It returns by a RET to where the site's CALL came from, which shadow stacks agree with.
 */
#include "probes/core/entry.h"

#define LOWER_AREA 144 /* xmm0 to 7, MXCSR twice */

.macro push_cfa register
	push \register
	.cfi_adjust_cfa_offset 8
.endm

.macro pop_cfa register
	pop \register
	.cfi_adjust_cfa_offset -8
.endm

/* 1 and 127 overflow, 0 and 127 do not: LAHF and SETO in return. */
.macro restore_flags
	add $127, %al
	sahf
.endm

/* Steps 1 and 2. Leaves rdx: the block, rcx: the slot, ax: the flags; no block: to \no_block. */
.macro count_event block_offset, slots, no_block
	push_cfa %rax
	push_cfa %rcx
	push_cfa %rdx
	lahf
	seto %al
	mov 24(%rsp), %rcx
	mov \block_offset(%rip), %rdx
	mov %fs:(%rdx), %rdx
	test %rdx, %rdx
	jz \no_block
	incq BLOCK_COUNTS(%rdx,%rcx,8)
	shl $SLOT_SHIFT, %rcx
	add \slots(%rip), %rcx
.endm

/* Step 3: back to the site, unless there is a function. */
.macro return_without_function has_function
	cmpq $0, (%rcx)
	jne \has_function
	restore_flags
	pop_cfa %rdx
	pop_cfa %rcx
	pop_cfa %rax
	lea 8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_adjust_cfa_offset 32
.endm

/*
 * Step 6 for a small function: jump to its copy, see leaf.c. The flags wait beside the id. The word
 * that says that the thread is inside has to be odd, and another number each time: twice the count
 * plus one is, and it does not wait for the store of the last call.
 */
.macro jump_to_leaf inside, other, meanwhile
	testb $1, BLOCK_INSIDE(%rdx)
	jnz \inside
	testb $SLOT_IS_LEAF, 7(%rcx)
	jz \other
	mov %eax, 28(%rsp)
	mov 24(%rsp), %eax
	mov BLOCK_COUNTS(%rdx,%rax,8), %rax
	lea 1(%rax,%rax), %rax
	mov %rax, BLOCK_INSIDE(%rdx)
	mov (%rcx), %rax
	btr $SLOT_LEAF, %rax
	jnc \meanwhile
	jmp *%rax
.endm

/* Load the registers of struct fi_regs, which rsp points to. */
.macro pop_registers
	.irp register, r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax
	pop_cfa %\register
	.endr
.endm

/* Undo .Lsave_registers, on whichever stack it is: then rsp points to the id again. */
.macro restore_registers
	mov -24(%rbx), %rax
	restore_flags
	mov -8(%rbx), %rbp
	mov -16(%rbx), %r12
	mov -40(%rbx), %r13
	lea 8(%rbx), %rsp
	mov (%rbx), %rbx
	.cfi_def_cfa rsp, 88
	.irp register, rbx, rbp, r12, r13
	.cfi_restore \register
	.endr
	pop_registers
.endm

/* Vectors 0 to 15, 64 bytes each, to where rsp points or from there. */
.macro move_vectors instruction, kind, load
	.irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
	.if \load
	\instruction 64*\i(%rsp), %\kind\i
	.else
	\instruction %\kind\i, 64*\i(%rsp)
	.endif
	.endr
.endm

/* Vectors 16 to 31 and the mask registers, which AVX-512 adds. */
.macro move_more load
	.irp i, 16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	.if \load
	vmovups 64*\i(%rsp), %zmm\i
	.else
	vmovups %zmm\i, 64*\i(%rsp)
	.endif
	.endr
	.irp i, 0,1,2,3,4,5,6,7
	.if \load
	kmovq 2048+8*\i(%rsp), %k\i
	.else
	kmovq %k\i, 2048+8*\i(%rsp)
	.endif
	.endr
.endm

/* The parts of vectors 0 to 15 that are in use, by the bits of XGETBV in r13. */
.macro move_used load
	test $0x40, %r13b
	jnz 3f
	test $4, %r13b
	jnz 2f
	.if \load
	vzeroupper
	.endif
	move_vectors movups, xmm, \load
	jmp 4f
2:	move_vectors vmovups, ymm, \load
	jmp 4f
3:	move_vectors vmovups, zmm, \load
4:
.endm

/* rdi, rsi, rdx and rcx for a function that is called by the copy; rcx has been the slot. */
.macro pass_arguments
	mov 88(%rbp), %edi
	lea 104(%rbp), %rsi
	mov %rsi, 88(%rbp)
	mov SLOT_SITE(%rcx), %rsi
	lea 16(%rbp), %rdx
	mov SLOT_DATA(%rcx), %rcx
	and $-16, %rsp
.endm

/* --- In the library --------------------------------------------------------------------------- */

	.text
	.p2align 6
	.globl probe_entry
	.hidden probe_entry
	.type probe_entry, @function
probe_entry:
	.cfi_startproc
	.cfi_def_cfa_offset 16
	endbr64
	count_event block_of_thread@gottpoff, entry_slots, .Lsave_registers
	return_without_function .Lsave_registers

	/*
	 * Step 4: struct fi_regs is at 8(%rbx), and the id becomes its rsp. Below rbx: rbp, r12, the
	 * flags, the id, r13. All that follows restores by rbx, on whichever stack it is. Then rbp
	 * is the block, r12 the slot.
	 */
	.globl probe_called
	.hidden probe_called
probe_called:
.Lsave_registers:
	.irp register, rsi, rdi, r8, r9, r10, r11, rbx
	push_cfa %\register
	.endr
	mov %rsp, %rbx
	.cfi_def_cfa rbx, 96
	.cfi_offset rbx, -96
	push %rbp
	.cfi_offset rbp, -104
	push %r12
	.cfi_offset r12, -112
	push %rax
	mov 80(%rbx), %rdi
	push %rdi
	push %r13
	.cfi_offset r13, -136
	lea 96(%rbx), %rax
	mov %rax, 80(%rbx)
	mov %rdx, %rbp
	mov %rcx, %r12
	test %rbp, %rbp
	jz .Lmake_block

	/* Steps 5 and 6. */
	testb $1, BLOCK_INSIDE(%rbp)
	jnz .Llose_event
	incq BLOCK_INSIDE(%rbp)
	mov (%r12), %r13
	test %r13, %r13
	jz .Lleave
	/* In front of a copy stands the address of its function, which is called here. */
	btr $SLOT_LEAF, %r13
	jnc .Lchoose_stack
	mov -8(%r13), %r13
	bts $SLOT_KEEPS_VECTORS, %r13

	/* Step 7: r13 is the function. Outside of the room that is known, stack_choose() decides. */
.Lchoose_stack:
	mov %rsp, %rax
	sub BLOCK_ROOM(%rbp), %rax
	cmp BLOCK_ROOM_SIZE(%rbp), %rax
	jb .Lcall
	mov %rbp, %rdi
	mov %rsp, %rsi
	and $-16, %rsp
	call stack_choose
	mov %rax, %rsp

	/* A function that keeps the vectors is called at once. */
.Lcall:	btr $SLOT_KEEPS_VECTORS, %r13
	jnc .Lsave_vectors
	and $-16, %rsp
	mov -32(%rbx), %edi
	mov SLOT_SITE(%r12), %rsi
	lea 8(%rbx), %rdx
	mov SLOT_DATA(%r12), %rcx
	call *%r13

	/* The thread is no longer inside. Where block_register() was called, the event begins anew. */
.Lleave:
	incq BLOCK_INSIDE(%rbp)
	cmpl $0, -28(%rbx)
	jne .Lstart_again
.Lreturn:
	.cfi_remember_state
	restore_registers
	lea 8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_restore_state

	/* The id goes back to where struct fi_regs has rsp. */
.Lstart_again:
	.cfi_remember_state
	mov -32(%rbx), %eax
	mov %rax, 80(%rbx)
	restore_registers
	jmp probe_entry
	.cfi_restore_state

	/* In a probe function already, or without a block: the function is not called. */
.Llose_event:
	lock incq SLOT_LOST(%r12)
	jmp .Lreturn

	/*
	 * The thread's first probe. To make a block takes system calls alone, and little stack. That
	 * the C library gives it back when the thread ends takes more: it is called as a function.
	 * The upper half of the id says so.
	 */
.Lmake_block:
	and $-16, %rsp
	call block_make
	mov -32(%rbx), %r12d
	shl $SLOT_SHIFT, %r12
	add entry_slots(%rip), %r12
	mov %rax, %rbp
	test %rbp, %rbp
	jz .Llose_event
	incq BLOCK_INSIDE(%rbp)
	movl $1, -28(%rbx)
	lea block_register(%rip), %r13
	jmp .Lchoose_stack

	/* Step 8: r11 is the function; r13 says how vectors are saved, 0: by XSAVE or FXSAVE. */
.Lsave_vectors:
	and $-64, %rsp
	sub entry_area(%rip), %rsp
	mov %r13, %r11
	btr $SLOT_KEEPS_UPPER, %r11
	btr $SLOT_KEEPS_FLAGS, %r11
	xor %r13d, %r13d
	cmpl $0, entry_moves(%rip)
	jne .Lsave_by_moves
	/* XSAVE needs a header of zeros. The function gets an empty x87 stack. */
.Lsave_by_xsave:
	xor %edx, %edx
	mov entry_states(%rip), %eax
	test %eax, %eax
	jz .Lsave_by_fxsave
	.irp i, 512,520,528,536,544,552,560,568
	mov %rdx, \i(%rsp)
	.endr
	xsave64 (%rsp)
	testb $1, 512(%rsp) /* is x87 in use? */
	jz .Lcall_saved
	emms
	jmp .Lcall_saved
.Lsave_by_fxsave:
	fxsave64 (%rsp)
	emms

	/* Call it, and load the vectors as they were saved. */
.Lcall_saved:
	mov -32(%rbx), %edi
	mov SLOT_SITE(%r12), %rsi
	lea 8(%rbx), %rdx
	mov SLOT_DATA(%r12), %rcx
	call *%r11
	test %r13d, %r13d
	jnz .Lload_by_moves
	xor %edx, %edx
	mov entry_states(%rip), %eax
	test %eax, %eax
	jz .Lload_by_fxsave
	xrstor64 (%rsp)
	jmp .Lleave
.Lload_by_fxsave:
	fxrstor64 (%rsp)
	jmp .Lleave

	/* r13 keeps the bits of XGETBV, and one more so that it is not 0. */
.Lsave_by_moves:
	mov $1, %ecx
	xgetbv
	test $1, %al /* x87: by the instructions that know it */
	jnz .Lsave_by_xsave
	mov %eax, %r13d
	or $0x100, %r13d
	stmxcsr 2112(%rsp)
	move_used 0
	cmpl $2, entry_moves(%rip)
	jb .Lcall_saved
	move_more 0
	jmp .Lcall_saved

.Lload_by_moves:
	move_used 1
	ldmxcsr 2112(%rsp)
	cmpl $2, entry_moves(%rip)
	jb .Lleave
	move_more 1
	jmp .Lleave
	.cfi_endproc
	.size probe_entry, . - probe_entry

/* --- Where stubs are -------------------------------------------------------------------------- */

/*
 * What is copied there: see entry_copy(). A jump out of reach costs as much as all the rest, so it
 * also calls functions that keep the vectors. No table tells unwinders of the copies: a frame with
 * rbp does. What it cannot do it leaves to the library, as if from there.
 *
 * inside is raised by a load and stores, not in memory, which would be waited for twice by the next
 * call. A handler that comes in between leaves it even, and what it did is forgotten:
 * fi_synchronize() then waits longer, never shorter.
 */
	.section .rodata
	.p2align 6
	.globl entry_copied, entry_copied_leaf, entry_copied_words
	.hidden entry_copied, entry_copied_leaf, entry_copied_words
	/* Steps 1 to 3, and small functions. */
entry_copied:
	.cfi_startproc
	count_event .Lblock_word, .Lslots_word, .Lto_library
.Lis_leaf_no_longer:
	return_without_function .Lhas_function
.Lhas_function:
	jump_to_leaf .Lto_library, .Lis_no_leaf, .Lis_leaf_no_more
.Lis_no_leaf:
	testb $SLOT_KEEPS, 7(%rcx)
	jz .Lto_library

	/* Steps 4 to 7: struct fi_regs is at 16(%rbp), the id becomes its rsp; rbx is the block. */
	.irp register, rsi, rdi, r8, r9, r10, r11
	push %\register
	.endr
	push 80(%rsp)
	push %rbp
	mov %rsp, %rbp
	push %rbx
	push %r12
	push %rax
	mov %rdx, %rbx
	mov BLOCK_INSIDE(%rbx), %r12
	add $1, %r12
	mov %r12, BLOCK_INSIDE(%rbx)
	mov (%rcx), %rax
	mov %rsp, %rsi
	sub BLOCK_ROOM(%rbx), %rsi
	cmp BLOCK_ROOM_SIZE(%rbx), %rsi
	jae .Lgive_up
	btr $SLOT_KEEPS_VECTORS, %rax
	jnc .Lsave_lower
	pass_arguments
	call *%rax
	/* The thread is no longer inside: all registers back, and return. */
.Lleave_near:
	add $1, %r12
	mov %r12, BLOCK_INSIDE(%rbx)
	mov -24(%rbp), %rax
	restore_flags
	mov -16(%rbp), %r12
	mov -8(%rbp), %rbx
	lea 16(%rbp), %rsp
	mov (%rbp), %rbp
	pop_registers
	lea 8(%rsp), %rsp
	ret

	/* Save the lower vectors, and MXCSR where it may change: to read it takes longer than the rest. */
.Lsave_lower:
	btr $SLOT_KEEPS_UPPER, %rax
	jnc .Lgive_up
	pass_arguments
	sub $LOWER_AREA, %rsp
	.irp i, 0,1,2,3,4,5,6,7
	movaps %xmm\i, 16*\i(%rsp)
	.endr
	btr $SLOT_KEEPS_FLAGS, %rax
	jc .Lcall_plain
	stmxcsr 128(%rsp)
	call *%rax
	stmxcsr 132(%rsp)
	mov 132(%rsp), %eax
	cmp 128(%rsp), %eax
	je .Lload_lower
	ldmxcsr 128(%rsp)
	jmp .Lload_lower
.Lcall_plain:
	call *%rax
.Lload_lower:
	.irp i, 0,1,2,3,4,5,6,7
	movaps 16*\i(%rsp), %xmm\i
	.endr
	jmp .Lleave_near

	/* The slot has got another function meanwhile, or there is too little stack: to the library. */
.Lgive_up:
	add $1, %r12
	mov %r12, BLOCK_INSIDE(%rbx)
	mov %rbx, %rdx
	mov -24(%rbp), %rax
	mov -16(%rbp), %r12
	mov -8(%rbp), %rbx
	mov 56(%rbp), %rsi
	lea 64(%rbp), %rsp
	mov (%rbp), %rbp
.Lto_library:
	jmp *.Llibrary_word(%rip)
	/* The slot has lost its copied function meanwhile. */
.Lis_leaf_no_more:
	incq BLOCK_INSIDE(%rdx)
	mov 28(%rsp), %eax
	movl $0, 28(%rsp)
	jmp .Lto_library
	.p2align 3
entry_copied_words:
.Lblock_word:
	.quad 0
.Lslots_word:
	.quad 0
.Llibrary_word:
	.quad 0

	/* For stubs of probes that had a copied function first: a jump less. */
	.p2align 6
entry_copied_leaf:
	count_event .Lblock_word, .Lslots_word, .Lto_library
	jump_to_leaf .Lto_library, .Lis_leaf_no_longer, .Lis_leaf_no_more
	.cfi_endproc
	.org entry_copied + ENTRY_COPY
	.section .note.GNU-stack, "", @progbits
