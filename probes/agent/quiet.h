/* SPDX-License-Identifier: MIT */
/*
 * A write beyond the limit of files (RLIMIT_FSIZE), or to a pipe without a reader, sends a signal
 * that ends the program. Between these two calls the thread's writes return the error and no more.
 */
#ifndef PROBES_AGENT_QUIET_H
#define PROBES_AGENT_QUIET_H

#include <signal.h>

struct quiet {
	sigset_t before, pending;
};

/* Both are async-signal-safe, and keep errno. */
void quiet_begin(struct quiet *quiet);
void quiet_end(const struct quiet *quiet);

/* quiet_say - "fastinst: ", and that, to standard error. */
__attribute__((format(printf, 1, 2))) void quiet_say(const char *format, ...);

/* error_cause - what went wrong, and what helps, of a negative errno of libfastinst. */
const char *error_cause(int error);

#endif
