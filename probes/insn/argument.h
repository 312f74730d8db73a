/* SPDX-License-Identifier: MIT */
/*
 * The first argument of calls, where it is a constant that is the same however the call is come to.
 */
#ifndef PROBES_INSN_ARGUMENT_H
#define PROBES_INSN_ARGUMENT_H

#include "probes/insn/constants.h"

struct arguments {
	struct constants constants;
	uint16_t over_calls; /* registers that outlast calls that may not return */
	uint16_t one_value;  /* registers that unseen ways into the function leave as they are */
	bool anywhere;	     /* an indirect jump may lead to any instruction */
};

/*
 * arguments_open - prepare for a function that function_read() has read; until arguments_find()
 * more of its instructions may be opened by function_open().
 * @landing_pads: the object has handlers of exceptions
 */
void arguments_open(struct arguments *arguments, struct function_code *code, bool landing_pads);

/* arguments_hook - the call at an address always returns. */
void arguments_hook(struct arguments *arguments, uint64_t at);

/* arguments_find - of all calls. -ENOMEM. arguments_close() it, also after an error. */
int arguments_find(struct arguments *arguments);
void arguments_close(struct arguments *arguments);

/* argument_at - what is in rdi at the call or jump at an address; NULL: that is not plain. */
const struct constant *argument_at(const struct arguments *arguments, uint64_t at);

#endif
