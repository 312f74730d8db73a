/* SPDX-License-Identifier: MIT */
/*
 * Where the arguments and the result of a function are, by their types and the SysV ABI.
 */
#ifndef PROBES_SOURCE_ABI_H
#define PROBES_SOURCE_ABI_H

#include "probes/source/libdw.h"
#include "probes/source/source.h"

/* What debug information does not have as such: names of members of an argument, and values. */
struct abi_names {
	struct abi_names *next;
	char bytes[];
};

struct handed;

/*
 * abi_function - fills in the function of that DIE, as it was declared, up to the first argument
 * that the code is not known to be handed where the ABI has it. What is in @names must stay
 * as long as @function is in use; it ends with abi_forget().
 */
void abi_function(Dwarf_Die *die, struct handed *handed, struct source_function *function,
		  struct abi_names **names);
void abi_forget(struct abi_names *names);

enum by_reference {
	BY_VALUE = 0,
	BY_REFERENCE,
	BY_REFERENCE_UNKNOWN,
};

/*
 * abi_by_reference - whether a value of that type is handed over as a pointer to a copy: of a class
 * of C++ that is not copied byte by byte.
 */
enum by_reference abi_by_reference(Dwarf_Die *type);

#endif
