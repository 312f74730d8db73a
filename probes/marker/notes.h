/* SPDX-License-Identifier: MIT */
/* The notes of markers (section .note.stapsdt) of a program or library. */
#ifndef PROBES_MARKER_NOTES_H
#define PROBES_MARKER_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/elf/elf.h"

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
