/* SPDX-License-Identifier: MIT */
#include "probes/agent/quiet.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

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
