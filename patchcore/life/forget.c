/* SPDX-License-Identifier: MIT */

#include <errno.h>

#include "patchcore/call/call_form.h"
#include "patchcore/machine/policy.h"
#include "patchcore/pages/text.h"
#include "patchcore/site/fork.h"
#include "patchcore/word/flight.h"

struct forgotten_range {
	uintptr_t start;
	uintptr_t end;
	int ret;
};

static bool own_site(struct site *site)
{
	while (!site_try_own(site, thread_id()))
		if (!flight_rescue(site))
			return false;
	return true;
}

/*
 * Give up the change that is in flight there, if there is one. Its span is ended only on pages that
 * stay: the others are forgotten, see text_forget(). False: a patcher is at it.
 */
static bool give_change_up(struct site *site, const struct forgotten_range *range)
{
	struct text_span span;

	if (!own_site(site))
		return false;
	if (!flight_is_on(site)) {
		site_disown(site);
		return true;
	}
	span = site->word.span;
	word_release(&site->word);
	text_end_outside(&span, range->start, range->end);
	return true;
}

/* -EBUSY: a patcher is at work there. The others are forgotten all the same. */
static int forget_site(struct entry *entry, void *arg)
{
	struct site *site = (struct site *)entry, *lead = site_lead(site);
	struct forgotten_range *range = arg;

	/* A site that is held for the change of another is free when that change is over. */
	if ((lead != site && !give_change_up(lead, range)) || !give_change_up(site, range) ||
	    !own_site(site)) {
		range->ret = -EBUSY;
		return 0;
	}
	site_remove(site);
	site_disown(site);
	return 0;
}

/*
 * What is in flight there is given up, and nothing is written. Pages and calls are forgotten where
 * no patcher is at work, or where the code is gone already.
 */
static int forget_code(uintptr_t start, uintptr_t end, bool is_gone)
{
	struct forgotten_range range = { start, end, 0 };

	sites_each_in(start, end, forget_site, &range);
	if (range.ret == 0 || is_gone) {
		call_places_forget(start, end);
		text_forget(start, end);
	}
	return range.ret;
}

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
	ret = forget_code(start, end, false);
	fork_leave(self);
	return ret;
}

/* No thread can be at work there: the code is gone, and so is what else is on its pages. */
static void forget_range(uintptr_t start, uintptr_t end)
{
	forget_code(start & ~(uintptr_t)(TEXT_PAGE - 1),
		    (end + TEXT_PAGE - 1) & ~(uintptr_t)(TEXT_PAGE - 1), true);
}

void forget_gone(void)
{
	objects_each_gone(forget_range);
}
