/* SPDX-License-Identifier: MIT */
/* Child processes: asked line by line with a limit of time, or run to their end. */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"

#define SLICE_MS   100 /* how soon a wish to stop is seen */
#define LAST_WORDS 4096
#define PATIENCE   0.5 /* seconds to end by itself */
#define DIGITS	   18  /* so that any number fits an integer, too */

struct process {
	pid_t pid; /* 0: it has ended and was waited for */
	int talk;  /* its input and output */
	int said;  /* a file of its standard error */
	const volatile sig_atomic_t *stop;
	char name[32];
	int broken; /* the error that ended it */
	int status; /* how it ended, once it has */
	char why[PROCESS_WHY];
	char line[PROCESS_LINE]; /* what was read and not yet used */
	size_t length;
};

/* --- Reasons -------------------------------------------------------------------------------- */

/* printf into why, with everything that is not plain text as a question mark. */
static int __attribute__((format(printf, 3, 4)))
fail_saying(int ret, char *why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, PROCESS_WHY, format, args);
	va_end(args);
	for (char *c = why; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return ret;
}

/* The first or last line that it said and is not empty; text stays if it said nothing. */
static void line_said(const struct process *p, bool first, char *text, size_t size)
{
	char said[LAST_WORDS + 1], *line, *rest;
	off_t end = lseek(p->said, 0, SEEK_END);
	off_t from = !first && end > LAST_WORDS ? end - LAST_WORDS : 0;
	ssize_t got = pread(p->said, said, LAST_WORDS, from);

	said[got > 0 ? got : 0] = '\0';
	for (line = strtok_r(said, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
		snprintf(text, size, "%s", line);
		if (first)
			break;
	}
}

/* --- Its end -------------------------------------------------------------------------------- */

/* The group as long as its leader is not waited for: no other process can have the number. */
static void kill_it(struct process *p)
{
	if (p->pid) {
		kill(-p->pid, SIGKILL);
		kill(p->pid, SIGKILL);
	}
	while (p->pid && waitpid(p->pid, &p->status, 0) < 0 && errno == EINTR)
		;
	p->pid = 0;
}

static bool ends_within(struct process *p, double seconds)
{
	const struct timespec nap = { 0, 2000000 };
	double end = seconds_now() + seconds;
	siginfo_t info;

	do {
		info.si_pid = 0;
		if (waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		    info.si_pid)
			return true;
		nanosleep(&nap, NULL);
	} while (seconds_now() < end);
	return false;
}

/* It is broken for good, for this reason; what it said last is behind it. */
static int __attribute__((format(printf, 4, 5)))
give_up(struct process *p, int ret, bool said_too, const char *format, ...)
{
	char what[PROCESS_WHY], said[PROCESS_WHY] = "";
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	if (said_too)
		line_said(p, false, said, sizeof(said));
	fail_saying(0, p->why, "%s%s%s", what, said[0] ? ": " : "", said);
	p->broken = ret;
	kill_it(p);
	return ret;
}

/* It closed its output, so it has ended or soon will. */
static int is_gone(struct process *p)
{
	bool by_itself = ends_within(p, PATIENCE);

	kill_it(p);
	if (!by_itself)
		return give_up(p, -EPIPE, true, "%s closed its output", p->name);
	if (WIFSIGNALED(p->status))
		return give_up(p, -EPIPE, true, "%s was ended by signal %d", p->name,
			       WTERMSIG(p->status));
	return give_up(p, -EPIPE, true, "%s ended with status %d", p->name, WEXITSTATUS(p->status));
}

static int is_garbage(struct process *p, const char *line)
{
	return give_up(p, -EPROTO, false, "%s gave an answer that is none: %.60s", p->name, line);
}

/* --- Lines ---------------------------------------------------------------------------------- */

static int read_more(struct process *p, double seconds, double until)
{
	struct pollfd fd = { .fd = p->talk, .events = POLLIN };
	double left;
	ssize_t got;

	do {
		if (p->stop && *p->stop)
			return give_up(p, -EINTR, false, "interrupted");
		left = (until - seconds_now()) * 1e3;
		if (left <= 0)
			return give_up(p, -ETIMEDOUT, true, "%s gave no answer in %.1f s", p->name,
				       seconds);
	} while (poll(&fd, 1, left < SLICE_MS ? (int)left + 1 : SLICE_MS) <= 0);
	got = recv(p->talk, p->line + p->length, sizeof(p->line) - p->length, 0);
	if (got < 0 && errno == EINTR)
		return 0;
	if (got <= 0)
		return is_gone(p);
	p->length += (size_t)got;
	return 0;
}

/* The next line, without its end, into line of PROCESS_LINE bytes. */
static int next_line(struct process *p, double seconds, double until, char *line)
{
	char *end;
	size_t used;
	int ret;

	while (!(end = memchr(p->line, '\n', p->length))) {
		if (p->length == sizeof(p->line))
			return is_garbage(p, "a line without an end");
		ret = read_more(p, seconds, until);
		if (ret < 0)
			return ret;
	}
	used = (size_t)(end + 1 - p->line);
	memcpy(line, p->line, used - 1);
	line[used - 1] = '\0';
	/* A line is its text up to the end, with any bytes in it. */
	if (memchr(line, '\0', used - 1))
		return is_garbage(p, "a line with a zero byte");
	p->length -= used;
	memmove(p->line, p->line + used, p->length);
	return 0;
}

/* --- Numbers -------------------------------------------------------------------------------- */

/* Digits with at most one dot between, a blank apart. 0, -EPROTO: not only that; -ENOMEM. */
static int read_numbers(const char *line, struct process_reply *reply)
{
	static const char digits[] = "0123456789";

	for (;;) {
		size_t whole = strspn(line, digits), dot = line[whole] == '.';
		size_t part = dot ? strspn(line + whole + 1, digits) : 0;

		if (!whole || whole > DIGITS || part > DIGITS || (dot && !part) ||
		    reply->count == PROCESS_NUMBERS)
			return -EPROTO;
		/* Nothing here sets a locale, in which the dot might be another sign. */
		if (ARRAY_ADD(reply->value, reply->count, strtod(line, NULL)) < 0)
			return -ENOMEM;
		line += whole + dot + part;
		if (!*line)
			return 0;
		if (*line++ != ' ')
			return -EPROTO;
	}
}

/* --- Requests ------------------------------------------------------------------------------- */

static int send_all(struct process *p, const char *text, size_t length)
{
	while (length) {
		ssize_t sent = send(p->talk, text, length, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return is_gone(p);
		text += sent;
		length -= (size_t)sent;
	}
	return 0;
}

int process_ask(struct process *p, const char *request, double seconds, struct process_reply *reply,
		char *why)
{
	static const char error[] = "error ";
	double until;
	char line[PROCESS_LINE];
	int ret = p->broken;

	/* What came before the question answers nothing. */
	if (ret == 0 && request && p->length)
		ret = is_garbage(p, "it spoke without being asked");
	if (ret == 0 && request)
		ret = send_all(p, request, strlen(request));
	if (ret == 0 && request)
		ret = send_all(p, "\n", 1);
	until = seconds_now() + seconds;
	if (ret == 0)
		reply->count = 0;
	while (ret == 0) {
		ret = next_line(p, seconds, until, line);
		if (ret < 0 || !strcmp(line, "."))
			break;
		if (!strncmp(line, error, sizeof(error) - 1))
			return fail_saying(-EREMOTEIO, why, "%s: %s", p->name,
					   line + sizeof(error) - 1);
		ret = read_numbers(line, reply);
		if (ret == -EPROTO)
			is_garbage(p, line);
		if (ret == -ENOMEM)
			give_up(p, ret, false, "out of memory");
	}
	if (p->broken)
		fail_saying(0, why, "%s", p->why);
	return ret;
}

void process_reply_free(struct process_reply *reply)
{
	free(reply->value);
	*reply = (struct process_reply){ 0 };
}

/* --- Start and end -------------------------------------------------------------------------- */

pid_t process_pid(const struct process *p)
{
	return p->pid;
}

/* Descriptors 0 to 2 are where the child moves its own. */
static int above_standard(int fd)
{
	int high;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(fd);
	return high;
}

/*
 * Not fork(): that would leave all pages of this process write-protected, to be copied one by
 * one while something is measured. Not posix_spawn(): it cannot ask for a signal at our end.
 */
static __attribute__((noinline)) pid_t spawn(const char *const argv[], const int fd[3],
					     const sigset_t *mask, volatile int *error)
{
	pid_t parent = getpid(), pid = vfork();

	if (pid != 0)
		return pid < 0 ? -errno : pid;
	/*
	 * Until exec, in the parent's memory: system calls only. The leader of a process group that
	 * does not outlive its parent. Descriptors that are to be moved are above those that they
	 * are moved to.
	 */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	if (dup2(fd[0], STDIN_FILENO) >= 0 && dup2(fd[1], STDOUT_FILENO) >= 0 &&
	    dup2(fd[2], STDERR_FILENO) >= 0) {
		close_range(STDERR_FILENO + 1, ~0u, 0);
		sigprocmask(SIG_SETMASK, mask, NULL);
		execvp(argv[0], (char *const *)(uintptr_t)argv);
	}
	*error = errno;
	_exit(127);
}

/* In the environment that we have, with messages in the language that ours are in, too. */
static int spawn_on(struct process *p, const char *const argv[])
{
	volatile int error = 0;
	sigset_t all, mask;
	int pair[2], fd[3];

	p->said = above_standard(memfd_create("stderr", MFD_CLOEXEC));
	if (p->said < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	p->talk = above_standard(pair[0]);
	fd[0] = fd[1] = above_standard(pair[1]);
	fd[2] = p->said;
	p->pid = p->talk < 0 || fd[0] < 0 ? -errno : 0;
	if (setenv("LC_ALL", "C", 1) < 0)
		p->pid = -errno;
	/* No handler of ours may run in the child. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	if (p->pid == 0)
		p->pid = spawn(argv, fd, &mask, &error);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (p->pid > 0 && error) {
		waitpid(p->pid, NULL, 0);
		p->pid = -error;
	}
	if (fd[0] >= 0)
		close(fd[0]);
	return p->pid < 0 ? p->pid : 0;
}

static void set_free(struct process *p)
{
	if (p->talk >= 0)
		close(p->talk);
	if (p->said >= 0)
		close(p->said);
	free(p);
}

int process_start(struct process **process, const char *const argv[],
		  const volatile sig_atomic_t *stop, char *why)
{
	const char *slash = strrchr(argv[0], '/');
	struct process *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return fail_saying(-ENOMEM, why, "out of memory");
	p->talk = -1;
	p->said = -1;
	p->stop = stop;
	snprintf(p->name, sizeof(p->name), "%s", slash ? slash + 1 : argv[0]);
	ret = spawn_on(p, argv);
	if (ret < 0) {
		fail_saying(0, why, "cannot run %s: %s", p->name, strerror(-ret));
		set_free(p);
		return ret;
	}
	*process = p;
	return 0;
}

void process_end(struct process *p)
{
	if (!p)
		return;
	shutdown(p->talk, SHUT_WR);
	if (p->pid)
		ends_within(p, PATIENCE);
	kill_it(p);
	set_free(p);
}

int process_run(const char *const argv[], double seconds, const volatile sig_atomic_t *stop,
		char *why)
{
	char said[PROCESS_WHY] = "it failed without a word";
	struct process *p;
	double until;
	int ret = process_start(&p, argv, stop, why);

	if (ret < 0)
		return ret;
	shutdown(p->talk, SHUT_WR);
	until = seconds_now() + seconds;
	/* What it writes is read and forgotten: it ends when its output does. */
	do {
		p->length = 0;
		ret = read_more(p, seconds, until);
	} while (ret == 0);
	if (ret == -EPIPE && p->status == 0) {
		ret = 0;
	} else if (ret == -EPIPE) {
		line_said(p, true, said, sizeof(said));
		ret = fail_saying(-EIO, why, "%s: %s", p->name, said);
	} else {
		fail_saying(0, why, "%s", p->why);
	}
	set_free(p);
	return ret;
}
