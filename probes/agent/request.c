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
static long change_branches(const char *pattern, bool on)
{
	int ret = on ? fi_scan() : 0;

	if (ret < 0)
		return ret;
	return on ? fi_branch_on(pattern) : fi_branch_off(pattern);
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
	if (!strcmp(word, "branch-on") || !strcmp(word, "branch-off"))
		return change_branches(rest, !strcmp(word, "branch-on"));
	return -ENOMSG;
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
