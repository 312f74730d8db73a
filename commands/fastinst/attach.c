/* SPDX-License-Identifier: MIT */
/* fastinst attach: probes in a process that runs already, whether or not an agent is in it. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "agent/counts/base.h"
#include "agent/counts/control.h"
#include "agent/launch/inject.h"
#include "base/clock.h"
#include "base/text.h"
#include "commands/fastinst/command.h"

#define LOOK 1.0 /* seconds between two looks at counts */

struct attach {
	struct asked asked;
	long pid;
	double seconds; /* of --for; 0: none */
	bool stay;
	bool json;
	struct launch launch;
};

/* Warns of objects whose files were replaced or deleted since they were loaded. */
static void look_at_mappings(long pid)
{
	FILE *maps = target_file((pid_t)pid, "maps");
	char line[PATH_MAX + 128];

	while (maps && fgets(line, sizeof(line), maps)) {
		const char *file = strchr(line, '/');
		char *gone = strstr(line, " (deleted)\n");

		if (!file || !gone || !strstr(line, "r-xp") || !strncmp(file, "/memfd:", 7))
			continue;
		*gone = '\0';
		remark("%s was replaced or deleted since it was loaded: none of its functions is "
		       "found; start the program again",
		       file);
	}
	if (maps)
		fclose(maps);
}

/* The agent makes its socket where this user's on, off and top look for it. */
static int inject_agent(struct attach *attach)
{
	char folder[96];
	struct inject inject = {
		.pid = (pid_t)attach->pid,
		.library = attach->launch.path,
		.entry = "fastinst_attached",
		.text = folder,
	};
	double began = seconds_now();
	int ret = control_folder(true, folder, sizeof(folder));

	if (ret < 0)
		return complain(STATUS_FAILED, ret, "%s cannot be used for the control socket",
				folder);
	ret = inject_library(&inject);
	if (ret < 0 || inject.result < 0)
		return inject_complain(&inject, ret, "attach to");
	fprintf(stderr, "attached to process %ld in %.1f ms, stopped for %.3f ms\n", attach->pid,
		(seconds_now() - began) * 1e3, inject.stopped * 1e3);
	return STATUS_OK;
}

static int remove_agent(struct attach *attach)
{
	struct inject inject = {
		.pid = (pid_t)attach->pid,
		.library = attach->launch.path,
		.entry = "fastinst_attached",
		.text = DETACH_CLOSE,
		.unload = DETACH_UNLOAD,
	};
	int ret = inject_library(&inject);

	if (ret == -EBUSY && inject.inside)
		remark("nothing is probed in process %ld any more; its code stays, as %s",
		       attach->pid, inject.why);
	else if (!ret && inject.result == -ENOENT)
		return complain(STATUS_NOT_FOUND, 0, "process %ld has no agent that was attached",
				attach->pid);
	else if (ret < 0 || inject.result < 0)
		return inject_complain(&inject, ret, "detach from");
	else if (inject.result == DETACH_BESIDE)
		remark("process %ld uses libfastinst itself, which stays as it is", attach->pid);
	else
		fprintf(stderr, "detached from process %ld\n", attach->pid);
	return STATUS_OK;
}

/* Sends "on", "off" or "counts" for each pattern; counts are added. */
static int ask_patterns(const struct attach *attach, const char *word, struct counts *counts)
{
	char *copy = strdup(attach->asked.on ? attach->asked.on : "*"), *rest = copy;
	const char *pattern;
	int status = copy ? STATUS_OK : STATUS_FAILED;

	while (status == STATUS_OK && (pattern = text_word(&rest)))
		status = control_ask(attach->pid, counts, "%s %s", word, pattern);
	free(copy);
	return status;
}

/* Replaces the counts by the current ones of all probes, where the agent answers. */
static void read_counts(const struct attach *attach, struct counts *counts)
{
	struct counts now = { 0 };

	if (control_listens(attach->pid) && control_ask(attach->pid, &now, "counts") == STATUS_OK) {
		counts_join(&now);
		counts_free(counts);
		*counts = now;
	} else {
		counts_free(&now);
	}
}

/* A process that ends meanwhile leaves a report, unless a signal ends it. */
static void watch_counts(struct attach *attach, struct counts *counts)
{
	double until = seconds_now() + attach->seconds, left = attach->seconds;
	struct counts last = { 0 };

	while (left > 0 && !ending_noted() && !ending_is_over((pid_t)attach->pid)) {
		ending_until((pid_t)attach->pid, left < LOOK ? left : LOOK);
		left = until - seconds_now();
		if (left > 0)
			read_counts(attach, counts);
	}
	if (control_listens(attach->pid))
		ask_patterns(attach, "off", NULL);
	read_counts(attach, counts);
	launch_reports(attach->launch.folder, counts_line, &last);
	counts_join(&last);
	if (last.n) {
		counts_free(counts);
		*counts = last;
	} else if (ending_is_over((pid_t)attach->pid)) {
		remark("process %ld was ended: what it ran in its last second is not counted",
		       attach->pid);
	}
}

