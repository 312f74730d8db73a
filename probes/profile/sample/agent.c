/* SPDX-License-Identifier: MIT */
/*
 * What "fastinst profile" puts into a program by LD_PRELOAD. Its environment:
 *
 *	FASTINST_OUTPUT	   folder; each process leaves its lines there in a file named by its PID
 *	FASTINST_PROFILE   "EPOCH BUDGET SAMPLES LIMIT BY_COUNT", numbers
 *	FASTINST_FUNCTIONS patterns of fi_find(), separated by blanks
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
#include <sys/syscall.h>
#include <unistd.h>

#include "probes/agent/leave.h"
#include "probes/include/fastinst.h"
#include "probes/profile/sample/epochs.h"
#include "probes/profile/sample/report.h"

static _Atomic pid_t owner; /* who has not reported yet; 0: it has, or there is nothing to report */

static bool read_options(struct options *options)
{
	const char *text = getenv("FASTINST_PROFILE");
	int by_count;

	options->functions = getenv("FASTINST_FUNCTIONS");
	if (!options->functions)
		options->functions = "*";
	if (!text || sscanf(text, "%lf %lf %u %u %d", &options->epoch, &options->budget,
			    &options->samples, &options->limit, &by_count) != 5)
		return false;
	options->by_count = by_count;
	return true;
}

static void forked(void)
{
	if (!owner)
		return;
	owner = getpid();
	epochs_forked();
}

/* The child of vfork() has its parent's memory, and another PID. */
static void end_profile(void)
{
	const char *folder = getenv("FASTINST_OUTPUT");
	pid_t me = getpid(), expected = me;
	char path[PATH_MAX];
	FILE *out;

	if (!folder || !atomic_compare_exchange_strong(&owner, &expected, 0))
		return;
	if (epochs_lock() < 0)
		return;
	epochs_finish();
	snprintf(path, sizeof(path), "%s/%d", folder, (int)me);
	out = fopen(path, "ae");
	if (out) {
		report_profile(out);
		fclose(out);
	}
	epochs_unlock();
}

__attribute__((constructor)) static void start(void)
{
	struct options options = { 0 };
	int ret = read_options(&options) ? fi_init() : -EINVAL;

	if (!ret)
		ret = epochs_start(&options);
	if (!ret)
		ret = -pthread_atfork(NULL, NULL, forked);
	if (ret < 0) {
		dprintf(STDERR_FILENO, "fastinst: no profile, the program runs without it: %s\n",
			strerror(-ret));
		return;
	}
	owner = getpid();
	leave_by(end_profile);
}

/* No probe of an object that goes may be turned on meanwhile. */
int dlclose(void *handle)
{
	int (*close)(void *) = (int (*)(void *))dlsym(RTLD_NEXT, "dlclose");
	bool locked = owner == getpid() && !epochs_lock();
	int ret = close(handle);

	if (locked) {
		epochs_scan();
		epochs_unlock();
	}
	return ret;
}
