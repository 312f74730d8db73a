/* SPDX-License-Identifier: MIT */
#include "probes/agent/visit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "probes/text/text.h"

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
		text_unescape(visit->line[i]);
	}
	return true;
}

bool visit_abandoned(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool is = fd < 0 ? errno == ENOENT : !flock(fd, LOCK_EX | LOCK_NB);

	if (fd >= 0)
		close(fd);
	return is;
}
