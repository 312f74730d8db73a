/* SPDX-License-Identifier: MIT */
/*
 * Which functions of a file have five bytes at their entry that can be moved elsewhere, and why
 * not.
 *
 * The instructions that begin in these bytes (one to five of them) are moved; a jump takes their
 * place. That is right if no thread ever comes to an address inside of the jump, which is what is
 * proven, of code that a compiler made, by these steps:
 *
 *  1. Where functions begin and end is known from symbols or .eh_frame. Each is decoded from its
 *     beginning to its end. Where that fails, and between functions, a branch is taken to begin at
 *     every byte. So every direct branch of the object is known, and none leads there.
 *  2. Indirect jumps lead to labels of their own function, or to entries of others. Jump tables are
 *     read: see probes/insn/insn.h. A function with another indirect jump, but by the GOT, is
 *     refused, and so are the other parts of it: functions linked with it by a conditional jump or
 *     by one into the middle.
 *  3. Return addresses lie behind calls, and no call is moved. Only the unwinder leads to landing
 *     pads, and the moved instructions are run one after another from the entry.
 *  4. No symbol names such an address.
 *  5. Threads that are between two of the instructions when the jump is written are waited for by
 *     pc_patch_over(3).
 */
#ifndef PROBES_ENTRIES_SURVEY_H
#define PROBES_ENTRIES_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/elf/elf.h"

#define SURVEY_JUMP  5	/* bytes that are written over */
#define SURVEY_MOVED 19 /* bytes of instructions that begin there, at most */
#define SURVEY_ROOM  48 /* that they take elsewhere, at most */

struct survey_site {
	uint64_t function;  /* address in the file */
	uint64_t end;	    /* of the function */
	uint64_t site;	    /* the same, or behind ENDBR64 */
	const char *name;   /* in the image; "" where no symbol has it */
	const char *reason; /* why it is refused, or NULL */
	uint8_t code[SURVEY_MOVED];
	uint8_t len;	/* of the instructions that are moved */
	uint8_t starts; /* bit i: one of them begins at site + i */
	bool ends;	/* the last of them leads away: nothing follows */
};

struct survey {
	struct survey_site *site;
	size_t n;
	size_t usable;
};

/* survey_make - -ENOMEM. Free by survey_free() in any case. */
int survey_make(struct survey *survey, const struct elf *elf);
void survey_free(struct survey *survey);

/*
 * survey_move - what does the same as the code of a site, at another address.
 * @from: address of the site; @to: where it is to run
 *
 * The length, or -ERANGE: what it refers to is out of reach.
 */
int survey_move(const struct survey_site *site, uint64_t from, uint64_t to,
		uint8_t moved[SURVEY_ROOM]);

#endif
