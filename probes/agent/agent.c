/* SPDX-License-Identifier: MIT */
/*
 * Start and end of the agent, and its environment:
 *
 *	FASTINST_ON	  patterns of fi_find(), separated by blanks: on from the start
 *	FASTINST_OUTPUT	  folder; each process leaves its counts there in a file named by its PID.
 *			  Without it they go to stderr at the end
 *	FASTINST_ENTRIES  objects of which functions are taken that nothing was compiled into
 *	FASTINST_CONTROL  "off": no control socket
 *	FASTINST_TRACE	  folder of "fastinst trace": what is turned on writes events there
 */
#include "probes/agent/agent.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "probes/agent/leave.h"
#include "probes/agent/quiet.h"
#include "probes/agent/trace.h"
#include "probes/include/fastinst.h"

#define PATIENCE 10 /* seconds */

static bool started;

/* Recursive: what is done meanwhile may load an object itself. */
static pthread_mutex_t scanning = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static _Atomic uint32_t served; /* probes that there were when FASTINST_ON was last looked at */

static void agent_complain(const char *what, int error)
{
	bool filtered = (error == -EPERM || error == -EACCES || error == -ENOSYS) &&
			prctl(PR_GET_SECCOMP) > 0;

	quiet_say("%s: %s%s\n", what, strerror(-error),
		  filtered ? ": a seccomp filter is in force; probes need membarrier, mprotect and "
			     "mmap of code"
			   : "");
}

static void turn_on(void)
{
	const char *wish = getenv("FASTINST_ON");
	char *copy = wish ? strdup(wish) : NULL;
	char *rest = copy, *pattern;
	long n;

	while (rest && (pattern = strsep(&rest, " "))) {
		if (!*pattern)
			continue;
		n = agent_change(pattern, true);
		if (n < 0)
			agent_complain(pattern, (int)n);
	}
	free(copy);
}

/*
 * Not for ever, as a thread may have the loader's lock, and the owner of this one wait for that, to
 * ask where a probe is or to load what reads debug information. In a constructor it has.
 */
static void lock_scanning(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE;
	pthread_mutex_clocklock(&scanning, CLOCK_MONOTONIC, &until);
}

/* Refused, as the mutex is recursive, to a thread that waited in vain. */
static void unlock_scanning(void)
{
	pthread_mutex_unlock(&scanning);
}

/*
 * A thread that comes to an object which another one has found waits until its probes are on. None
 * is cancelled here, as it is not in dlopen(). Each pattern looks for objects, too, and so does the
 * control socket: for what they find, those before have to be looked at again.
 */
void agent_scan(bool nested)
{
	uint32_t n;
	int cancel;

	if (!started)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (nested)
		pthread_mutex_trylock(&scanning);
	else
		lock_scanning();
	fi_scan();
	while (n = fi_probes(), n != atomic_load_explicit(&served, memory_order_relaxed)) {
		atomic_store_explicit(&served, n, memory_order_relaxed);
		turn_on();
	}
	unlock_scanning();
	pthread_setcancelstate(cancel, NULL);
}

/* The owner that the lock knows is a thread of the parent. */
static void in_child(void)
{
	static const pthread_mutex_t unlocked = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

	scanning = unlocked;
	report_forked();
}

static void end_report(void)
{
	if (started)
		report_final();
}

static void image_report(void)
{
	if (started)
		report_image();
}

__attribute__((constructor)) static void start(void)
{
	static const struct leaving leaving = { end_report, image_report, report_back };
	const char *control = getenv("FASTINST_CONTROL"), *trace = getenv("FASTINST_TRACE");
	int ret = fi_take_entries(getenv("FASTINST_ENTRIES"));

	if (!ret)
		ret = fi_init();
	if (ret < 0) {
		agent_complain("the probes cannot be used, the program runs without them", ret);
		return;
	}
	pthread_atfork(lock_scanning, unlock_scanning, in_child);
	report_forked();
	if (trace)
		ret = trace_start(trace);
	if (ret < 0)
		agent_complain("events cannot be written, calls are counted", ret);
	atomic_store_explicit(&served, fi_probes(), memory_order_relaxed);
	turn_on();
	started = true;
	leave_by(&leaving);
	ret = !control || strcmp(control, "off") != 0 ? control_start(NULL) : 0;
	if (ret < 0)
		agent_complain("no control socket", ret);
}
