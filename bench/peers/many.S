/* SPDX-License-Identifier: MIT */
/*
 * An object of many functions, each with a site at its entry, as -fpatchable-function-entry=5
 * leaves them. Made where and when it is used: cc -shared -nostdlib -DMANY=20000 many.S
 */
	.text
	.altmacro
	.macro	function number
	.p2align 6
	.type	f\number, @function
f\number:
	.fill	5, 1, 0x90
	lea	1(%rdi), %rax
	ret
	.size	f\number, . - f\number
	.pushsection __patchable_function_entries, "awo", @progbits, .text
	.quad	f\number
	.popsection
	.endm

	.set	i, 0
	.rept	MANY
	function %i
	.set	i, i + 1
	.endr
	.section .note.GNU-stack, "", @progbits
