/* SPDX-License-Identifier: MIT */
/*
 * Calls that -finstrument-functions puts at the entry and at the exits of each function.
 *
 * They lead to the functions of that name in libc, which do nothing: nothing is lost when they are
 * turned off. Where the program or a library has such functions of its own, they stay as they are.
 * By the call at the entry the argument registers of the function hold the arguments of the call.
 */
#include "probes/cyg/cyg.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "probes/calls/calls.h"

#define HOOKS 2

extern void __cyg_profile_func_enter(void *function, void *caller) __attribute__((weak));
extern void __cyg_profile_func_exit(void *function, void *caller) __attribute__((weak));

/* What the loader takes for this library, and so for all that are not told otherwise. */
static const struct hook {
	const char *name;
	void (*taken)(void *function, void *caller);
} hooks[HOOKS] = {
	{ "__cyg_profile_func_enter", __cyg_profile_func_enter },
	{ "__cyg_profile_func_exit", __cyg_profile_func_exit },
};

static bool do_nothing; /* both are libc's */

/* The object that a function lies in, by where it was loaded. */
static const void *object_of(uintptr_t function)
{
	Dl_info info;

	return function && dladdr((void *)function, &info) ? info.dli_fbase : NULL;
}

/* Not in discover(): dladdr() waits for the loader, which may wait for the core's lock. */
__attribute__((constructor)) static void look(void)
{
	const void *libc = object_of((uintptr_t)gnu_get_libc_version);

	do_nothing = libc && object_of((uintptr_t)hooks[0].taken) == libc &&
		     object_of((uintptr_t)hooks[1].taken) == libc;
}

static uintptr_t taken_by(const char *function)
{
	return (uintptr_t)hooks[strcmp(function, hooks[0].name) != 0].taken;
}

/* Also by what the loader has put into the slot: until the first call, an address in the PLT. */
static const char *refuse_call(const struct object *object, const struct elf_symbols *symbols,
			       const struct called *to, const void *slot)
{
	uintptr_t put;

	memcpy(&put, slot, sizeof(put));
	if (do_nothing && !calls_defined(symbols, to->function) &&
	    (put == taken_by(to->function) || (put >= object->start && put < object->end)))
		return NULL;
	return CALLS_OWN;
}

static const struct calls calls = {
	.provider = &cyg_provider,
	.n = HOOKS,
	.to = { { .function = "__cyg_profile_func_enter", .kind = FI_ENTRY },
		{ .function = "__cyg_profile_func_exit", .kind = FI_EXIT } },
	.by_argument = true,
	.refuse = refuse_call,
};

static int discover_cyg(struct object *object, const struct elf *elf)
{
	return calls_discover(&calls, object, elf);
}

const struct provider cyg_provider = {
	.name = "cyg",
	.discover = discover_cyg,
	.arm = calls_arm,
};
