/* SPDX-License-Identifier: MIT */
/* In place of keeps.c where there is no decoder. */
#include "probes/keeps/keeps.h"

struct leaf keeps_look(uintptr_t function)
{
	(void)function;
	return (struct leaf){ 0 };
}
