/* SPDX-License-Identifier: MIT */
#include "stress/base/process.h"

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
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "stress/base/clock.h"
#include "stress/base/process_spawn.h"

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

/* A line of what it said, the first or the last that is not empty; text stays if it said nothing.
 */
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

static int give_up(struct process *p, int ret)
{
	p->broken = ret;
	kill_it(p);
	return ret;
}

/* It closed its output, so it has ended or soon will. */
static int is_gone(struct process *p)
{
	char said[PROCESS_WHY] = "", how[64];
	bool by_itself = ends_within(p, PATIENCE);

	kill_it(p);
	if (!by_itself)
		snprintf(how, sizeof(how), "closed its output");
	else if (WIFSIGNALED(p->status))
		snprintf(how, sizeof(how), "was ended by signal %d", WTERMSIG(p->status));
	else
		snprintf(how, sizeof(how), "ended with status %d", WEXITSTATUS(p->status));
	line_said(p, false, said, sizeof(said));
	fail_saying(0, p->why, "%s %s%s%s", p->name, how, said[0] ? ": " : "", said);
	return give_up(p, -EPIPE);
}

static int is_late(struct process *p, double seconds)
{
	char said[PROCESS_WHY] = "";

	line_said(p, false, said, sizeof(said));
	fail_saying(0, p->why, "%s gave no answer in %.1f s%s%s", p->name, seconds,
		    said[0] ? ": " : "", said);
	return give_up(p, -ETIMEDOUT);
}

static int is_garbage(struct process *p, const char *line)
{
	fail_saying(0, p->why, "%s gave an answer that is none: %.60s", p->name, line);
	return give_up(p, -EPROTO);
}

/* --- Lines ---------------------------------------------------------------------------------- */

static int read_more(struct process *p, double seconds, double until)
{
	struct pollfd fd = { .fd = p->talk, .events = POLLIN };
	double left;
	ssize_t got;

	do {
		if (p->stop && *p->stop) {
			fail_saying(0, p->why, "interrupted");
			return give_up(p, -EINTR);
		}
		left = (until - seconds_now()) * 1e3;
		if (left <= 0)
			return is_late(p, seconds);
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

static int keep_number(struct process_reply *reply, double value)
{
	size_t room = reply->room ? 2 * reply->room : 64;
	double *more;

	if (reply->count == PROCESS_NUMBERS)
		return -EPROTO;
	if (reply->count == reply->room) {
		more = realloc(reply->value, room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		reply->value = more;
		reply->room = room;
	}
	reply->value[reply->count++] = value;
	return 0;
}

/* Digits with at most one dot between, a blank apart. 0, -EPROTO: not only that. */
static int read_numbers(const char *line, struct process_reply *reply)
{
	static const char digits[] = "0123456789";

	for (;;) {
		size_t whole = strspn(line, digits), dot = line[whole] == '.';
		size_t part = dot ? strspn(line + whole + 1, digits) : 0;
		int ret;

		if (!whole || whole > DIGITS || part > DIGITS || (dot && !part))
			return -EPROTO;
		/* Nothing here sets a locale, in which the dot might be another sign. */
		ret = keep_number(reply, strtod(line, NULL));
		line += whole + dot + part;
		if (ret < 0 || !*line)
			return ret;
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
		if (ret != -ENOMEM)
			continue;
		fail_saying(0, p->why, "out of memory");
		give_up(p, ret);
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

/* One of 0 to 2 would be in the way of what the child moves there. */
static int above_standard(int fd)
{
	int high;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(fd);
	return high;
}

static int spawn_on(struct process *p, const char *const argv[])
{
	int pair[2];

	p->said = above_standard(memfd_create("stderr", MFD_CLOEXEC));
	if (p->said < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	p->talk = above_standard(pair[0]);
	pair[1] = above_standard(pair[1]);
	p->pid = p->talk < 0 || pair[1] < 0 ? -errno : process_spawn(argv, pair[1], p->said);
	if (pair[1] >= 0)
		close(pair[1]);
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
