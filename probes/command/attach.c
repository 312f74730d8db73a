/* SPDX-License-Identifier: MIT */
/*
 * fastinst attach: probes in a process that runs already, whether or not an agent is in it.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "probes/agent/control.h"
#include "probes/command/command.h"
#include "probes/command/counts.h"
#include "probes/inject/inject.h"
#include "probes/launch/ending.h"
#include "probes/text/text.h"

struct attach {
	long pid;
	char *on;
	const char *output;
	const char *entries;
	double seconds; /* 0: no counts are wanted */
	bool json;
	struct launch launch;
};

static double attach_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Where the agent makes its socket: where on, off and top of this user look. */
static int put_agent(struct attach *attach)
{
	char folder[96];
	struct inject inject = {
		.pid = (pid_t)attach->pid,
		.library = attach->launch.path,
		.entry = "fastinst_attached",
		.text = folder,
	};
	double began = attach_now();
	int ret = control_folder(true, folder, sizeof(folder));

	if (ret < 0)
		return complain(STATUS_FAILED, ret, "%s cannot be used for the control socket",
				folder);
	ret = inject_library(&inject);
	if (ret < 0)
		return complain(STATUS_FAILED, 0, "cannot attach to process %ld: %s", attach->pid,
				inject.why);
	if (inject.result < 0)
		return complain(STATUS_FAILED, inject.result,
				"the agent is in process %ld, and cannot work there", attach->pid);
	fprintf(stderr, "attached to process %ld in %.1f ms, stopped for %.3f ms\n", attach->pid,
		(attach_now() - began) * 1e3, inject.stopped * 1e3);
	return STATUS_OK;
}

/* Each pattern of a list, "on" or "off". */
static int switch_patterns(const struct attach *attach, const char *word)
{
	char *copy = strdup(attach->on ? attach->on : "*"), *rest = copy;
	const char *pattern;
	int status = copy ? STATUS_OK : STATUS_FAILED;

	while (status == STATUS_OK && (pattern = text_word(&rest))) {
		char request[4000];

		snprintf(request, sizeof(request), "%s %s", word, pattern);
		status = control_ask(attach->pid, request, NULL);
	}
	free(copy);
	return status;
}

static int count_for(const struct attach *attach)
{
	struct counts counts = { 0 };
	int status;

	/* What ends this process must not leave the probes on. */
	ending_hold();
	status = switch_patterns(attach, "on");
	if (status != STATUS_OK) {
		/* Some may be on. */
		if (control_listens(attach->pid))
			switch_patterns(attach, "off");
		return status;
	}
	ending_note();
	ending_until((pid_t)attach->pid, attach->seconds);
	status = switch_patterns(attach, "off");
	if (status == STATUS_OK)
		status = control_ask(attach->pid, "counts", &counts);
	if (status == STATUS_OK) {
		counts_join(&counts);
		if (counts_write(&counts, attach->output, attach->json) < 0)
			status = STATUS_FAILED;
	}
	counts_free(&counts);
	return status;
}

/* To read large objects takes seconds. The agent does so when it can answer. */
static int take_entries(const struct attach *attach)
{
	char request[4000];

	if (strlen(attach->entries) > sizeof(request) - 16)
		return refuse_usage("the name of --entries is too long");
	snprintf(request, sizeof(request), "entries %s", attach->entries);
	return control_ask(attach->pid, request, NULL);
}

static int attach_to(struct attach *attach)
{
	int status = STATUS_OK;

	attach->launch.agent = "libfastinst-attached.so";
	if (control_listens(attach->pid))
		fprintf(stderr, "the agent is in process %ld already\n", attach->pid);
	else if (launch_find(&attach->launch) < 0)
		status = STATUS_NOT_FOUND;
	else
		status = put_agent(attach);
	if (status == STATUS_OK && attach->entries)
		status = take_entries(attach);
	if (status == STATUS_OK && attach->seconds > 0)
		return count_for(attach);
	if (status == STATUS_OK && attach->on)
		return switch_patterns(attach, "on");
	return status;
}

static const struct option_row options[] = {
	{ "on", "PATTERN", "turn these on; may be given several times",
	  OPTION_PATTERN(struct attach, on) },
	{ "for", "TIME",
	  "turn them (all, without --on) on for that time, such as 10s, print how often each was "
	  "run, and turn them off; until the process ends or ^C where it is sooner",
	  OPTION_TIME(struct attach, seconds, 0) },
	{ "entries", "[=OBJECT]",
	  "take functions as well that nothing was compiled into, of the program or of objects of "
	  "these names (a glob)",
	  OPTION_TEXT(struct attach, entries) },
	{ "output", "FILE", "the counts go there instead of to standard error",
	  OPTION_FILE(struct attach, output), .letter = 'o' },
	{ "json", NULL, "as JSON", OPTION_FLAG(struct attach, json) },
	{ 0 },
};

static const struct command_line line = {
	.operands = "PID",
	.about = "Put the agent into a process that runs, so that its probes can be turned on and\n"
		 "off.\n",
	.options = { options },
	.end = "Afterwards \"fastinst on\", \"off\" and \"top\" reach it. The process is stopped\n"
	       "for less than a millisecond as a rule; how long it was is said.\n",
};

int attach_command(int argc, char **argv)
{
	struct attach attach = { 0 };
	int status = command_line_parse(&line, argc, argv, &attach, NULL);
	uint64_t pid;

	if (status == STATUS_OK &&
	    (optind + 1 != argc || !number_in(argv[optind], 1, PID_MOST, &pid)))
		status = refuse_usage("it takes the number of one process");
	if (status == STATUS_OK && attach.entries)
		status = refuse_entries();
	if (status == STATUS_OK) {
		attach.pid = (long)pid;
		status = attach_to(&attach);
	}
	free(attach.on);
	return status;
}
