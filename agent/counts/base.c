/* SPDX-License-Identifier: MIT */
/*
 * What all agents have in common. Nothing here asks for memory but write_report(): a signal handler
 * may have called _exit().
 */
#define _GNU_SOURCE
#include "agent/counts/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <patchcore/signals.h>

#include "base/text.h"
#include "probes/include/fastinst.h"

/* --- Threads of the agent --------------------------------------------------------------------- */

int start_own_thread(pthread_t *thread, void *(*run)(void *), void *data)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	sigdelset(&all, SIGTRAP);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = -pthread_create(thread, NULL, run, data);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret;
}

/* --- Writes ----------------------------------------------------------------------------------- */

void block_write_signals(struct write_signals *signals)
{
	int saved = errno;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	sigaddset(&set, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &set, &signals->before);
	sigpending(&signals->pending);
	errno = saved;
}

/* Signals that were pending before the write are the program's. The others go. */
void restore_write_signals(const struct write_signals *signals)
{
	static const struct timespec now = { 0 };
	int saved = errno;
	sigset_t ours;

	sigemptyset(&ours);
	if (!sigismember(&signals->pending, SIGXFSZ))
		sigaddset(&ours, SIGXFSZ);
	if (!sigismember(&signals->pending, SIGPIPE))
		sigaddset(&ours, SIGPIPE);
	while (sigtimedwait(&ours, NULL, &now) > 0 || errno == EINTR)
		errno = 0;
	pthread_sigmask(SIG_SETMASK, &signals->before, NULL);
	errno = saved;
}

void say_line(const char *format, ...)
{
	struct write_signals signals;
	va_list list;

	va_start(list, format);
	block_write_signals(&signals);
	dprintf(STDERR_FILENO, "fastinst: ");
	vdprintf(STDERR_FILENO, format, list);
	restore_write_signals(&signals);
	va_end(list);
}

const char *explain_error(int error)
{
	static __thread char text[224] __attribute__((tls_model("initial-exec")));
	struct pc_signals report;

	/* There may be a thread for which the change was refused. */
	if (error != -EBUSY || pc_check_signals(&report) != -EBUSY || report.owner != PC_TRAP_OURS)
		return error_cause(error);
	snprintf(
		text, sizeof(text),
		"thread %d has SIGTRAP blocked, and would end the program at a breakpoint that the "
		"change needs for a moment; under \"fastinst run\" no thread has",
		(int)report.first_thread);
	return text;
}

bool write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		text += n;
		len -= (size_t)n;
	}
	return true;
}

/* --- The report file -------------------------------------------------------------------------- */

const char *copy_folder(const char *path)
{
	static char copy[PATH_MAX];

	return path && strlen(path) < sizeof(copy) ? strcpy(copy, path) : NULL;
}

/* If the first line cannot be written, an empty file says that a report is missing. */
bool open_report(struct report_file *file, const char *folder)
{
	char path[PATH_MAX];
	struct stat stat;

	block_write_signals(&file->signals);
	snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid());
	file->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	file->size = file->fd >= 0 && !fstat(file->fd, &stat) ? stat.st_size : 0;
	if (file->fd >= 0 && write_all(file->fd, "\f\n", 2))
		return true;
	if (file->fd >= 0)
		close(file->fd);
	restore_write_signals(&file->signals);
	return false;
}

void close_report(struct report_file *file, bool whole)
{
	if (whole)
		write_all(file->fd, "end\n", 4);
	close(file->fd);
	restore_write_signals(&file->signals);
}

void remove_report(const char *folder, off_t size)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid());
	if (!size || truncate(path, size) < 0)
		unlink(path);
}

void write_report(const char *folder, void (*write)(FILE *out))
{
	struct report_file file;
	FILE *out;

	if (!open_report(&file, folder))
		return;
	out = fdopen(file.fd, "a");
	if (out) {
		write(out);
		if (!fflush(out) && !ferror(out))
			fputs("end\n", out);
		fclose(out);
	} else {
		close(file.fd);
	}
	restore_write_signals(&file.signals);
}

/* --- The end of the process ------------------------------------------------------------------- */

static const struct leaving *how_to_leave;

__attribute__((destructor)) static void end_agent(void)
{
	if (how_to_leave)
		how_to_leave->end();
}

/* The first that is registered with quick_exit() is the last that it calls. */
void set_leaving(const struct leaving *leaving)
{
	if (!how_to_leave)
		at_quick_exit(end_agent);
	how_to_leave = leaving;
}

void leave_image(void)
{
	if (how_to_leave)
		how_to_leave->image();
}

void return_to_image(void)
{
	int saved = errno;

	if (how_to_leave && how_to_leave->back)
		how_to_leave->back();
	errno = saved;
}

/* A process that leaves these ways runs no destructors. */
void _exit(int status)
{
	end_agent();
	for (;;)
		syscall(SYS_exit_group, status);
}

void _Exit(int status)
{
	_exit(status);
}

/* --- What a command says ---------------------------------------------------------------------- */

void unblock_traps(void)
{
	sigset_t trap;

	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	pthread_sigmask(SIG_UNBLOCK, &trap, NULL);
}

bool read_visit(struct visit *visit, const char *text)
{
	char *rest = visit->copy;

	if (snprintf(visit->copy, sizeof(visit->copy), "%s", text) >= (int)sizeof(visit->copy))
		return false;
	for (int i = 0; i < VISIT_LINES; i++) {
		char *line = strsep(&rest, "\n");

		visit->line[i] = line ? line : visit->copy + strlen(text);
		text_unescape(visit->line[i]);
	}
	return true;
}

bool is_folder_abandoned(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool is = fd < 0 ? errno == ENOENT : !flock(fd, LOCK_EX | LOCK_NB);

	if (fd >= 0)
		close(fd);
	return is;
}
