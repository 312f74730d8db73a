/* SPDX-License-Identifier: MIT */
/* In place of starts.c where there is no decoder. */
#include <errno.h>

#include "probes/calls/starts.h"

int calls_starts(const uint8_t *code, size_t len, bool *starts)
{
	(void)code;
	(void)len;
	(void)starts;
	return -ENOTSUP;
}
