/* SPDX-License-Identifier: MIT */
#include "probes/profile/write/write.h"

#include <string.h>

static const struct profile_format formats[] = {
	{ "table", write_table, "for people", true },
	{ "json", write_json, "all of it", true },
	{ "collapsed", write_collapsed, "stacks, for flame graphs", false },
	{ "speedscope", write_speedscope, "for speedscope", false },
	{ "callgrind", write_callgrind, "for callgrind_annotate and kcachegrind", false },
	{ "llvm", write_llvm, "for clang -fprofile-sample-use", false },
	{ "pprof", write_pprof, "for pprof", false },
	{ "html", write_page, "for browsers", true },
	{ "chrome", write_chrome, "phases, for Perfetto and chrome://tracing", true },
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
