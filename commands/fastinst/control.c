/* SPDX-License-Identifier: MIT */
/* fastinst on, off, reset, and every request to the control sockets of running programs. */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/counts/control.h"
#include "base/number.h"
#include "base/text.h"
#include "commands/fastinst/command.h"

#define PATIENCE 120  /* seconds, for an answer */
#define REQUEST	 4000 /* bytes; the agent takes some more */

/* A request, and what is done with the answer. */
struct talk {
	const char *request;
	bool branch; /* the answer counts branches */
	bool veto;
	long pid;	     /* 0: all */
	const char *pattern; /* one process at least must match it; NULL: none need */
	struct counts *counts;
	unsigned answered;
	long matched; /* in all */
	int failed;
};

/* Removes the socket of a process that was killed. */
static FILE *connect_to(const char *path)
{
	FILE *stream = socket_connect(path, 0);

	if (!stream && errno == ECONNREFUSED)
		unlink(path);
	return stream;
}

/* The agent may be reading large objects, wait for a CPU, or be stopped. */
static bool wait_answer(long pid, FILE *stream)
{
	struct pollfd answer = { .fd = fileno(stream), .events = POLLIN };

	for (int waited = 0; waited < PATIENCE; waited++) {
		if (poll(&answer, 1, 1000) > 0)
			return true;
		if (waited % 10 == 0)
			remark("process %ld has not answered yet: waiting", pid);
	}
	return false;
}

static void take_answer(struct talk *talk, long pid, FILE *stream)
{
	char line[512] = "it did not answer";
	long n;

	if (!wait_answer(pid, stream))
		snprintf(line, sizeof(line), "it did not answer within %d seconds: is it stopped?",
			 PATIENCE);
	else if (fgets(line, sizeof(line), stream))
		line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "ok %ld", &n) != 1) {
		talk->failed = complain(1, 0, "process %ld: %s", pid,
					strncmp(line, "error ", 6) ? line : line + 6);
		return;
	}
	talk->answered++;
	talk->matched += n;
	if (talk->counts) {
		text_lines(stream, counts_line, talk->counts);
		counts_line(NULL, talk->counts);
		return;
	}
	printf("process %ld: %ld %s%s\n", pid, n, talk->branch ? "branch" : "probe",
	       talk->branch && n != 1 ? "es" : S(n));
}

static void ask_agent(const char *path, long pid, struct talk *talk)
{
	FILE *stream = talk->pid && talk->pid != pid ? NULL : connect_to(path);

	if (!stream)
		return;
	text_put(stream, talk->request);
	fputc('\n', stream);
	fflush(stream);
	take_answer(talk, pid, stream);
	fclose(stream);
}

/* The sockets, and those that agents had not begun to listen at, by their suffix. */
static void visit_sockets(const char *suffix,
			  void (*visit)(const char *path, long pid, struct talk *talk),
			  struct talk *talk)
{
	char folder[96], path[PATH_MAX], rest[8];
	DIR *dir = control_folder(false, folder, sizeof(folder)) < 0 ? NULL : opendir(folder);
	const struct dirent *entry;
	long pid;

	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (sscanf(entry->d_name, "%ld.%7s", &pid, rest) == 2 && !strcmp(rest, suffix))
			visit(path, pid, talk);
	}
	if (dir)
		closedir(dir);
}

/* The user of the process; -1: there is no such process. */
static long find_user(long pid)
{
	char path[32];
	struct stat process;

	snprintf(path, sizeof(path), "/proc/%ld", pid);
	return stat(path, &process) < 0 ? -1 : (long)process.st_uid;
}

static int complain_of_pattern(const struct talk *talk)
{
	struct counts names = { 0 };
	struct talk question = { .request = "names", .pid = talk->pid, .counts = &names };
	char process[32] = "these processes";

	if (talk->branch)
		return complain(STATUS_FAILED, 0, "no static branch is called '%s'", talk->pattern);
	visit_sockets("sock", ask_agent, &question);
	if (talk->pid)
		snprintf(process, sizeof(process), "process %ld", talk->pid);
	complain_unmatched(process, talk->pattern, &names);
	counts_free(&names);
	return STATUS_FAILED;
}

