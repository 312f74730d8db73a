/* SPDX-License-Identifier: MIT */
#include "patchcore/kernel/kernel_signal.h"

/*
 * The byte before each belongs to no function: unwinders look there, as if for a call. The NOP
 * behind the second is KERNEL_MARK.
 */
__asm__(".pushsection patchcore_nopatch, \"ax\", @progbits\n"
	".globl kernel_sigreturn, kernel_sigreturn_marked\n"
	".hidden kernel_sigreturn, kernel_sigreturn_marked\n"
	".type kernel_sigreturn, @function\n"
	".type kernel_sigreturn_marked, @function\n"
	"	nop\n"
	"kernel_sigreturn:\n"
	"	movq $15, %rax\n" /* rt_sigreturn */
	"	syscall\n"
	".size kernel_sigreturn, . - kernel_sigreturn\n"
	"	nop\n"
	"kernel_sigreturn_marked:\n"
	"	movq $15, %rax\n"
	"	syscall\n"
	".size kernel_sigreturn_marked, . - kernel_sigreturn_marked\n"
	"	nopl 0x4d617854(%rax, %rax, 1)\n"
	".popsection\n");
