/* SPDX-License-Identifier: MIT */
#include "probes/agent/leave.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct leaving *how;

__attribute__((destructor)) static void leave_last(void)
{
	if (how)
		how->end();
}

/* The first that is registered with quick_exit() is the last that it calls. */
void leave_by(const struct leaving *leaving)
{
	if (!how)
		at_quick_exit(leave_last);
	how = leaving;
}

void leave_image(void)
{
	if (how)
		how->image();
}

void leave_not(void)
{
	int saved = errno;

	if (how && how->back)
		how->back();
	errno = saved;
}

static _Noreturn void leave_process(int status)
{
	leave_last();
	for (;;)
		syscall(SYS_exit_group, status);
}

/* A process that leaves these ways runs no destructors. */
void _exit(int status)
{
	leave_process(status);
}

void _Exit(int status)
{
	leave_process(status);
}
