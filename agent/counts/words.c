/* SPDX-License-Identifier: MIT */
#include "agent/counts/base.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

const char *kind_name(enum fi_kind kind)
{
	static const char *const names[] = { "entry", "exit",  "marker", "branch",
					     "call",  "block", "compare" };

	return kind < sizeof(names) / sizeof(*names) ? names[kind] : "unknown";
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
		{ -EBUSY, "the program has taken SIGTRAP, which changes of code need; under "
			  "\"fastinst run\" both have it" },
		{ -ETIMEDOUT,
		  "a thread did not answer within a second: it gets no CPU, is stopped, stays "
		  "in what is to change, or blocks all signals and never sleeps" },
		{ -EPERM, "the kernel forbids to change code (SELinux, say)" },
		{ -EACCES, "the kernel forbids to change code (SELinux, say)" },
		{ -ENOSYS, "the kernel is too old: probes need membarrier(2)" },
		{ -EEXIST,
		  "the program has a library of its own that changes code (libpatchcore)" },
		{ -ESHUTDOWN, "the process is ending" },
		{ -EIDRM, "an earlier \"fastinst detach\" was killed in the middle of it; start "
			  "the program again" },
	};

	for (size_t i = 0; i < sizeof(causes) / sizeof(*causes); i++)
		if (causes[i].error == error)
			return causes[i].cause;
	return strerror(-error);
}
