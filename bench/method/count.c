/* SPDX-License-Identifier: MIT */
#include "bench/method/count.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/method/result.h"
#include "stress/base/clock.h"

#define SLICE_MS  20  /* between two looks whether the child is still there */
#define LINE_SIZE 512 /* of valgrind's; what is longer is cut */
#define ARGS_MAX  64

/*
 * The log comes by a pipe of its own, so that nothing which the program prints can be taken for
 * it. Neither files for a debugger nor a profile are wanted, nor what the user has in
 * ~/.valgrindrc.
 */
static const char *const tool[] = {
	"valgrind",   "--command-line-only=yes",	"--tool=callgrind",
	"--vgdb=no",  "--callgrind-out-file=/dev/null", "--trace-children=no",
	"--log-fd=3",
};
#define TOOL_ARGS (sizeof(tool) / sizeof(tool[0]))
#define LOG_FD	  3

struct counting {
	char *args[TOOL_ARGS + ARGS_MAX + 1];
	char self[PATH_MAX];
	char **environment;
	pid_t child;
	int log;
	char line[LINE_SIZE]; /* under way */
	size_t length;
	char last[LINE_SIZE]; /* the last whole one that had text */
	uint64_t collected;
	bool told;
};

static int fail(int error, char *why, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(int error, char *why, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(why, BENCH_WHY, format, ap);
	va_end(ap);
	return error;
}

/* --- What to run ---------------------------------------------------------------------------- */

/* To valgrind, /proc/self/exe is valgrind. */
static char *program(struct counting *c, char *name)
{
	ssize_t length;

	if (strcmp(name, "/proc/self/exe") != 0)
		return name;
	length = readlink(name, c->self, sizeof(c->self) - 1);
	if (length < 0)
		return name;
	c->self[length] = '\0';
	return c->self;
}

static int make_args(struct counting *c, char *const argv[])
{
	size_t n = 0;

	for (size_t i = 0; i < TOOL_ARGS; i++)
		c->args[n++] = (char *)(uintptr_t)tool[i];
	if (!argv[0])
		return -EINVAL;
	c->args[n++] = program(c, argv[0]);
	for (size_t i = 1; argv[i]; i++) {
		if (i == ARGS_MAX)
			return -E2BIG;
		c->args[n++] = argv[i];
	}
	return 0;
}

/* valgrind may ask servers for symbols, which nobody needs here. */
static bool is_wanted(const char *variable)
{
	static const char *const unwanted[] = { "DEBUGINFOD_URLS=", "LC_ALL=" };

	for (size_t i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]); i++)
		if (strncmp(variable, unwanted[i], strlen(unwanted[i])) == 0)
			return false;
	return true;
}

static int make_environment(struct counting *c)
{
	static char locale[] = "LC_ALL=C";
	size_t count = 0, n = 0;

	while (environ && environ[count])
		count++;
	c->environment = calloc(count + 2, sizeof(*c->environment));
	if (!c->environment)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (is_wanted(environ[i]))
			c->environment[n++] = environ[i];
	c->environment[n] = locale;
	return 0;
}

/* --- In the child: nothing that takes a lock, others may hold it --------------------------- */

static void quieten(void)
{
	const struct rlimit none = { 0, 0 };
	int null = open("/dev/null", O_RDWR);

	/* A program that crashes would leave vgcore.PID. */
	setrlimit(RLIMIT_CORE, &none);
	for (int fd = 0; null >= 0 && fd < LOG_FD; fd++)
		dup2(null, fd);
	if (null > LOG_FD)
		close(null);
}

