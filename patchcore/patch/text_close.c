/* SPDX-License-Identifier: MIT */
/*
 * Closing takes pages away from patches that have found them open. So it is done in three
 * steps:
 *
 *   1. from now on the pages are not open any more: a patch that comes borrows them
 *   2. wait until every thread inside has left, and drain what is in flight there
 *   3. give the protection back
 *
 * The caller stays a user of the pages until step 3.
 */
#include <errno.h>

#include "patchcore/mapping.h"
#include "patchcore/site/fork.h"
#include "patchcore/text/text_page.h"
#include "patchcore/word/flight.h"

int pc_text_close(void *addr, size_t len)
{
	uintptr_t start, end;
	struct thread *self;
	uint64_t loan;
	bool all_left;
	int ret = text_asked(addr, len, &start, &end);

	if (ret == 0)
		ret = fork_enter(&self);
	if (ret < 0)
		return ret;
	ret = text_stop_using(&start, &end, &loan);
	if (ret == 0 && !text_is_open(start, end)) {
		/* Outside meanwhile: others that close wait for this thread as well. */
		fork_leave(self);
		all_left = thread_await_all();
		ret = fork_enter(&self);
		if (ret < 0) {
			text_use_again(start, end, loan);
			return ret;
		}
		/* The look at the sites lists what threads that are gone have left in flight. */
		flight_rescue_all();
		ret = flight_drain();
		if (ret == 0 && !all_left)
			ret = -ETIMEDOUT;
		if (ret < 0)
			text_use_again(start, end, loan);
	}
	if (ret == 0)
		ret = text_return(start, end, loan);
	fork_leave(self);
	return ret;
}
