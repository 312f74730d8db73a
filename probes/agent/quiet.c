/* SPDX-License-Identifier: MIT */
#include "probes/agent/quiet.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <patchcore/signals.h>

static const int signals[] = { SIGXFSZ, SIGPIPE };
#define SIGNALS (sizeof(signals) / sizeof(*signals))

void quiet_begin(struct quiet *quiet)
{
	int saved = errno;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < SIGNALS; i++)
		sigaddset(&set, signals[i]);
	pthread_sigmask(SIG_BLOCK, &set, &quiet->before);
	sigpending(&quiet->pending);
	errno = saved;
}

/* What waited before is the program's. */
void quiet_end(const struct quiet *quiet)
{
	static const struct timespec now = { 0 };
	int saved = errno;
	sigset_t ours;

	sigemptyset(&ours);
	for (size_t i = 0; i < SIGNALS; i++)
		if (!sigismember(&quiet->pending, signals[i]))
			sigaddset(&ours, signals[i]);
	while (sigtimedwait(&ours, NULL, &now) > 0 || errno == EINTR)
		errno = 0;
	pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
	errno = saved;
}

void quiet_say(const char *format, ...)
{
	struct quiet quiet;
	va_list list;

	va_start(list, format);
	quiet_begin(&quiet);
	dprintf(STDERR_FILENO, "fastinst: ");
	vdprintf(STDERR_FILENO, format, list);
	quiet_end(&quiet);
	va_end(list);
}

/* The thread, if there is one, for which a change was refused. */
static const char *find_blocking(void)
{
	static __thread char text[224] __attribute__((tls_model("initial-exec")));
	struct pc_signals report;

	if (pc_check_signals(&report) != -EBUSY || report.owner != PC_TRAP_OURS)
		return NULL;
	snprintf(
		text, sizeof(text),
		"thread %d has SIGTRAP blocked, and would end the program at a breakpoint that the "
		"change needs for a moment; under \"fastinst run\" no thread has",
		(int)report.first_thread);
	return text;
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
	};

	const char *blocking = error == -EBUSY ? find_blocking() : NULL;

	if (blocking)
		return blocking;
	for (size_t i = 0; i < sizeof(causes) / sizeof(*causes); i++)
		if (causes[i].error == error)
			return causes[i].cause;
	return strerror(-error);
}
