/* SPDX-License-Identifier: MIT */
#include "probes/agent/visit.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

bool visit_begin(struct visit *visit, const char *text)
{
	char *rest = visit->copy;
	sigset_t trap;

	/* Of patches: a thread that has it blocked dies of it. */
	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	pthread_sigmask(SIG_UNBLOCK, &trap, NULL);
	if (snprintf(visit->copy, sizeof(visit->copy), "%s", text) >= (int)sizeof(visit->copy))
		return false;
	for (int i = 0; i < VISIT_LINES; i++) {
		char *line = strsep(&rest, "\n");

		visit->line[i] = line ? line : visit->copy + strlen(text);
	}
	return true;
}
