/* SPDX-License-Identifier: MIT */
/*
 * The first argument of calls, where it is a constant that is the same however the call is come to.
 */
#ifndef PROBES_INSN_ARGUMENT_H
#define PROBES_INSN_ARGUMENT_H

#include "probes/insn/constants.h"

/*
 * arguments_open - prepare constants_find() for a function that function_read() has read: until
 * then more of its instructions may be opened, and calls be marked as calls that return. -ENOMEM.
 * constants_close() it, also after an error. @landing_pads: the object has handlers of exceptions
 */
int arguments_open(struct constants *constants, struct function_code *code, bool landing_pads);

/* argument_at - what is in rdi at the call or jump at an address; NULL: that is not plain. */
const struct constant *argument_at(const struct constants *constants, uint64_t at);

#endif
