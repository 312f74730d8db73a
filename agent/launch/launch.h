/* SPDX-License-Identifier: MIT */
/*
 * A program with an agent in it: for the commands run and profile. The agent of each of its
 * processes leaves a file of lines in a folder, which is made before and gone afterwards.
 */
#ifndef AGENT_LAUNCH_LAUNCH_H
#define AGENT_LAUNCH_LAUNCH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/command_line.h"

/* Exit statuses of all commands of fastinst. */
enum {
	STATUS_OK = 0,
	STATUS_FAILED = 1,
	STATUS_NO_INPUT = 66, /* as sysexits(3) has them */
	STATUS_NOT_FOUND = 69,
};

#define PID_MOST INT32_MAX

struct launch {
	const char *agent; /* name of the library, as libfastinst-agent.so */
	const char *lost;  /* "its counts are", where a signal ends the program */
	char path[PATH_MAX];
	char folder[32];
};

/* Options that run, attach and trace share: the first member of their requests. */
struct asked {
	char *on;	     /* patterns, a list for text_word(), to be freed; NULL: all, but for */
	const char *entries; /* objects whose functions are taken; NULL: none */
	const char *output;  /* NULL: standard error */
	bool nothing_on, no_control;
	bool writable; /* code with probes stays so, and gets no uprobe */
};

/* asked_options - into a struct asked. option_pattern - one more pattern for fi_find(). */
extern const struct option_row asked_options[];
option_take option_pattern;
#define OPTION_PATTERN(type, member) OPTION_INTO(option_pattern, type, member)

/*
 * open_output - a file, or standard error for NULL; NULL after a complaint. close_output - 0, or
 * -errno after a complaint: not all could be written.
 */
FILE *open_output(const char *path);
int close_output(FILE *out, const char *path);

/* launch_find - fills in path; -ENOENT after a complaint. */
int launch_find(struct launch *launch);

/* launch_folder - makes the folder of reports. -errno after a complaint, and folder is "" then. */
int launch_folder(struct launch *launch);

/*
 * launch_program - run it, with the agent and with the caller's FASTINST_* environment, and wait.
 * Returns its exit status, or 128 and the signal that ended it; or STATUS_* after a complaint, and
 * then folder is empty: nothing ran.
 */
int launch_program(struct launch *launch, char **argv);

/*
 * launch_reports - give each line of each process to read(), without its end, and NULL behind the
 * last one of a process, which has a report for each program that it has executed; it returns 0 or
 * a negative errno. Then remove them with the folder. After an error the others are removed unread.
 * Returns the first error; or 1 after a complaint: not all that a process had to report is there.
 */
int launch_reports(const char *folder, int (*read)(char *line, void *arg), void *arg);

/* --- Signals that end a process --------------------------------------------------------------- */

/*
 * ending_hold - blocks SIGHUP, SIGINT, SIGQUIT and SIGTERM: there is something to remove, and what
 * does it is not ready. ending_let - unblocks them. Both in the calling thread; each may be called
 * again.
 */
void ending_hold(void);
void ending_let(void);

/* ending_is_over - a process has ended, and may be a zombie. */
bool ending_is_over(pid_t pid);

/*
 * ending_note - unblocks the signals, and notes them. Those that were ignored stay so.
 * ending_noted - one has come.
 * ending_until - waits until one comes, the process has ended, or so many seconds are over (0: as
 * long as it takes).
 */
void ending_note(void);
bool ending_noted(void);
void ending_until(pid_t pid, double seconds);

/* ending_ignore - a signal, by a handler, which programs that are run do not inherit. */
void ending_ignore(int number);

/* --- Folders ---------------------------------------------------------------------------------- */

/*
 * folder_make - a new one, by a path that ends in XXXXXX, as mkdtemp(3) has it; locked until this
 * process ends: a PID would not tell, as another process may have it by now. Those of the same kind
 * that killed commands have left are removed. A negative errno, and then the path is as it was.
 */
int folder_make(char *path);

/* folder_remove - with the files in it. */
void folder_remove(const char *path);

#endif
