/* SPDX-License-Identifier: MIT */
/* Waiting until another thread sleeps in a system call. For tests in a child. */
#ifndef PATCHCORE_TESTS_ASLEEP_H
#define PATCHCORE_TESTS_ASLEEP_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "patchcore/tests/child.h"

/* A thread that runs is "running", and one that has ended has no such file. */
static inline void await_asleep(pid_t tid, long call)
{
	char path[64], text[32] = "", *end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)tid);
	do {
		usleep(1000);
		file = fopen(path, "re");
		MUST(file && fgets(text, sizeof(text), file));
		fclose(file);
	} while (strtol(text, &end, 10) != call || *end != ' ');
}

#endif
