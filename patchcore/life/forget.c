/* SPDX-License-Identifier: MIT */

#include <errno.h>

#include "patchcore/call/call_form.h"
#include "patchcore/machine/policy.h"
#include "patchcore/pages/text.h"
#include "patchcore/site/fork.h"
#include "patchcore/word/flight.h"

struct range {
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
static bool give_change_up(struct site *site, const struct range *range)
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

static bool forget_site(struct site *site, const struct range *range)
{
	struct site *lead = site_lead(site);

	/* A site that is held for the change of another is free when that change is over. */
	if ((lead != site && !give_change_up(lead, range)) || !give_change_up(site, range) ||
	    !own_site(site))
		return false;
	site_remove(site);
	site_disown(site);
	return true;
}

/* All of them, also where one is busy. */
static int forget_entry(struct entry *entry, void *arg)
{
	struct range *range = arg;

	if (!forget_site((struct site *)entry, range))
		range->ret = -EBUSY;
	return 0;
}

/*
 * What is in flight there is given up, and nothing is written. -EBUSY: a patcher is at work there;
 * others may be forgotten already.
 */
static int forget_flights(uintptr_t start, uintptr_t end)
{
	struct range range = { start, end, 0 };

	sites_each_in(start, end, forget_entry, &range);
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
	ret = forget_flights(start, end);
	if (ret == 0) {
		call_places_forget(start, end);
		text_forget(start, end);
	}
	fork_leave(self);
	return ret;
}

/* No thread can be at work there: the code is gone, and so is what else is on its pages. */
static void forget_range(uintptr_t start, uintptr_t end)
{
	start &= ~(uintptr_t)(TEXT_PAGE - 1);
	end = (end + TEXT_PAGE - 1) & ~(uintptr_t)(TEXT_PAGE - 1);
	forget_flights(start, end);
	call_places_forget(start, end);
	text_forget(start, end);
}

void forget_gone(void)
{
	objects_each_gone(forget_range);
}
