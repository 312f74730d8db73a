/* SPDX-License-Identifier: MIT */
/* All sites of a program or library, and their source, by its file, which is neither believed nor
 * run. */
#ifndef COMMANDS_FASTINST_SITES_H
#define COMMANDS_FASTINST_SITES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "probes/core/provider.h"
#include "probes/dwarf/source.h"
#include "probes/elf/elf.h"

struct listed_site {
	uint64_t addr;	      /* in the file's own addresses */
	unsigned len;	      /* bytes that a change replaces */
	const char *kind;     /* entry, exit, marker, block, branch, call */
	const char *provider; /* patchable, cyg, blocks, marker, branch */
	char *name;	      /* function, marker or switch; "" if it is not known */
	const char *args;     /* of a marker, as its note says; else NULL */
	const char *reason;   /* why it is refused, or NULL */
	unsigned crosses;     /* the largest boundary that it crosses: 8 to 4096, or 0 */
};

struct listed_sites {
	struct listed_site *site; /* by provider, then by address */
	size_t n;
	struct elf elf;
	struct object object; /* the copy, while sites are looked for */
	bool mapped;
};

/*
 * file_sites_read - those that were compiled in; or with @entries the functions that nothing was
 * compiled into. -ENOEXEC: no ELF file for x86-64; as open(2); -ENOMEM. Freed in any case.
 */
int file_sites_read(struct listed_sites *sites, const char *path, bool entries);

/* file_sites_find - those that were compiled into sites->elf. */
int file_sites_find(struct listed_sites *sites);
void file_sites_free(struct listed_sites *sites);

/* --- source_of.c: debug information of the objects that a command meets, each opened once ----- */

/* source_of - debug information of the file of that path; NULL: there is none. */
struct source *source_of(const char *object);

#define SOURCE_ROOM 512

/* source_text - "FILE:LINE" of an address of the object's file; NULL: not known. */
char *source_text(const char *object, uint64_t addr, char text[SOURCE_ROOM]);

/* put_source - two blanks and that, where it is known. */
void put_source(FILE *out, const char *text);

/* source_json - sets members "file" and "line" of that, where they are known. */
void source_json(const char *object, uint64_t addr, json_t *json);

/* source_named - source_text() of the probe of that kind and name. NULL: several have that name. */
char *source_named(const char *object, const char *kind, const char *name, char text[SOURCE_ROOM]);

#endif
