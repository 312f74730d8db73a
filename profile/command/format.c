/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/command/command.h"

static const char page_head[] =
#include "profile/command/head.inc"
	;

static const char calls_page[] =
#include "profile/command/calls.inc"
	;

static const char edges_page[] =
#include "profile/command/edges.inc"
	;

/*
 * A page for browsers, which fetches nothing: the head, and the body with the JSON in place of
 * @JSON@, and a script that draws it. A name may hold what ends a script.
 */
static int write_page(const struct profile *profile, FILE *out)
{
	const char *body = profile->edges ? edges_page : calls_page, *at = strstr(body, "@JSON@");
	char *json = NULL;
	size_t len;
	FILE *memory = open_memstream(&json, &len);
	int ret = memory ? write_json(profile, memory) : -ENOMEM;

	if (memory)
		fclose(memory);
	if (!ret) {
		fputs(page_head, out);
		fwrite(body, 1, (size_t)(at - body), out);
		for (const char *c = json; *c; c++)
			fputs(*c == '<' ? "\\u003c" : (char[]){ *c, '\0' }, out);
		fputs(at + strlen("@JSON@"), out);
	}
	free(json);
	return ret;
}

profile_writer *profile_format(const char *name, bool edges)
{
	static const struct {
		const char *name;
		profile_writer *calls, *edges;
	} formats[] = {
		{ "table", write_table, write_edge_table },
		{ "json", write_json, write_json },
		{ "collapsed", write_collapsed, NULL },
		{ "speedscope", write_speedscope, NULL },
		{ "callgrind", write_callgrind, NULL },
		{ "llvm", write_llvm, write_llvm_lines },
		{ "pprof", write_pprof, NULL },
		{ "html", write_page, write_page },
		{ "chrome", write_chrome, write_chrome },
		{ "gcov", NULL, write_gcov },
		{ "autofdo", NULL, write_autofdo },
	};

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (!strcmp(formats[i].name, name))
			return edges ? formats[i].edges : formats[i].calls;
	return NULL;
}
