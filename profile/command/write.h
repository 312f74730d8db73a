/* SPDX-License-Identifier: MIT */
/*
 * Profiles in the formats of others. Names are written as they are, but for the characters that a
 * format cannot hold. All return 0, or a negative errno.
 */
#ifndef PROFILE_COMMAND_WRITE_H
#define PROFILE_COMMAND_WRITE_H

#include <stdbool.h>
#include <stdio.h>

#include "profile/statistics/profile.h"

typedef int profile_writer(const struct profile *profile, FILE *out);

profile_writer write_table;	/* for people; bars, in colour on a terminal, unless NO_COLOR */
profile_writer write_json;	/* all that is known */
profile_writer write_collapsed; /* "a;b 12", as flame graphs are made from */
profile_writer write_speedscope;
profile_writer write_callgrind; /* for callgrind_annotate and kcachegrind: event "Calls" */
profile_writer write_llvm;	/* LLVM's text of sample profiles, for clang -fprofile-sample-use */
profile_writer write_chrome;	/* phases, for chrome://tracing and Perfetto */

profile_writer write_pprof; /* protocol buffers, for pprof */

struct profile_format {
	const char *name;
	profile_writer *write;
	bool edges; /* for profiles of edges, too */
};

/* profile_format - by name, or NULL. */
const struct profile_format *profile_format(const char *name);

#endif
