/* SPDX-License-Identifier: MIT */
/* The provider of markers: what it keeps of one, and what is on the stack while one runs. */
#ifndef PROBES_MARKER_MARKER_H
#define PROBES_MARKER_MARKER_H

#include "probes/elf/elf.h"

#include "probes/core/provider.h"
#include "probes/marker/operand.h"

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

/* Addresses are those of the file. The strings are in the image, and end there. */
struct note {
	uint64_t address;   /* of the 90 */
	uint64_t semaphore; /* 0: none */
	const char *provider;
	const char *name;
	const char *operands;
};

/* Called for each note; what is not 0 ends the reading and is returned. */
typedef int note_fn(const struct note *note, void *data);

/* notes_read - the notes of a file; damaged ones are left out. 0, or what the callback returned. */
int notes_read(const struct elf *elf, note_fn *tell, void *data);

/* Where the symbol of that name is, by the file, if there is exactly one. @name needs no end. */
bool notes_symbol(const struct elf *elf, const char *name, size_t len, uint64_t *address);

#endif
