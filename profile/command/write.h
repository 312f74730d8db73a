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

profile_writer write_table; /* for people; bars, in colour on a terminal, unless NO_COLOR */
profile_writer write_edge_table;
profile_writer write_json;	/* all that is known */
profile_writer write_collapsed; /* "a;b 12", as flame graphs are made from */
profile_writer write_speedscope;
profile_writer write_callgrind; /* for callgrind_annotate and kcachegrind: event "Calls" */
profile_writer write_llvm;	/* LLVM's text of sample profiles, for clang -fprofile-sample-use */
profile_writer write_chrome;	/* phases, for chrome://tracing and Perfetto */
profile_writer write_pprof;	/* protocol buffers, for pprof */

/* Of edges alone: lines.h has more of them. */
profile_writer write_llvm_lines, write_gcov;
profile_writer write_autofdo; /* for create_llvm_prof --profiler=text */

/* profile_format - by name, for profiles of calls or of edges. NULL: there is none. */
profile_writer *profile_format(const char *name, bool edges);

#endif
