/* SPDX-License-Identifier: MIT */
/*
 * What "fastinst profile" puts into a program by LD_PRELOAD. Its environment:
 *
 *	FASTINST_OUTPUT	   folder; each process leaves its lines there in a file named by its PID
 *	FASTINST_PROFILE   "EPOCH BUDGET SAMPLES LIMIT BY_COUNT NO_TIMES", numbers
 *	FASTINST_FUNCTIONS patterns of fi_find(), as text_word() reads them
 *	FASTINST_ENTRIES   objects of which functions are taken that nothing was compiled into
 *
 * "fastinst profile --pid" puts it into a process that runs, and calls fastinst_profile().
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "probes/agent/file.h"
#include "probes/agent/leave.h"
#include "probes/agent/visit.h"
#include "probes/include/fastinst.h"
#include "probes/profile/epochs/clocks.h"
#include "probes/profile/epochs/epochs.h"
#include "probes/profile/epochs/functions.h"
#include "probes/profile/epochs/profiling.h"
#include "probes/profile/epochs/report.h"

static _Atomic pid_t
	owner; /* the process that has not reported yet; 0: it has, or has nothing to */
static const char *folder;
static bool visited; /* the process was running before */

int fastinst_profile(const char *text);

/* Patterns are a copy, as the folder is. */
static bool read_options(struct options *options, const char *text, const char *functions)
{
	static char *patterns;
	int by_count, no_times;

	free(patterns);
	options->functions = patterns = strdup(functions && *functions ? functions : "*");
	if (!patterns || !text ||
	    sscanf(text, "%lf %lf %u %u %d %d", &options->epoch, &options->budget,
		   &options->samples, &options->limit, &by_count, &no_times) != 6)
		return false;
	options->by_count = by_count;
	options->no_times = no_times;
	return true;
}

static void forget_sampling(void)
{
	epochs_count_out();
	if (!owner)
		return;
	owner = visited ? 0 : getpid();
	profiling_forked(!visited);
}

/*
 * The child of vfork() has its parent's memory, and another PID. Where the lock is not to be had,
 * there is still something to report.
 */
static int finish_sampling(bool reports)
{
	pid_t me = getpid(), expected = me;
	int ret = folder && owner == me ? books_lock() : 1;

	if (ret)
		return ret < 0 ? ret : 0;
	if (atomic_compare_exchange_strong(&owner, &expected, 0)) {
		profiling_finish();
		if (reports)
			file_report(folder, report_profile);
	}
	books_unlock();
	return 0;
}

static void end_profile(void)
{
	finish_sampling(true);
}

static int stop_sampling(bool reports)
{
	int ret = finish_sampling(reports);

	return ret < 0 ? ret : profiling_stop();
}

static int begin_sampling(const char *text, const char *functions, const char *entries)
{
	static const struct leaving leaving = { end_profile, end_profile, NULL };
	static bool known;
	struct options options = { .before = clocks_seconds(CLOCK_THREAD_CPUTIME_ID),
				   .visits = visited };
	int ret = read_options(&options, text, functions) ? 0 : -EINVAL;

	if (!ret && entries)
		ret = fi_take_entries(entries);
	if (!ret)
		ret = fi_init();
	if (!ret)
		ret = profiling_start(&options);
	if (!ret && !known)
		ret = -pthread_atfork(NULL, NULL, forget_sampling);
	if (ret)
		return ret;
	known = true;
	owner = getpid();
	leave_by(&leaving);
	return 0;
}

__attribute__((constructor)) static void start(void)
{
	const char *text = getenv("FASTINST_PROFILE");
	int ret;

	folder = file_folder(getenv("FASTINST_OUTPUT"));
	if (!text || !folder)
		return;
	ret = begin_sampling(text, getenv("FASTINST_FUNCTIONS"), getenv("FASTINST_ENTRIES"));
	if (ret < 0)
		quiet_say("no profile, the program runs without it: %s\n", error_cause(ret));
}

/*
 * @text: "start", the folder of the report, options and patterns as in the environment, and "=" and
 * objects of which functions are taken, a line each; or "stop": the report is written, and nothing
 * is probed any more.
 */
int fastinst_profile(const char *text)
{
	struct visit visit;

	if (!visit_begin(&visit, text))
		return -ENAMETOOLONG;
	if (!strcmp(visit.line[0], "stop"))
		return stop_sampling(true);
	if (owner) {
		int ret = visit_abandoned(folder) ? stop_sampling(false) : -EBUSY;

		if (ret < 0)
			return ret;
	}
	folder = file_folder(visit.line[1]);
	visited = true;
	return begin_sampling(visit.line[2], visit.line[4],
			      *visit.line[5] ? visit.line[5] + 1 : NULL);
}

/* No probe of an object that goes may be turned on meanwhile. */
int dlclose(void *handle)
{
	int (*close)(void *) = (int (*)(void *))dlsym(RTLD_NEXT, "dlclose");
	bool locked = owner == getpid() && !books_lock();
	int ret = close(handle);

	if (locked) {
		functions_scan();
		books_unlock();
	}
	return ret;
}
