/* SPDX-License-Identifier: MIT */
/*
 * Baseline: stop the world.
 */
#include <errno.h>
#include <string.h>

#include "patchcore/baseline/baseline.h"
#include "patchcore/merge/others.h"
#include "patchcore/patchcore.h"
#include "patchcore/text/text.h"
#include "patchcore/word/word.h"

/* In the handlers of the stopped. */
struct site_range {
	uintptr_t start;
	uintptr_t end;
	atomic_bool inside; /* does some thread stand behind the start? */
};

static void look_inside(ucontext_t *context, struct others_room *unused, void *arg)
{
	uintptr_t pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
	struct site_range *range = arg;

	(void)unused;
	if (pc > range->start && pc < range->end)
		atomic_store_explicit(&range->inside, true, memory_order_relaxed);
}

int baseline_stop_patch(void *addr, const void *bytes, size_t len)
{
	struct site_range range = { (uintptr_t)addr, (uintptr_t)addr + len, false };
	struct text_span span;
	sigset_t all, before;
	int ret;

	if (len < 1 || len > PC_PATCH_MAX || !bytes || *(const uint8_t *)bytes == WORD_INT3)
		return -EINVAL;
	ret = text_begin(&span, addr, len);
	if (ret < 0)
		return ret;
	/* A handler of this thread's might need a lock that a stopped thread holds. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = others_stop(look_inside, &range);
	if (ret == 0) {
		if (atomic_load_explicit(&range.inside, memory_order_relaxed))
			ret = -EBUSY;
		else if (*span.addr == WORD_INT3)
			ret = -EAGAIN;
		/* No other thread runs, so any way to write will do. */
		for (size_t i = 0; ret == 0 && i < len; i++)
			*(volatile uint8_t *)text_at(&span, span.addr + i) =
				((const uint8_t *)bytes)[i];
		others_resume();
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	text_end(&span);
	return ret;
}
