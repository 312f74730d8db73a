/* SPDX-License-Identifier: MIT */
#include "patchcore/forget.h"

#include <errno.h>

#include "patchcore/flight.h"
#include "patchcore/library.h"
#include "patchcore/objects.h"
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

static struct objects_view view = OBJECTS_VIEW_INIT;

/* Nobody can be at work there: the code is gone. */
static void gone(uintptr_t start, uintptr_t end)
{
	flight_forget(start, end);
}

void forget_gone(void)
{
	objects_each_gone(&view, gone);
}

void forget_before_fork(void)
{
	forklock_before_fork(&view.lock);
}

void forget_after_fork(void)
{
	forklock_after_fork(&view.lock);
}
