/* SPDX-License-Identifier: MIT */
#include "patchcore/text/objects.h"

#include <errno.h>

#include "patchcore/call/call_form.h"
#include "patchcore/machine/policy.h"
#include "patchcore/site/fork.h"
#include "patchcore/text/text.h"
#include "patchcore/word/flight.h"

int pc_forget(void *addr, size_t len)
{
	uintptr_t start = (uintptr_t)addr, end = start + len;
	struct thread *self;
	int ret;

	if (!choice_sync())
		return -ESHUTDOWN;
	if (len == 0 || end < start)
		return -EINVAL;
	ret = fork_enter(&self);
	if (ret < 0)
		return ret;
	ret = flight_forget(start, end);
	if (ret == 0) {
		call_places_forget(start, end);
		text_forget(start, end);
	}
	fork_leave(self);
	return ret;
}

static struct objects_view view = OBJECTS_VIEW_INIT;

/* No thread can be at work there: the code is gone, and so is what else is on its pages. */
static void forget_range(uintptr_t start, uintptr_t end)
{
	start &= ~(uintptr_t)(TEXT_PAGE - 1);
	end = (end + TEXT_PAGE - 1) & ~(uintptr_t)(TEXT_PAGE - 1);
	flight_forget(start, end);
	call_places_forget(start, end);
}

void forget_gone(void)
{
	objects_each_gone(&view, forget_range);
}
