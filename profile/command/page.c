/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/command/print.h"

static const char page_head[] =
#include "profile/command/head.inc"
	;

/* A name may hold what ends a script. */
static void put_json(FILE *out, const char *json)
{
	for (; *json; json++) {
		if (*json == '<')
			fputs("\\u003c", out);
		else
			fputc(*json, out);
	}
}

int print_page(FILE *out, const char *body, page_data_fn *write, const void *what)
{
	const char *at = strstr(body, "@JSON@");
	char *json = NULL;
	size_t len;
	FILE *memory = open_memstream(&json, &len);
	int ret = memory ? write(what, memory) : -ENOMEM;

	if (memory)
		fclose(memory);
	if (!ret) {
		fputs(page_head, out);
		fwrite(body, 1, (size_t)(at - body), out);
		put_json(out, json);
		fputs(at + strlen("@JSON@"), out);
	}
	free(json);
	return ferror(out) ? -EIO : ret;
}
