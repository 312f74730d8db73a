/* SPDX-License-Identifier: MIT */
#include "stress/provoke/provoker_work.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "stress/placement/placement.h"

#define BURST 200000 /* ns */

static uint64_t nanoseconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

pid_t load_start(hwloc_topology_t topology, unsigned cpu)
{
	const struct timespec rest = { .tv_nsec = BURST };
	pid_t us = getpid(), pid = fork();

	if (pid < 0)
		return -errno;
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != us)
		_exit(1);
	/* A reader that waits for the end of our files waits for the cell, not for this. */
	syscall(SYS_close_range, 0u, ~0u, 0u);
	if (pin_this_thread(topology, cpu) < 0)
		_exit(1);
	/*
	 * Bursts with as long a rest: a thread that has slept goes first when it wakes up, so the
	 * executors lose their CPU at every burst, not once in a time slice.
	 */
	prctl(PR_SET_TIMERSLACK, 1);
	for (;;) {
		uint64_t end = nanoseconds_now() + BURST;

		while (nanoseconds_now() < end)
			;
		nanosleep(&rest, NULL);
	}
}

void load_stop(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}
