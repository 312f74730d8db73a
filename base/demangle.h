/* SPDX-License-Identifier: MIT */
/* Demangled names of C++ and Rust functions, by libiberty. */
#ifndef BASE_DEMANGLE_H
#define BASE_DEMANGLE_H

#include <stdbool.h>

#define NAME_ROOM 4096

static inline bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

/*
 * demangle_name - the name of a function, or of a block (FUNCTION+OFFSET), in @room, with the types
 * of its @parameters. The name itself where it is not mangled, above 1,024 bytes, or has no room.
 * Allocates only for Rust's identifiers beyond ASCII.
 */
const char *demangle_name(const char *name, bool parameters, char room[NAME_ROOM]);

/* name_for_people - the same, until the next call. */
const char *name_for_people(const char *name, bool parameters);

#endif
