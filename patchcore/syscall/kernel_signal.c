/* SPDX-License-Identifier: MIT */
#include "patchcore/syscall/kernel_signal.h"

/* The byte before belongs to no function: unwinders look there, as if for a call. */
__asm__(".pushsection patchcore_nopatch, \"ax\", @progbits\n"
	".globl kernel_sigreturn\n"
	".hidden kernel_sigreturn\n"
	".type kernel_sigreturn, @function\n"
	"	nop\n"
	"kernel_sigreturn:\n"
	"	movq $15, %rax\n" /* rt_sigreturn */
	"	syscall\n"
	".size kernel_sigreturn, . - kernel_sigreturn\n"
	".popsection\n");
