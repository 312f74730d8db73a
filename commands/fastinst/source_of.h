/* SPDX-License-Identifier: MIT */
/* Debug information of the objects that a command meets, each opened once. */
#ifndef COMMANDS_FASTINST_SOURCE_OF_H
#define COMMANDS_FASTINST_SOURCE_OF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "probes/dwarf/source.h"

/* source_of - debug information of the file of that path; NULL: there is none. */
struct source *source_of(const char *object);

/* source_text - "FILE:LINE" of an address of the object's file, or "". Returns text. */
char *source_text(const char *object, uint64_t addr, char *text, size_t size);

/* source_json - sets members "file" and "line" of that, where they are known. */
void source_json(const char *object, uint64_t addr, json_t *json);

/* source_named - source_text() of the probe of that kind and name. "" if several entries have it.
 */
char *source_named(const char *object, const char *kind, const char *name, char *text, size_t size);

#endif
