/* SPDX-License-Identifier: MIT */
#include "patchcore/site/own.h"

#include <link.h>
#include <string.h>

extern const char __start_patchcore_nopatch[] __attribute__((visibility("hidden")));
extern const char __stop_patchcore_nopatch[] __attribute__((visibility("hidden")));

uintptr_t own_start = (uintptr_t)__start_patchcore_nopatch;
uintptr_t own_end = (uintptr_t)__stop_patchcore_nopatch;

/* The executable part of the shared library that NOPATCH code lies in. Stops there. */
static int widen_own_range(struct dl_phdr_info *info, size_t size, void *unused)
{
	const char *name = strrchr(info->dlpi_name, '/');

	(void)size;
	(void)unused;
	if (strncmp(name ? name + 1 : info->dlpi_name, "libpatchcore.so", 15) != 0)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + part->p_vaddr, end = start + part->p_memsz;

		if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) || own_start < start ||
		    own_start >= end)
			continue;
		own_start = start;
		own_end = end;
		return 1;
	}
	return 0;
}

__attribute__((constructor)) static void know_own(void)
{
	dl_iterate_phdr(widen_own_range, NULL);
}
