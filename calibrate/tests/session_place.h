/* SPDX-License-Identifier: MIT */
/*
 * A session whose journal is in memory, so that a test can break it off and start
 * another that goes on with what it wrote.
 */
#ifndef CALIBRATE_TESTS_SESSION_PLACE_H
#define CALIBRATE_TESTS_SESSION_PLACE_H

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "calibrate/session/session.h"

struct session_place { /* all 0 at first */
	struct session session;
	volatile sig_atomic_t stop;
	char path[64];
	int fd; /* of a file without a name */
};

/* Makes the journal; session_begin() comes next. */
static inline void session_open(struct session_place *place)
{
	place->fd = memfd_create("journal", MFD_CLOEXEC);
	snprintf(place->path, sizeof(place->path), "/proc/self/fd/%d", place->fd);
}

/* Another session, which has read the journal, with more budget than any test can spend. */
static inline void session_begin(struct session_place *place)
{
	struct session *s = &place->session;

	session_free(s);
	*s = (struct session){ .stop = &place->stop, .budget = 1e6, .begin = seconds_now() };
	place->stop = 0;
	progress_open(&s->progress, true, 0);
	assert_int_equal(journal_read(place->path, &s->known), 0);
	assert_int_equal(journal_open(&s->journal, place->path), 0);
}

static inline void session_close(struct session_place *place)
{
	session_free(&place->session);
	close(place->fd);
}

#endif
