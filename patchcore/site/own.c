/* SPDX-License-Identifier: MIT */
/* Of the shared library all code is the library's own, from its header to the end of its text. */
#include "patchcore/site/site.h"

extern const char __ehdr_start[] __attribute__((visibility("hidden"))); /* the linker's */
extern const char etext[] __attribute__((visibility("hidden")));

uintptr_t own_start = (uintptr_t)__ehdr_start;
uintptr_t own_end = (uintptr_t)etext;
