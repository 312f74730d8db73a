/* SPDX-License-Identifier: MIT */
/* The provider of markers: what it keeps of one, and what is on the stack while one runs. */
#ifndef PROBES_MARKER_MARKER_H
#define PROBES_MARKER_MARKER_H

#include "probes/core/provider.h"
#include "probes/marker/operand.h"

extern const struct provider marker_provider;

/* probe->extra. Never freed: a thread may still be at the site of an object that is unloaded. */
struct marker {
	uint16_t *semaphore; /* NULL: none */
	unsigned count;
	struct operand operands[];
};

/* On the stack, by the stub and marker_entry: fi_regs.rsp points here in a marker's probe function.
 */
struct marker_saved {
	uint64_t r15, r14, r13, r12, rbp, rbx;
	uint64_t back; /* into the stub */
	uint64_t id;
	uint8_t red_zone[128];
};

/* Where stubs call. Not a C function. */
void marker_entry(void);

#define STUB_BYTES 32

/* The stub of a marker, to stand at @at. -ERANGE: @back is out of reach. */
int stub_make(uint8_t stub[STUB_BYTES], const uint8_t *at, uint32_t id, const uint8_t *back);

#endif