/* Asks one process, or all that listen. */
static int ask_agents(struct talk *talk)
{
	long user = talk->pid ? find_user(talk->pid) : -1;
	char folder[96];

	if (control_folder(false, folder, sizeof(folder)) == -EPERM)
		return complain(STATUS_FAILED, 0, "%s is not this user's alone, and not trusted",
				folder);
	visit_sockets("sock", ask_agent, talk);
	if (talk->failed)
		return STATUS_FAILED;
	if (talk->answered)
		return talk->pattern && !talk->matched ? complain_of_pattern(talk) : STATUS_OK;
	if (user >= 0 && user != (long)geteuid())
		return complain(STATUS_NOT_FOUND, 0,
				"process %ld: it is a process of user %ld; be that user", talk->pid,
				user);
	return complain(STATUS_NOT_FOUND, 0,
			"no such program listens: start it by \"fastinst run\", or have "
			"\"fastinst attach\" put the agent into it");
}

/*
 * Removes a socket whose PID no process has and where none listens. The PID alone does not tell:
 * the process may be in a container that shares the folder.
 */
static void sweep_one(const char *path, long pid, struct talk *none)
{
	FILE *stream;

	(void)none;
	if (pid <= 0 || !kill((pid_t)pid, 0) || errno != ESRCH)
		return;
	stream = connect_to(path);
	if (stream)
		fclose(stream);
}

void control_sweep(void)
{
	visit_sockets("sock", sweep_one, NULL);
	visit_sockets("new", sweep_one, NULL);
}

/* In "on PATTERN", "trace FOLDER PATTERN"; else NULL: probes to turn off may have been unloaded. */
static const char *pattern_of(const char *request)
{
	const char *folder = strncmp(request, "trace ", 6) ? NULL : strchr(request + 6, ' ');

	if (!strncmp(request, "on ", 3))
		return request + 3;
	return folder ? folder + 1 : NULL;
}

int control_ask(long pid, struct counts *counts, const char *format, ...)
{
	char request[REQUEST];
	struct talk talk = { .request = request, .pid = pid, .counts = counts };
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(request, sizeof(request), format, args);
	va_end(args);
	if (len >= (int)sizeof(request))
		return refuse_usage("the pattern is too long");
	talk.pattern = pattern_of(request);
	return ask_agents(&talk);
}

bool control_listens(long pid)
{
	char path[SOCKET_PATH];
	FILE *stream = control_path(NULL, (pid_t)pid, false, path, sizeof(path)) < 0
			       ? NULL
			       : connect_to(path);

	if (stream)
		fclose(stream);
	return stream != NULL;
}

static const struct option_row pid_options[] = {
	{ "pid", "PID", "in that process only", OPTION_NUMBER(struct talk, pid, 1, PID_MOST),
	  .letter = 'p' },
	{ 0 },
};

static const struct option_row switch_options[] = {
	{ "branch", NULL, "static branches instead, by KIND.NAME",
	  OPTION_FLAG(struct talk, branch) },
	{ "veto", NULL, "off: branches stay as they were compiled; on: one veto less",
	  OPTION_FLAG(struct talk, veto) },
	{ 0 },
};

static const struct command_line switch_line = {
	.operands = "PATTERN",
	.about = "Turn probes on or off in running programs of this user: those started by\n"
		 "\"fastinst run\", or that \"fastinst attach\" has been to.\n",
	.options = { pid_options, switch_options },
	.end = "PATTERN is FUNCTION, OBJECT:FUNCTION or FILE:FUNCTION, all globs, or /REGEX/.\n",
};

static const struct command_line reset_line = {
	.operands = "PATTERN",
	.about = "Have probes in running programs of this user count from 0 again.\n",
	.options = { pid_options },
	.end = "PATTERN is FUNCTION, OBJECT:FUNCTION, both globs, or /REGEX/.\n",
};

/* Commands on, off and reset: argv[0] is "fastinst on". */
int switch_command(int argc, char **argv)
{
	char request[REQUEST];
	struct talk talk = { .request = request };
	const char *word = strrchr(argv[0], ' ') + 1;
	const struct command_line *usage = strcmp(word, "reset") ? &switch_line : &reset_line;
	int status = command_line_parse(usage, argc, argv, &talk, NULL);

	if (status != STATUS_OK)
		return status;
	if (optind + 1 != argc)
		return refuse_usage("it takes one pattern");
	talk.branch |= talk.veto;
	talk.pattern = argv[optind];
	if (talk.veto)
		word = strcmp(word, "on") != 0 ? "veto" : "allow";
	if (snprintf(request, sizeof(request), "%s%s %s", talk.branch ? "branch-" : "", word,
		     talk.pattern) >= (int)sizeof(request))
		return refuse_usage("the pattern is too long");
	return ask_agents(&talk);
}
