/* SPDX-License-Identifier: MIT */
/*
 * fastinst profile --pid: the agent of profiles is put into a process, and is called to
 * start, and some time later to stop.
 */
#include "probes/profile/command/profile_cmd.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probes/inject/inject.h"
#include "probes/launch/ending.h"
#include "probes/launch/folder.h"
#include "probes/text/text.h"

static int call_agent(pid_t pid, const struct launch *launch, const char *text)
{
	struct inject inject = {
		.pid = pid,
		.library = launch->path,
		.entry = "fastinst_profile",
		.text = text,
	};
	int ret = inject_library(&inject);

	if (!ret && inject.result == -EBUSY)
		complain(0, 0, "process %d is profiled already", (int)pid);
	else if (ret < 0 || inject.result < 0)
		inject_complain(&inject, ret, "profile");
	return ret < 0 ? ret : inject.result;
}

/* The process writes there, as its own user. */
static int make_folder(pid_t pid, struct launch *launch)
{
	char path[32];
	struct stat owner;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &owner) < 0)
		return complain(-ESRCH, 0, "there is no process %d", (int)pid);
	if (launch_folder(launch) < 0)
		return -EIO;
	if (owner.st_uid != geteuid() && chown(launch->folder, owner.st_uid, owner.st_gid) < 0)
		complain(0, 0, "process %d cannot write to %s", (int)pid, launch->folder);
	return 0;
}

/* The agent gets as text what a preloaded agent reads from the environment. */
static int start_profile(pid_t pid, const struct launch *launch)
{
	const char *wish = getenv("FASTINST_ENTRIES");
	char text[4096], *functions = text_escaped(getenv("FASTINST_FUNCTIONS"));
	char *entries = text_escaped(wish ? wish : "");
	int len = snprintf(text, sizeof(text), "start\n%s\n%s\n%s\n%s%s", launch->folder,
			   getenv("FASTINST_PROFILE"), functions ? functions : "", wish ? "=" : "",
			   entries ? entries : "");

	free(functions);
	free(entries);
	if (len < (int)sizeof(text))
		return call_agent(pid, launch, text);
	return complain(-ENAMETOOLONG, 0, "the patterns are too long");
}

int attach_profile(pid_t pid, double seconds, struct launch *launch)
{
	launch->folder[0] = '\0';
	if (launch_find(launch) < 0)
		return STATUS_NOT_FOUND;
	if (make_folder(pid, launch) < 0)
		return STATUS_FAILED;
	if (start_profile(pid, launch) < 0) {
		folder_remove(launch->folder);
		launch->folder[0] = '\0';
		return STATUS_FAILED;
	}
	ending_note();
	ending_until(pid, seconds);
	/* A process that has ended has left its report. */
	if (ending_is_over(pid) || call_agent(pid, launch, "stop") == 0)
		return STATUS_OK;
	return ending_is_over(pid) ? STATUS_OK : STATUS_FAILED;
}
