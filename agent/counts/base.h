/* SPDX-License-Identifier: MIT */
/*
 * What the agents of counts, traces and profiles have in common: threads of their own, writes that
 * send no signal, the file that a process leaves, how a process ends, and what a command tells an
 * agent that it has put into a process.
 */
#ifndef AGENT_COUNTS_BASE_H
#define AGENT_COUNTS_BASE_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "probes/include/fastinst.h"

/* --- Threads of the agent --------------------------------------------------------------------- */

/* start_own_thread - with all signals blocked but the one of patches. Negative errno. */
int start_own_thread(pthread_t *thread, void *(*run)(void *), void *data);

/* --- Writes ----------------------------------------------------------------------------------- */

/*
 * A write beyond the limit of files (RLIMIT_FSIZE), or to a pipe without a reader, sends a signal
 * that ends the program. Between these two calls the thread's writes return the error and no more.
 * Both are async-signal-safe, and keep errno.
 */
struct write_signals {
	sigset_t before, pending;
};

void block_write_signals(struct write_signals *signals);
void restore_write_signals(const struct write_signals *signals);

/* say_line - "fastinst: ", and that, to standard error. */
__attribute__((format(printf, 1, 2))) void say_line(const char *format, ...);

/* explain_error - what went wrong, and what helps, of a negative errno of libfastinst. */
const char *explain_error(int error);

/* write_all - false: not all of it could be written. */
bool write_all(int fd, const char *text, size_t len);

/* --- The report file -------------------------------------------------------------------------- */

/*
 * The file that a process leaves in a folder of a command: a line with a form feed, which no
 * other has, then lines, then "end". Where one of the two is missing, the command knows that more
 * is (agent/launch/launch.h).
 */
struct report_file {
	int fd;
	off_t size; /* before this report */
	struct write_signals signals;
};

/*
 * copy_folder - the path of the folder that reports go to: a program may overwrite what its
 * environment lies in, as setproctitle() does, or clear it. NULL: no folder, or none that a path
 * can name.
 */
const char *copy_folder(const char *path);

/*
 * open_report - named by the PID; another report of that PID stands before it. False: there can be
 * none. close_report - @whole: all of it was written. Both without memory.
 */
bool open_report(struct report_file *file, const char *folder);
void close_report(struct report_file *file, bool whole);

/* remove_report - cut its file down to the size that it had before this process's last report. */
void remove_report(const char *folder, off_t size);

/* write_report - all of it, by a function that writes to a stream. */
void write_report(const char *folder, void (*write)(FILE *out));

/* --- The end of the process ------------------------------------------------------------------- */

/* What an agent does then, whichever way its process ends. */
struct leaving {
	void (*end)(void);   /* last of all; may be called more than once */
	void (*image)(void); /* before another program is executed in place of this one */
	void (*back)(void);  /* that was not executed; NULL: what image() did stays done */
};

/* set_leaving - for the agent's constructor, or later. */
void set_leaving(const struct leaving *leaving);

/* leave_image, return_to_image - around an execve(), which returns if it fails. */
void leave_image(void);
void return_to_image(void);

/* --- What a command says ---------------------------------------------------------------------- */

#define VISIT_LINES 5

/*
 * "fastinst detach" says the first to fastinst_attached(), which answers with the size of stubs and
 * where they are, as hexadecimal numbers; or returns DETACH_BESIDE, and nothing is unloaded. Where
 * no thread is in that code, it says the second.
 */
#define DETACH_CLOSE  "detach"
#define DETACH_UNLOAD "unload"
#define DETACH_BESIDE 1

/* What an agent that was put into a process that runs is told: lines of one text. */
struct visit {
	char copy[2048];
	char *line[VISIT_LINES]; /* "" where there are fewer */
};

/* unblock_traps - lets this thread run patches: where SIGTRAP is blocked, an INT3 ends it. */
void unblock_traps(void);

/* read_visit - cuts the text; its lines are escaped (base/text.h). False: it is too long. */
bool read_visit(struct visit *visit, const char *text);

/*
 * is_folder_abandoned - the command that has made the folder, and holds it locked, is gone: it was
 * killed, and what it has started goes on.
 */
bool is_folder_abandoned(const char *folder);

/*
 * is_program_over - the main thread has ended without the process, and no threads are left but
 * those of agents, by fi_own_thread(). The last thread of a program that ends so ends the process,
 * as exit(0) does: an agent's thread must not outlive it, and is that last thread when it returns.
 *
 * Looks once a second, however often it is called.
 */
bool is_program_over(void);

/* --- Objects whose code is probed (pin.c) ----------------------------------------------------- */

/*
 * The dlclose() that a program calls is not that of an agent which was put into it while it runs,
 * so the agent holds each of them itself.
 *
 * pin_object - the object that holds that address stays loaded until pins_drop(). -ENOENT: none
 * does any more. -ENOMEM. pins_drop - runs what the object runs at its end. Both in one thread at a
 * time.
 */
int pin_object(const void *address);
void pins_drop(void);

/* --- What agents and commands call things ----------------------------------------------------- */

/* kind_name - of a probe, as lines have it. */
const char *kind_name(enum fi_kind kind);

/* error_cause - what went wrong, and what helps, of a negative errno of libfastinst. */
const char *error_cause(int error);

#endif
