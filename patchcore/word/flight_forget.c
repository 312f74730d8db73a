/* SPDX-License-Identifier: MIT */
/*
 * Changes of code that is no more.
 */
#include <errno.h>

#include "patchcore/site/thread.h"
#include "patchcore/text/text.h"
#include "patchcore/word/flight.h"

struct range {
	uintptr_t start;
	uintptr_t end;
	int ret;
};

/*
 * Its span is ended only on pages that stay: the others are forgotten, see text_forget(). A site
 * that is held for the change of another is free when that one is.
 */
static int forget_site(struct site *site, const struct range *range)
{
	struct text_span span;

	if (!site_try_own(site, thread_id()) &&
	    !(flight_rescue(site) && site_try_own(site, thread_id())))
		return -EBUSY;
	site_set_resume(site, 0);
	if (!flight_is_on(site)) {
		site_disown(site);
		return 0;
	}
	span = site->word.span;
	word_release(&site->word);
	text_end_outside(&span, range->start, range->end);
	return 0;
}

/* All of them, also where one is busy. */
static int forget_entry(struct entry *entry, void *arg)
{
	struct site *site = (struct site *)entry;
	struct range *range = arg;
	int ret;

	if (entry->addr < range->start || entry->addr >= range->end)
		return 0;
	ret = forget_site(site, range);
	if (ret == -EBUSY && site_lead(site) != site) {
		ret = forget_site(site_lead(site), range);
		if (ret == 0)
			ret = forget_site(site, range);
	}
	if (range->ret == 0)
		range->ret = ret;
	return 0;
}

int flight_forget(uintptr_t start, uintptr_t end)
{
	struct range range = { start, end, 0 };

	sites_each(forget_entry, &range);
	return range.ret;
}
