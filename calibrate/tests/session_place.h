/* SPDX-License-Identifier: MIT */
/*
 * A session whose journal is in memory, so that a test can break it off and start
 * another that goes on with what it wrote.
 */
#ifndef CALIBRATE_TESTS_SESSION_PLACE_H
#define CALIBRATE_TESTS_SESSION_PLACE_H

#include <stdio.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "calibrate/session/session.h"

#define SESSION_PATH 64

/* A file without a name. Returns what closes it, and where it is found. */
static inline int session_file(char path[SESSION_PATH])
{
	int fd = memfd_create("journal", MFD_CLOEXEC);

	snprintf(path, SESSION_PATH, "/proc/self/fd/%d", fd);
	return fd;
}

/* With more budget than any test can spend. */
static inline void session_start(struct session *s, const char *path,
				 const volatile sig_atomic_t *stop)
{
	*s = (struct session){ .stop = stop, .budget = 1e6, .begin = seconds_now() };
	progress_open(&s->progress, true);
	assert_int_equal(journal_read(path, &s->known), 0);
	assert_int_equal(journal_open(&s->journal, path), 0);
}

#endif
