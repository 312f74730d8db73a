/* SPDX-License-Identifier: MIT */
/* The texts that declare metrics, the library first; and the list of what they declare. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text_file.h"
#include "commands/fastinst/metrics.h"
#include "metrics/language/focus.h"

#define LIBRARY "metrics.mdl"

static int add_library(struct metrics_run *run)
{
	static char path[PATH_MAX];
	int ret = data_file(LIBRARY, path, sizeof(path));
	char *text = ret < 0 ? NULL : text_file_read(path);
	struct metric_text library = { .name = path, .text = text };

	if (!text)
		return complain(STATUS_NOT_FOUND, ret < 0 ? ret : -errno,
				"the library of metrics cannot be read: %s", path);
	if (ARRAY_ADD(run->texts, run->texts_n, library))
		return complain(STATUS_FAILED, -ENOMEM, "no texts");
	/* The library is the first. */
	memmove(run->texts + 1, run->texts, (run->texts_n - 1) * sizeof(*run->texts));
	run->texts[0] = library;
	return STATUS_OK;
}

/* One behind the other, each with its lines whole. */
static int join_texts(struct metrics_run *run)
{
	size_t size = 1;
	char *to;

	for (size_t i = 0; i < run->texts_n; i++)
		size += strlen(run->texts[i].text) + 1;
	to = run->whole = malloc(size);
	if (!to)
		return complain(STATUS_FAILED, -ENOMEM, "no texts");
	for (size_t i = 0; i < run->texts_n; i++) {
		const char *from = run->texts[i].text;

		to = stpcpy(stpcpy(to, from), "\n");
		run->texts[i].lines = 1;
		for (; *from; from++)
			run->texts[i].lines += *from == '\n';
	}
	*to = '\0';
	return STATUS_OK;
}

/* Of the text that has the place. */
static int complain_of_text(const struct metrics_run *run, struct mdl_error *error)
{
	size_t i = 0;

	while (i + 1 < run->texts_n && error->place.line > run->texts[i].lines)
		error->place.line -= run->texts[i++].lines;
	if (run->texts_n)
		mdl_complain(stderr, run->texts[i].name, run->texts[i].text, error);
	return STATUS_FAILED;
}

/* Each is read alone first, so that a text that ends too soon is told of itself. */
int read_metrics(struct metrics_run *run)
{
	struct mdl_error error = { 0 };
	int status = run->no_library ? STATUS_OK : add_library(run), ret = 0;

	if (status == STATUS_OK)
		status = join_texts(run);
	if (status != STATUS_OK)
		return status;
	for (size_t i = 0; i < run->texts_n && !ret; i++) {
		ret = mdl_read(&run->mdl, run->texts[i].text, &error);
		mdl_free(&run->mdl);
		if (ret == -EINVAL)
			mdl_complain(stderr, run->texts[i].name, run->texts[i].text, &error);
	}
	if (ret == -EINVAL)
		return STATUS_FAILED;
	if (!ret)
		ret = mdl_read(&run->mdl, run->whole, &error);
	if (!ret)
		ret = mdl_check(&run->mdl, &error);
	if (ret == -EINVAL)
		return complain_of_text(run, &error);
	return ret ? complain(STATUS_FAILED, ret, "the texts cannot be read") : STATUS_OK;
}

/* --- The list --------------------------------------------------------------------------------- */

static void list_foci(const struct metrics_run *run, const struct mdl_metric *metric)
{
	const char *before = "  ";

	for (const struct mdl_name *one = metric->constraints; one; one = one->next) {
		const struct mdl_constraint *constraint =
			mdl_constraint_named(&run->mdl, one->text);
		bool is_code = !strcmp(constraint->path, "/Code");

		printf("%s%s%s", before, constraint->path,
		       !is_code			    ? "/NAME"
		       : takes_parts(constraint, 2) ? "/MODULE/PROCEDURE"
						    : "/MODULE");
		before = ", ";
	}
}

void list_metrics(const struct metrics_run *run)
{
	for (const struct mdl_metric *one = run->mdl.metrics; one; one = one->next) {
		if (!has_flavor(one->flavors, run->flavor))
			continue;
		printf("%-16s %s%s", one->name.text, one->title ? one->title : "",
		       one->for_developers ? " (for developers)" : "");
		list_foci(run, one);
		putchar('\n');
	}
}
