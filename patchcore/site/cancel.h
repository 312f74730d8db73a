/* SPDX-License-Identifier: MIT */
/*
 * pthread_cancel(3) and the library. Private.
 *
 * Files are read with locks held, pages are borrowed, descriptors are open: a thread that is
 * cancelled there would leave all that behind. So it is not, until it is outside again.
 */
#ifndef PATCHCORE_SITE_CANCEL_H
#define PATCHCORE_SITE_CANCEL_H

#include <pthread.h>

/* cancel_hold - returns what cancel_let() wants. They nest. */
static inline int cancel_hold(void)
{
	int state = PTHREAD_CANCEL_ENABLE;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void cancel_let(int state)
{
	pthread_setcancelstate(state, NULL);
}

#endif