/* exec says by the other pipe what was wrong; if it works, that pipe closes. */
static void become(const struct counting *c, int log, int report)
{
	sigset_t none;
	int error;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* Out of the way of the numbers that are given out here. */
	log = fcntl(log, F_DUPFD_CLOEXEC, 10);
	report = fcntl(report, F_DUPFD_CLOEXEC, 10);
	quieten();
	dup2(log, LOG_FD);
	execvpe(c->args[0], c->args, c->environment);
	error = errno;
	if (write(report, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

/* --- Around it ------------------------------------------------------------------------------ */

static void close_both(const int *fds)
{
	close(fds[0]);
	close(fds[1]);
}

/* What exec failed with, as a negative errno; 0 once it has worked. */
static int exec_error(int report)
{
	int error = 0;
	ssize_t got;

	do {
		got = read(report, &error, sizeof(error));
	} while (got < 0 && errno == EINTR);
	return got == (ssize_t)sizeof(error) ? -error : 0;
}

static int start_child(struct counting *c, const int *log, const int *report)
{
	int error;

	c->child = fork();
	if (c->child < 0)
		return -errno;
	if (c->child == 0)
		become(c, log[1], report[1]);
	setpgid(c->child, c->child);
	close(report[1]);
	error = exec_error(report[0]);
	close(report[0]);
	close(log[1]);
	c->log = log[0];
	return error;
}

static int start(struct counting *c)
{
	int log[2], report[2];
	int ret;

	if (pipe2(log, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(report, O_CLOEXEC) < 0) {
		ret = -errno;
		close_both(log);
		return ret;
	}
	ret = start_child(c, log, report);
	if (c->child < 0) {
		close_both(log);
		close_both(report);
	}
	return ret;
}

/* Its number is taken until it is waited for: nobody else can be hit. */
static int end(const struct counting *c)
{
	int status = 0;

	kill(-c->child, SIGKILL);
	kill(c->child, SIGKILL);
	while (waitpid(c->child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* --- The log -------------------------------------------------------------------------------- */

/* "==PID== Collected : 12345": of the program itself, not of a child of its. */
static void take_line(struct counting *c)
{
	long pid;
	unsigned long long number;
	int at = 0;

	c->line[c->length] = '\0';
	c->length = 0;
	if (sscanf(c->line, "==%ld== Collected : %llu", &pid, &number) == 2 && pid == c->child) {
		c->collected = number;
		c->told = true;
	}
	if (sscanf(c->line, "==%*d==%n", &at) >= 0 && at > 0)
		memmove(c->line, c->line + at, strlen(c->line + at) + 1);
	if (c->line[strspn(c->line, " ")])
		snprintf(c->last, sizeof(c->last), "%s", c->line + strspn(c->line, " "));
}

static void take(struct counting *c, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\n')
			take_line(c);
		else if (c->length < sizeof(c->line) - 1)
			c->line[c->length++] = text[i];
	}
}

/* Read what there is for so long at most. 1: the log goes on; 0: it is at its end. */
static int read_log(struct counting *c, int milliseconds)
{
	struct pollfd ready = { .fd = c->log, .events = POLLIN };
	char text[1024];
	ssize_t got;
	int ret = poll(&ready, 1, milliseconds);

	if (ret <= 0)
		return ret < 0 ? -errno : 1;
	got = read(c->log, text, sizeof(text));
	if (got < 0)
		return -errno;
	take(c, text, (size_t)got);
	return got > 0;
}

/* Left unwaited-for: see end(). */
static bool has_ended(const struct counting *c)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)c->child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == c->child;
}

/* Something that the program started may hold the log open for longer than it lives. */
static int drain(struct counting *c)
{
	const struct pollfd log = { .fd = c->log, .events = POLLIN };
	struct pollfd ready = log;
	int ret = 1;

	while (ret > 0 && poll(&ready, 1, 0) > 0) {
		ret = read_log(c, 0);
		ready = log;
	}
	return ret < 0 ? ret : 0;
}

static int follow(struct counting *c, double seconds)
{
	const double deadline = seconds_now() + seconds;
	int ret = 1;

	while (!has_ended(c)) {
		if (seconds_now() > deadline)
			return -ETIMEDOUT;
		if (ret > 0)
			ret = read_log(c, SLICE_MS);
		else
			poll(NULL, 0, SLICE_MS); /* it closed its log, and lives on */
		if (ret < 0)
			return ret;
	}
	return drain(c);
}

/* --- All of it ------------------------------------------------------------------------------ */

static int judge(const struct counting *c, int status, uint64_t *instructions, char *why)
{
	if (WIFSIGNALED(status))
		return fail(-ECHILD, why, "callgrind: the program was ended by signal %d",
			    WTERMSIG(status));
	if (WEXITSTATUS(status) == 127 && !c->last[0])
		return fail(-ECHILD, why, "valgrind cannot run %.80s", c->args[TOOL_ARGS]);
	if (WEXITSTATUS(status) != 0)
		return fail(-ECHILD, why, "callgrind: exit status %d: %.80s", WEXITSTATUS(status),
			    c->last);
	if (!c->told)
		return fail(-EPROTO, why, "callgrind told no count: %.80s", c->last);
	*instructions = c->collected;
	return 0;
}

static int run(struct counting *c, double seconds, uint64_t *instructions, char *why)
{
	int ret = start(c), status;

	if (c->child < 0)
		return fail(ret, why, "cannot start valgrind: %s", strerror(-ret));
	if (ret == 0)
		ret = follow(c, seconds);
	else
		fail(ret, why, "no valgrind here (Debian: valgrind): %s", strerror(-ret));
	status = end(c);
	close(c->log);
	if (ret == 0)
		return judge(c, status, instructions, why);
	if (ret == -ETIMEDOUT)
		fail(ret, why, "callgrind was not done after %g s", seconds);
	else if (!why[0])
		fail(ret, why, "callgrind: %s", strerror(-ret));
	return ret;
}

int count_instructions_within(char *const argv[], double seconds, uint64_t *instructions, char *why)
{
	struct counting *c = calloc(1, sizeof(*c));
	int ret;

	why[0] = '\0';
	if (!c)
		return fail(-ENOMEM, why, "out of memory");
	c->child = -1;
	ret = make_args(c, argv);
	if (ret == 0)
		ret = make_environment(c);
	if (ret == 0)
		ret = run(c, seconds, instructions, why);
	else
		fail(ret, why, "callgrind: %s", strerror(-ret));
	free(c->environment);
	free(c);
	return ret;
}

int count_instructions(char *const argv[], uint64_t *instructions, char *why)
{
	return count_instructions_within(argv, COUNT_SECONDS, instructions, why);
}
