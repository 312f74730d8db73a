/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "patchcore/flight.h"
#include "patchcore/library.h"
#include "patchcore/text.h"

int pc_forget(void *addr, size_t len)
{
	uintptr_t start = (uintptr_t)addr, end = start + len;
	int ret;

	if (!library_sync())
		return -ESHUTDOWN;
	if (len == 0 || end < start)
		return -EINVAL;
	ret = flight_forget(start, end);
	if (ret == 0)
		text_forget(start, end);
	return ret;
}
