/* SPDX-License-Identifier: MIT */
#include "base/demangle.h"

#include <libiberty/demangle.h>
#include <stdio.h>
#include <string.h>

#define MANGLED_MOST 1024 /* bytes; libiberty refuses longer names */

struct demangled {
	char *text;
	size_t used;
	bool is_cut;
};

static void add_piece(const char *piece, size_t len, void *arg)
{
	struct demangled *to = arg;

	if (to->is_cut || len >= NAME_ROOM - to->used) {
		to->is_cut = true;
		return;
	}
	memcpy(to->text + to->used, piece, len);
	to->used += len;
}

/* Rust's older names are C++'s as well, with a hash at the end. A failure leaves half a name. */
static bool demangle_symbol(const char *symbol, int options, struct demangled *to)
{
	if (rust_demangle_callback(symbol, options, add_piece, to))
		return !to->is_cut;
	to->used = 0;
	to->is_cut = false;
	return cplus_demangle_v3_callback(symbol, options, add_piece, to) && !to->is_cut;
}

const char *demangle_name(const char *name, bool parameters, char room[NAME_ROOM])
{
	size_t len = strcspn(name, "+");
	struct demangled to = { .text = room };
	char symbol[MANGLED_MOST + 1];

	if (!is_mangled(name) || len > MANGLED_MOST)
		return name;
	snprintf(symbol, sizeof(symbol), "%.*s", (int)len, name);
	if (!demangle_symbol(symbol, DMGL_ANSI | (parameters ? DMGL_PARAMS : 0), &to))
		return name;
	add_piece(name + len, strlen(name + len), &to);
	room[to.used] = '\0';
	return to.is_cut ? name : room;
}

const char *name_for_people(const char *name, bool parameters)
{
	static char room[NAME_ROOM];

	return demangle_name(name, parameters, room);
}
