/* SPDX-License-Identifier: MIT */
#include "patchcore/text/pkeys.h"

#include <cpuid.h>

#define OSPKE (1u << 4) /* leaf 7, ECX: the kernel has switched them on */

bool pkeys_on;

__attribute__((constructor)) static void look_up(void)
{
	unsigned a, b, c, d;

	pkeys_on = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & OSPKE);
}
