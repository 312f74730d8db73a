/* SPDX-License-Identifier: MIT */
/* A session: a profile of this process, from start to report, whichever way it begins and ends. */
#include "profile/sampler/session.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/counts/base.h"
#include "probes/include/fastinst.h"

static _Atomic pid_t owner; /* the process that still has to report, or 0 */
static const char *folder;
static bool visited;

int fastinst_profile(const char *text);

/* A child of vfork() has its parent's memory, and another PID. */
static int finish_session(bool reports)
{
	pid_t me = getpid(), expected = me;
	int ret;

	if (!folder || !atomic_compare_exchange_strong(&owner, &expected, 0))
		return 0;
	ret = sampler_finish();
	if (ret < 0) {
		owner = me;
		return ret;
	}
	if (reports)
		write_report(folder, sampler_report);
	return 0;
}

static void end_session(void)
{
	finish_session(true);
}

static int stop_session(bool reports)
{
	int ret = finish_session(reports);

	return ret < 0 ? ret : sampler_stop();
}

/* The child has nothing to report of its parent's profile. */
static void fork_session(void)
{
	owner = sampler_forked(owner, visited) ? getpid() : 0;
}

static int begin_session(const char *options, const char *functions, const char *entries)
{
	static const struct leaving leaving = { end_session, end_session, NULL };
	static bool known;
	int ret = options ? sampler_read(options, functions && *functions ? functions : "*")
			  : -EINVAL;

	if (!ret && entries)
		ret = fi_take_entries(entries);
	if (!ret)
		ret = fi_init();
	if (!ret && !known)
		ret = -pthread_atfork(sampler_before_fork, sampler_after_fork, fork_session);
	known |= !ret;
	if (!ret)
		ret = sampler_start(visited);
	if (ret)
		return ret;
	owner = getpid();
	set_leaving(&leaving);
	return 0;
}

__attribute__((constructor)) static void start_session(void)
{
	const char *options = getenv("FASTINST_PROFILE");
	int ret;

	folder = copy_folder(getenv("FASTINST_OUTPUT"));
	if (!options || !folder)
		return;
	ret = begin_session(options, getenv("FASTINST_FUNCTIONS"), getenv("FASTINST_ENTRIES"));
	if (ret < 0)
		say_line("no profile, the program runs without it: %s\n", explain_error(ret));
}

/*
 * @text: lines: "start", the folder of the report, options, patterns, and "=" and objects of which
 *	  functions are taken; or "stop"
 */
int fastinst_profile(const char *text)
{
	struct visit visit;

	unblock_traps();
	if (!read_visit(&visit, text))
		return -ENAMETOOLONG;
	if (!strcmp(visit.line[0], "stop"))
		return stop_session(true);
	if (owner) {
		int ret = is_folder_abandoned(folder) ? stop_session(false) : -EBUSY;

		if (ret < 0)
			return ret;
	}
	folder = copy_folder(visit.line[1]);
	visited = true;
	return begin_session(visit.line[2], visit.line[3],
			     *visit.line[4] ? visit.line[4] + 1 : NULL);
}

/* No probe of an object may be turned on while that is unloaded. */
int dlclose(void *handle)
{
	int (*close)(void *) = (int (*)(void *))dlsym(RTLD_NEXT, "dlclose");
	bool begun = sampler_before_unload();
	int ret = close(handle);

	if (begun)
		sampler_after_unload();
	return ret;
}

static void *run_thread(void *number)
{
	fi_own_thread(1);
	sampler_run((uintptr_t)number);
	fi_own_thread(-1);
	return NULL;
}

int session_thread(pthread_t *thread, uintptr_t number)
{
	return start_own_thread(thread, run_thread, (void *)number);
}
