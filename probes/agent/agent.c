/* SPDX-License-Identifier: MIT */
/*
 * Start and end of the agent, and its environment:
 *
 *	FASTINST_ON	  patterns of fi_find(), as text_word() reads them: on from the start
 *	FASTINST_OUTPUT	  folder; each process leaves its counts there in a file named by its PID.
 *			  Without it they go to stderr at the end
 *	FASTINST_ENTRIES  objects of which functions are taken that nothing was compiled into
 *	FASTINST_CONTROL  "off": no control socket
 *	FASTINST_TRACE	  folder of "fastinst trace": what is turned on writes events there
 */
#include "probes/agent/agent.h"

#include <errno.h>
#include <pthread.h>
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
#include "probes/text/text.h"

#define PATIENCE 10 /* seconds */

static bool started;

/* Recursive: what is done meanwhile may load an object itself. */
static pthread_mutex_t scanning = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct wish *wishes; /* of FASTINST_ON */
static size_t wishes_n;
static uint32_t served; /* probes that there were when they were last looked at */

static void agent_complain(const char *what, int error)
{
	bool filtered = (error == -EPERM || error == -EACCES || error == -ENOSYS) &&
			prctl(PR_GET_SECCOMP) > 0;

	quiet_say("%s: %s\n", what,
		  filtered ? "a seccomp filter is in force; probes need membarrier, mprotect and "
			     "mmap of code"
			   : error_cause(error));
}

/* What has at least that id: of the others "fastinst off" may have turned some off. */
static void turn_on(uint32_t from)
{
	for (size_t i = 0; i < wishes_n; i++) {
		long n = agent_change(wishes[i].pattern, true, from);

		wishes[i].matched |= n != 0 && n != -EINVAL;
		if (n < 0)
			agent_complain(wishes[i].pattern, (int)n);
	}
}

/* A copy: the program may clear its environment before it loads a library. */
static void read_wishes(void)
{
	const char *list = getenv("FASTINST_ON");
	char *rest = list ? strdup(list) : NULL;

	wishes = rest ? calloc(strlen(rest) / 2 + 1, sizeof(*wishes)) : NULL;
	while (wishes && rest) {
		wishes[wishes_n].pattern = text_word(&rest);
		wishes_n += *wishes[wishes_n].pattern != '\0';
	}
}

/*
 * Each pattern looks for objects, too, and so does the control socket: for what they find, those
 * before have to be looked at again.
 */
static void turn_on_new(void)
{
	uint32_t from, n;

	while (from = served, n = fi_probes(), n != from) {
		served = n;
		turn_on(from);
	}
}

/* Of this thread. The loader runs constructors and destructors with its lock. */
static __thread unsigned depth __attribute__((tls_model("initial-exec")));

void agent_loading(bool begins)
{
	depth = begins ? depth + 1 : depth - 1;
}

/*
 * Its owner may wait for the loader's lock, to ask where a probe is or to load what reads debug
 * information. So a thread that has that one does not wait; nor another for ever, as it may have it
 * by ways that are not seen here.
 */
static bool lock_scanning(void)
{
	struct timespec until;

	if (depth)
		return !pthread_mutex_trylock(&scanning);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE;
	if (!pthread_mutex_clocklock(&scanning, CLOCK_MONOTONIC, &until))
		return true;
	quiet_say("waited in vain for another thread that turns on probes\n");
	return false;
}

/* Refused, as the mutex is recursive, to a thread that did not get it. */
static void unlock_scanning(void)
{
	pthread_mutex_unlock(&scanning);
}

static void before_fork(void)
{
	lock_scanning();
}

/*
 * A thread that comes to an object which another one has found waits until its probes are on. One
 * that does not get the lock sees to what it found itself, and leaves the rest to the owner. None
 * is cancelled here, as it is not in dlopen().
 */
void agent_scan(void)
{
	uint32_t before;
	int cancel;

	if (!started)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	before = fi_probes();
	if (lock_scanning()) {
		fi_scan();
		turn_on_new();
	} else if (fi_scan() > 0) {
		turn_on(before);
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

/* Before the program's own first line: once a second. */
static void say_progress(unsigned done, unsigned of)
{
	static long told;
	struct timespec time;
	long now;

	clock_gettime(CLOCK_MONOTONIC, &time);
	now = time.tv_sec * 1000 + time.tv_nsec / 1000000;
	if (told && now - told < 1000)
		return;
	if (told)
		quiet_say("%u of %u objects are read, with %u probes\n", done, of, fi_probes());
	told = now;
}

__attribute__((constructor)) static void start(void)
{
	static const struct leaving leaving = { end_report, image_report, report_back };
	const char *control = getenv("FASTINST_CONTROL"), *trace = getenv("FASTINST_TRACE");
	int ret = fi_take_entries(getenv("FASTINST_ENTRIES"));

	if (ret < 0)
		agent_complain("functions that nothing was compiled into are left out", ret);
	fi_set_progress(say_progress);
	ret = fi_init();
	fi_set_progress(NULL);
	if (ret < 0) {
		agent_complain("the probes cannot be used, the program runs without them", ret);
		return;
	}
	pthread_atfork(before_fork, unlock_scanning, in_child);
	read_wishes();
	report_begin(getenv("FASTINST_OUTPUT"), wishes, wishes_n);
	if (trace)
		ret = trace_start(trace);
	if (ret < 0)
		agent_complain("events cannot be written, calls are counted", ret);
	turn_on_new();
	started = true;
	leave_by(&leaving);
	ret = !control || strcmp(control, "off") != 0 ? control_start(NULL) : 0;
	if (ret < 0)
		agent_complain("no control socket", ret);
}
