/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "profile/command/print.h"
#include "profile/command/write.h"

static const char calls_page[] =
#include "profile/command/calls.inc"
	;

static const char edges_page[] =
#include "profile/command/edges.inc"
	;

static int write_data(const void *profile, FILE *out)
{
	return write_json(profile, out);
}

/* A page for browsers: the JSON, and a script that draws it. The page fetches nothing. */
static int write_page(const struct profile *profile, FILE *out)
{
	return print_page(out, profile->edges ? edges_page : calls_page, write_data, profile);
}

const struct profile_format *profile_format(const char *name)
{
	static const struct profile_format formats[] = {
		{ "table", write_table, true },		 { "json", write_json, true },
		{ "collapsed", write_collapsed, false }, { "speedscope", write_speedscope, false },
		{ "callgrind", write_callgrind, false }, { "llvm", write_llvm, false },
		{ "pprof", write_pprof, false },	 { "html", write_page, true },
		{ "chrome", write_chrome, true },
	};

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}
