/* SPDX-License-Identifier: MIT */
/*
 * patchcore, optional checking layer: may this change be made while other threads run the code?
 *
 * A library of its own, libpatchcore_check (pkg-config patchcore_check), because
 * it needs a decoder of instructions, Zydis.
 */
#ifndef PATCHCORE_CHECK_H
#define PATCHCORE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* The longest change, in bytes, that one pc_check_site() looks at. */
#define PC_CHECK_MAX 32

/*
 * What a change does. In the masks bit i stands for addr + i. They reach to where an instruction
 * ends in both the old and the new code, at the end of the change or some bytes behind it.
 */
struct pc_check {
	uint64_t old_starts;  /* an instruction of the old code starts there */
	uint64_t new_starts;  /* of the new code */
	uint64_t lost_starts; /* of the old code and not of the new: nothing may be lost */
	/*
	 * Old starts behind a jump or a return, which only a jump from elsewhere
	 * could reach. If all lost starts are among them and the caller knows
	 * that nothing jumps there, then nothing is lost.
	 */
	uint64_t after_jump;
	uint64_t relative; /* new starts with an operand relative to RIP: right only here */
	uint32_t starts;   /* in both, inside the change: what pc_patch_starts() asks for */
	uint16_t old_end;  /* bytes to where the old code was decoded; 0 after some errors */
	uint16_t new_end;  /* the new; the same if both go on alike from there, or it jumps away */
	bool merges_nops;  /* the lost starts are of 1-byte NOPs that become one instruction */
	bool old_partial;  /* the change ends inside an old instruction: it is not changed whole */
	bool new_partial;  /* the change ends inside a new one, which ends in code that was there */
	bool int3;	   /* the new code starts with INT3 */
	bool old_invalid;  /* the old code has bytes that are no instruction */
	bool new_invalid;  /* the new code has */
	bool cut;	   /* an instruction that is not changed whole crosses the window */
	/* Bytes of the change before the boundary that it crosses, 0 if it crosses none. */
	unsigned window; /* bytes that one store changes here (pc_get_status), the first boundary */
	unsigned window_split;
	unsigned line_split; /* 64 bytes */
	unsigned page_split; /* 4096 bytes */
	char why[200];	     /* one line: what forbids the change, or how it can be made */
};

/*
 * pc_check_site - may len bytes at addr be replaced while other threads run them?
 * @addr:   first byte to change, which must start an instruction
 * @bytes:  the new code
 * @len:    1 to 32 bytes; more than pc_patch() takes, for changes made otherwise
 * @result: what was found, also after an error other than those of the arguments.
 *          Zeroed first.
 *
 * Decodes the old code from addr to the end of the last instruction that the
 * change touches, and the new code as it would stand there. A change keeps layout
 * equivalence if no address is the start of an instruction in the old code and
 * not in the new: a thread that stands there, or comes from elsewhere, would run
 * the middle of an instruction (APM vol. 2, 7.6.1). New starts may be added.
 *
 * Changes nothing. Reads only what is mapped, and does not fault where it is not.
 * The answer holds as long as the code is not changed. It rests on decoding
 * from addr on; jumps into the middle of an instruction are not looked for.
 *
 * The window is that of pc_get_status(), or 8 if that fails.
 *
 * Thread-safe, not async-signal-safe. Returns 0 if the change may be made with
 * pc_patch(), or with pc_patch_starts() and result->starts where more than one
 * instruction starts before the split (why tells which); or the first of
 *   -EINVAL   bytes or result is NULL, or len is 0 or above 32
 *   -EACCES   the old code cannot be read: both process_vm_readv(2) and
 *             /proc/self/mem are denied
 *   -EFAULT   the old code, with the instruction that the change ends in, is not
 *             mapped or not readable
 *   -EAGAIN   the old code starts with INT3: a patch is under way there, or a
 *             debugger's breakpoint hides what stands there
 *   -ENOEXEC  the old or new code has bytes that are no instruction, or one whose
 *             length depends on the vendor (a near branch with prefix 66)
 *   -EILSEQ   the layout differs: result->lost_starts
 *   -EINVAL   the new code has INT3 at a start, which could not be told from a
 *             held site
 *   -E2BIG    all is well, but the change is longer than PC_PATCH_MAX
 * Paper: section 4, "Layout Equivalence".
 */
int pc_check_site(const void *addr, const void *bytes, size_t len, struct pc_check *result);

__END_DECLS
#endif
