/* SPDX-License-Identifier: MIT */
/*
 * XRay of clang and compiler-rt: a function whose entry and exit are sleds of NOPs, which
 * __xray_patch_function() turns into calls of a handler.
 *
 * Compiled with -fxray-instrument. The runtime's interface is declared here: its header is C++.
 */
#include "lines.h"

#include <stddef.h>

#define PATCHED 1 /* SUCCESS of enum XRayPatchingStatus */

extern void __xray_init(void);
extern int __xray_set_handler(void (*handler)(int32_t, int));
extern int __xray_patch_function(int32_t id);
extern int __xray_unpatch_function(int32_t id);
extern size_t __xray_max_function_id(void);
extern uintptr_t __xray_function_address(int32_t id);

static int32_t id;

__attribute__((xray_always_instrument, noinline, aligned(64))) void traced(void)
{
	__asm__ volatile("");
}

__attribute__((xray_never_instrument, noinline, aligned(64))) void plain(void)
{
	__asm__ volatile("");
}

LINES_PLAIN void nothing(int32_t number, int type)
{
	(void)number;
	(void)type;
}

LINES_PLAIN void turn_traced(bool on)
{
	if ((on ? __xray_patch_function(id) : __xray_unpatch_function(id)) != PATCHED)
		give_up("XRay's patching failed");
}

LINES_PLAIN const char *get_ready(void)
{
	__xray_init();
	for (size_t i = 1; i <= __xray_max_function_id(); i++)
		if (__xray_function_address((int32_t)i) == (uintptr_t)traced)
			id = (int32_t)i;
	__xray_set_handler(nothing);
	return id ? NULL : "XRay does not know the function";
}
