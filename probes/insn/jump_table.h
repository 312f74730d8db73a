/* SPDX-License-Identifier: MIT */
/*
 * Where the indirect jumps of a function lead, if all of them are by tables of a compiler:
 *
 *	cmp	$7, %edi
 *	ja	otherwise
 *	lea	table(%rip), %rdx
 *	mov	%edi, %edi
 *	movslq	(%rdx,%rdi,4), %rax
 *	add	%rdx, %rax
 *	jmp	*%rax			or at once: jmp *table(,%rdi,8)
 *
 * in any order and through any registers, as long as this is proven: every thread that comes to the
 * jump has come from the check in one line, or by its branch; the number that was checked is the
 * one that picks the entry, its upper half is 0, the table is the one that is added, and lies where
 * the program cannot write. All entries up to the bound lead to instructions of the function, or to
 * where another begins: a part of it that was put elsewhere. A register may have had the address of
 * the table since long before: that is followed along all branches. What is in memory is taken to
 * stay as it was checked or stored, if nothing is stored in between: so the compiler did.
 */
#ifndef PROBES_INSN_JUMP_TABLE_H
#define PROBES_INSN_JUMP_TABLE_H

#include "probes/elf/elf.h"
#include "probes/insn/insn.h"

/* What is known of the code around a function. */
struct jumps {
	const struct elf *elf;
	void *data;
	/* Whether code of others, or that is not known, may lead to an address. */
	bool (*is_entry)(void *data, uint64_t at);
	/* Whether a function, or a part of one, begins there. */
	bool (*is_function)(void *data, uint64_t at);
};

/* The addresses that jumps by tables lead to, each once or more often. Free by free(to). */
struct jump_targets {
	uint64_t *to;
	uint32_t n;
};

/* jumps_follow - 1: these are all. 0: there are others, or it is not certain. -ENOMEM. */
int jumps_follow(const struct jumps *jumps, struct function_code *code,
		 struct jump_targets *targets);

#endif
