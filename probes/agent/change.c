/* SPDX-License-Identifier: MIT */
#include "probes/agent/agent.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "probes/agent/trace.h"
#include "probes/include/fastinst.h"

#define TRIES 10 /* in each of which an object goes */

static long change_probes(const char *pattern, bool on, uint32_t from)
{
	size_t max = fi_probes() - from;
	uint32_t *ids = calloc(max ? max : 1, sizeof(*ids));
	int ret = 0;
	long n;

	if (!ids)
		return -ENOMEM;
	n = fi_find_from(pattern, from, ids, max);
	if (n > (long)max)
		n = (long)max;
	if (n > 0)
		ret = !on	       ? fi_deactivate_batch(ids, (size_t)n)
		      : trace_wanted() ? trace_on(ids, (size_t)n)
				       : fi_activate_batch(ids, (size_t)n, NULL);
	free(ids);
	return ret < 0 ? ret : n;
}

long agent_change(const char *pattern, bool on, uint32_t from)
{
	/* Of an agent that was attached, dlopen() is not the one that is called. */
	long ret = on ? fi_scan() : 0;

	if (ret < 0)
		return ret;
	ret = change_probes(pattern, on, from);
	for (int i = 0; i < TRIES && ret == -ENODEV; i++)
		ret = change_probes(pattern, on, from);
	return ret;
}

const char *error_cause(int error)
{
	static const struct {
		int error;
		const char *cause;
	} causes[] = {
		{ -EINVAL, "this is no regular expression (regex(7))" },
		{ -ENOMEM, "the process has no memory left, or a limit (ulimit -v) forbids more" },
		{ -ENOSPC, "no memory is free within 2 GiB of the function; close what it maps" },
		{ -ESTALE, "a debugger or another tool has changed the code; end it first" },
		{ -EAGAIN, "a debugger's breakpoint, or a change by another thread, stands in the "
			   "code; try again" },
		{ -ENODEV, "the library was unloaded meanwhile; try again" },
		{ -ENOTSUP, "this machine has no safe way to change a site that crosses a line; "
			    "\"tmax calibrate\" finds one" },
		{ -EBUSY, "the program has taken SIGTRAP, which changes of code need" },
		{ -EPERM, "the kernel forbids to change code (SELinux, say)" },
		{ -EACCES, "the kernel forbids to change code (SELinux, say)" },
		{ -ENOSYS, "the kernel is too old: probes need membarrier(2)" },
		{ -EEXIST,
		  "the program has a library of its own that changes code (libpatchcore)" },
		{ -ESHUTDOWN, "the process is ending" },
	};

	for (size_t i = 0; i < sizeof(causes) / sizeof(*causes); i++)
		if (causes[i].error == error)
			return causes[i].cause;
	return strerror(-error);
}
