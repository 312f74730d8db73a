/* SPDX-License-Identifier: MIT */
#include "probes/agent/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "probes/agent/agent.h"
#include "probes/agent/trace.h"
#include "probes/include/fastinst.h"
#include "probes/include/fastinst/branch.h"

/* FOLDER PATTERN */
static long trace(char *rest)
{
	const char *folder = strsep(&rest, " ");
	int ret = rest ? trace_start(folder) : -EINVAL;

	return ret < 0 ? ret : agent_change(rest, true);
}

static long untrace(const char *pattern)
{
	trace_start(NULL);
	return agent_change(pattern, false);
}

/* Static branches: they are no probes. */
static long change_branches(const char *word, const char *pattern)
{
	static const struct {
		const char *word;
		long (*change)(const char *pattern);
	} changes[] = {
		{ "branch-on", fi_branch_on },
		{ "branch-off", fi_branch_off },
		{ "branch-veto", fi_branch_veto },
		{ "branch-allow", fi_branch_allow },
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++)
		if (!strcmp(word, changes[i].word)) {
			int ret = fi_scan();

			return ret < 0 ? ret : changes[i].change(pattern);
		}
	return -ENOMSG;
}

static long take_entries(const char *objects)
{
	int ret = fi_take_entries(objects);

	return ret < 0 ? ret : fi_scan();
}

/* How many it was done to, or a negative errno; -ENOMSG: no such request. */
static long serve(const char *word, char *rest)
{
	if (!strcmp(word, "counts"))
		return fi_probes();
	if (!rest)
		return -ENOMSG;
	if (!strcmp(word, "trace"))
		return trace(rest);
	if (!strcmp(word, "untrace"))
		return untrace(rest);
	if (!strcmp(word, "on") || !strcmp(word, "off"))
		return agent_change(rest, !strcmp(word, "on"));
	if (!strcmp(word, "entries"))
		return take_entries(rest);
	return change_branches(word, rest);
}

size_t request_serve(char *request, char *text, size_t size, bool *counts)
{
	char *rest = request;
	const char *word = strsep(&rest, " ");
	long result = serve(word, rest);
	int len;

	*counts = !strcmp(word, "counts");
	if (result == -ENOMSG)
		len = snprintf(text, size, "error no such request\n");
	else if (result < 0)
		len = snprintf(text, size, "error %s\n", strerror((int)-result));
	else
		len = snprintf(text, size, "ok %ld\n", result);
	return (size_t)len;
}