static int count_for(struct attach *attach)
{
	struct counts counts = { 0 }, before = { 0 }, named = { 0 };
	/* Until probes are off again, no signal ends this process. */
	int status = launch_folder(&attach->launch) < 0 ? STATUS_FAILED : STATUS_OK;

	read_counts(attach, &before);
	if (status == STATUS_OK)
		status = control_ask(attach->pid, &named, "report %s", attach->launch.folder);
	if (status == STATUS_OK)
		status = ask_patterns(attach, "on", NULL);
	if (status == STATUS_OK)
		status = ask_patterns(attach, "counts", &named);
	/* Some patterns may be on. */
	if (status != STATUS_OK && control_listens(attach->pid))
		ask_patterns(attach, "off", NULL);
	if (status == STATUS_OK) {
		ending_note();
		watch_counts(attach, &counts);
		counts_since(&counts, &before, &named);
		if (counts_write(&counts, attach->asked.output, attach->json) < 0)
			status = STATUS_FAILED;
	}
	counts_free(&named);
	counts_free(&before);
	counts_free(&counts);
	return status;
}

static int attach_agent(struct attach *attach)
{
	bool was_there = control_listens(attach->pid);
	int status = STATUS_OK;

	if (was_there)
		fprintf(stderr, "the agent is in process %ld already\n", attach->pid);
	else if (launch_find(&attach->launch) < 0)
		status = STATUS_NOT_FOUND;
	else
		status = inject_agent(attach);
	if (status == STATUS_OK && attach->asked.writable)
		status = control_ask(attach->pid, NULL, "writable on");
	/* To read large objects takes seconds. The agent does so when it can answer. */
	if (status == STATUS_OK && attach->asked.entries)
		status = control_ask(attach->pid, NULL, "entries %s", attach->asked.entries);
	if (status == STATUS_OK)
		look_at_mappings(attach->pid);
	if (status == STATUS_OK && attach->seconds > 0) {
		status = count_for(attach);
		if (!was_there && !attach->stay && !ending_is_over((pid_t)attach->pid))
			remove_agent(attach);
		return status;
	}
	if (status == STATUS_OK && attach->asked.on)
		return ask_patterns(attach, "on", NULL);
	return status;
}

static const struct option_row options[] = {
	{ "for", "TIME",
	  "turn probes (all, without --on) on for that time, such as 10s, print how often each was "
	  "run, and turn them off; until the process ends or ^C where it is sooner",
	  OPTION_TIME(struct attach, seconds, 0) },
	{ "stay", NULL, "leave the agent there after --for", OPTION_FLAG(struct attach, stay) },
	{ "json", NULL, "as JSON", OPTION_FLAG(struct attach, json) },
	{ 0 },
};

static const struct command_line line = {
	.operands = "PID",
	.about = "Put the agent into a process that runs, so that its probes can be turned on and\n"
		 "off.\n",
	.options = { asked_options, options },
	.end = "Afterwards \"fastinst on\", \"off\" and \"top\" reach it. The process is stopped\n"
	       "for less than a millisecond as a rule; how long it was is said.\n",
};

static const struct command_line detach_line = {
	.operands = "PID",
	.about =
		"Take out of a process what \"fastinst attach\" has put there: the agent with its\n"
		"thread, socket and signal handler, and changed code.\n",
	.end = "Exit status: 0, also where something has to stay, which is said; 1 it failed;\n"
	       "69 no agent was attached.\n",
};

/* Commands attach and detach: argv[0] is "fastinst detach". */
int attach_command(int argc, char **argv)
{
	struct attach attach = { .launch.agent = "libfastinst-attached.so" };
	bool detaches = strstr(argv[0], " detach");
	int status = command_line_parse(detaches ? &detach_line : &line, argc, argv, &attach, NULL);
	uint64_t pid = 0;

	if (status == STATUS_OK &&
	    (optind + 1 != argc || !number_in(argv[optind], 1, PID_MOST, &pid)))
		status = refuse_usage("it takes the number of one process");
	attach.pid = (long)pid;
	if (status == STATUS_OK && !detaches)
		status = attach_agent(&attach);
	else if (status == STATUS_OK)
		status = launch_find(&attach.launch) < 0 ? STATUS_NOT_FOUND : remove_agent(&attach);
	free(attach.asked.on);
	return status;
}
