/* SPDX-License-Identifier: MIT */
/*
 * Entries and exits: the calls of hooks that -finstrument-functions puts there in each function.
 *
 * They lead to the functions of that name in libc, which do nothing: nothing is lost when they are
 * turned off. Calls of hooks that the program or a library defines itself are left alone.
 * By the call at the entry the argument registers of the function hold the arguments of the call.
 */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <string.h>

#include "probes/providers/calls.h"

/* Bound by the loader for this library, and so for all objects without hooks of their own. */
extern void __cyg_profile_func_enter(void *function, void *caller) __attribute__((weak));
extern void __cyg_profile_func_exit(void *function, void *caller) __attribute__((weak));

static bool do_nothing; /* both are libc's */

/* The object that a function lies in, by where it was loaded. */
static const void *find_object(const void *function)
{
	Dl_info info;

	return function && dladdr(function, &info) ? info.dli_fbase : NULL;
}

/* Not in discover(): dladdr() waits for the loader, which may wait for the core's lock. */
__attribute__((constructor)) static void find_libc_hooks(void)
{
	const void *libc = find_object(gnu_get_libc_version);

	do_nothing = libc && find_object(__cyg_profile_func_enter) == libc &&
		     find_object(__cyg_profile_func_exit) == libc;
}

/* The slot must hold libc's hook, or before the first call an address in the object's PLT. */
static const char *refuse_hook(const struct object *object, const struct elf_symbols *symbols,
			       const struct called *to, const void *slot)
{
	uintptr_t put;

	memcpy(&put, slot, sizeof(put));
	if (do_nothing && !calls_defined(symbols, to->function) &&
	    (put == (uintptr_t)to->bound || (put >= object->start && put < object->end)))
		return NULL;
	return CALLS_OWN;
}

static const struct calls calls = {
	.provider = &hooks_provider,
	.to = { { .function = "__cyg_profile_func_enter",
		  .kind = FI_ENTRY,
		  .bound = __cyg_profile_func_enter },
		{ .function = "__cyg_profile_func_exit",
		  .kind = FI_EXIT,
		  .bound = __cyg_profile_func_exit } },
	.by_argument = true,
	.refuse = refuse_hook,
};

static int discover_hooks(struct object *object, const struct elf *elf)
{
	return calls_discover(&calls, object, elf);
}

const struct provider hooks_provider = {
	.name = "cyg",
	.discover = discover_hooks,
	.arm = calls_arm,
};
