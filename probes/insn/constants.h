/* SPDX-License-Identifier: MIT */
/*
 * Which constant each register holds before each instruction of a function: the one that all ways
 * there agree on. Of the first argument of a call: however the call is come to.
 */
#ifndef PROBES_INSN_CONSTANTS_H
#define PROBES_INSN_CONSTANTS_H

#include "probes/insn/insn.h"

struct constants {
	struct function_code *code;
	const struct jump_table *table; /* by insn.table; NULL: jump tables lead nowhere */
	bool addresses;			/* only constants of LEA are followed, and no copies */
	bool all; /* instructions without a known predecessor are open, unless they fill */
	uint16_t over_calls; /* registers that outlast a call that may not return */
	uint16_t over_open;  /* registers that keep their constants where an instruction is open */
	uint32_t (*in)[INSN_REGISTERS];
	uint32_t *queue;
	uint32_t queued;
};

/* constants_open - make room; the rest is for the caller to fill in. -ENOMEM. */
int constants_open(struct constants *constants, struct function_code *code);
void constants_close(struct constants *constants);

/* constants_find - follow all paths. Instructions that are not seen then are never run. */
void constants_find(struct constants *constants);

/* constants_at - what a register holds before an instruction; NULL: that is not known. */
const struct constant *constants_at(const struct constants *constants, uint32_t index, int reg);

/* constant_equal - whether they are the same. */
bool constant_equal(const struct constant *a, const struct constant *b);

/* --- The first argument of calls ------------------------------------------------------------- */

/*
 * arguments_open - prepare constants_find() for a function that function_read() has read: until
 * then more of its instructions may be opened, and calls be marked as calls that return. -ENOMEM.
 * constants_close() it, also after an error. @landing_pads: the object has handlers of exceptions
 */
int arguments_open(struct constants *constants, struct function_code *code, bool landing_pads);

/* argument_at - the constant in rdi at the call or jump at an address; NULL: not known. */
const struct constant *argument_at(const struct constants *constants, uint64_t at);

#endif
