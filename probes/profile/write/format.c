/* SPDX-License-Identifier: MIT */
#include "probes/profile/write/write.h"

#include <string.h>

static const struct profile_format formats[] = {
	{ "table", write_table, "for people" },
	{ "json", write_json, "all of it" },
	{ "collapsed", write_collapsed, "stacks, for flame graphs" },
	{ "speedscope", write_speedscope, "for speedscope" },
	{ "callgrind", write_callgrind, "for callgrind_annotate and kcachegrind" },
	{ "llvm", write_llvm, "for clang -fprofile-sample-use" },
	{ "pprof", write_pprof, "for pprof" },
	{ "html", write_page, "for browsers" },
	{ "chrome", write_chrome, "phases, for Perfetto and chrome://tracing" },
};

const struct profile_format *profile_format_at(size_t i)
{
	return i < sizeof(formats) / sizeof(*formats) ? &formats[i] : NULL;
}

const struct profile_format *profile_format(const char *name)
{
	const struct profile_format *format;

	for (size_t i = 0; (format = profile_format_at(i)); i++)
		if (!strcmp(format->name, name))
			return format;
	return NULL;
}
