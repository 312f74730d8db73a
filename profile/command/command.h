/* SPDX-License-Identifier: MIT */
/* The command: what processes left (profile/sampler/session.h) becomes one profile. */
#ifndef PROFILE_COMMAND_COMMAND_H
#define PROFILE_COMMAND_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "probes/elf/elf.h"
#include "profile/estimate/profile.h"

/* profile_command - "fastinst profile": argv from its own name on. The exit status. */
int profile_command(int argc, char **argv);

/*
 * gather - read all files of a folder, and remove it. profile->edges says of which kind they are. 1
 * after a complaint: a report is incomplete. Negative errno.
 */
int gather(struct profile *profile, const char *folder);

/* A program or library, mapped as its file is; the names of its functions are in the mapping. */
struct image {
	const char *path;
	struct elf elf;
	struct elf_symbols symbols;
};

/* image_open - a file that cannot be read has no functions. */
void image_open(struct image *image, const char *path);
void image_close(struct image *image);

/*
 * Profiles in the formats of others. Names are written as they are, but for the characters that a
 * format cannot hold. All return 0, or a negative errno, and leave errors of the stream to it.
 */
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

/* --- JSON ------------------------------------------------------------------------------------- */

/*
 * What fastinst prints as JSON: objects of one line each, which begin with type, schema, tool and
 * date. results/schema/fastinst-1.json says what they hold.
 */
#define JSON_SCHEMA 1

/* name_json - a name as a string, with U+FFFD in place of bytes that are no UTF-8. NULL: it was. */
json_t *name_json(const char *name);

/* demangled_json - a function's name as its source has it. NULL: it is the same. */
json_t *demangled_json(const char *name);

/* count_more - adds to a member, which may be missing. */
void count_more(json_t *object, const char *name, json_int_t more);

/* print_json_line - write an object as a line, and free it. 0, -ENOMEM if it is NULL, or -EIO. */
int print_json_line(FILE *out, json_t *object);

/* print_json - write what the body holds in an object of that type, and free it. As
 * print_json_line(). */
int print_json(FILE *out, const char *type, json_t *body);

#endif
