/* SPDX-License-Identifier: MIT */
/*
 * What made a piece of debug information.
 */
#ifndef PROBES_SOURCE_UNIT_H
#define PROBES_SOURCE_UNIT_H

#include <stdbool.h>

#include "probes/source/libdw.h"

struct unit_by {
	bool gcc, clang;
	bool c, cpp;  /* languages whose arguments are where the ABI of C has them */
	bool dwarf_5; /* which tells of _Atomic types */
	bool odd;     /* with options that change where arguments are, or leave out what tells it */
};

/* unit_by - of the unit that a DIE is in. */
struct unit_by unit_by(Dwarf_Die *die);

#endif
