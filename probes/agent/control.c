/* SPDX-License-Identifier: MIT */
/*
 * The control socket: one thread that answers "fastinst on", "off", "top" and "trace".
 *
 * It stands in a folder that only its owner may enter, and has mode 0600. Whom it serves is in
 * clients.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "probes/agent/agent.h"
#include "probes/agent/alone.h"
#include "probes/agent/control.h"
#include "probes/agent/quiet.h"
#include "probes/include/fastinst.h"
#include "probes/include/fastinst/branch.h"
#include "probes/text/text.h"

#define LOOK_MS 1000

static char socket_path[108];
static _Atomic pid_t socket_owner; /* 0: the thread is to end */
static struct stat socket_file;
static bool attached; /* to a process that ran */
static bool reports;  /* at its end, though it was attached */
static pthread_t server;
static int listener = -1;
static atomic_bool serving; /* the thread counts as one of ours */
static void (*each_second)(void);

/* --- Requests --------------------------------------------------------------------------------- */

static long change_all(char *patterns, bool on)
{
	long ret = 0, sum = 0;

	while (patterns && ret >= 0) {
		ret = agent_change(text_word(&patterns), on, 0);
		sum += ret;
	}
	return ret < 0 ? ret : sum;
}

/* FOLDER PATTERN... */
static long trace_request(char *rest)
{
	const char *folder = strsep(&rest, " ");
	int ret = rest ? trace_start(folder) : -EINVAL;

	return ret < 0 ? ret : change_all(rest, true);
}

static long untrace(char *patterns)
{
	trace_start(NULL);
	return change_all(patterns, false);
}

/* Static branches: they are no probes. */
static long change_branches(const char *word, const char *pattern)
{
	static const struct {
		const char *word;
		long (*change)(const char *pattern);
	} changes[] = {
		{ "branch-on", fi_branch_on },
		{ "branch-off", fi_branch_off },
		{ "branch-veto", fi_branch_veto },
		{ "branch-allow", fi_branch_allow },
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++)
		if (!strcmp(word, changes[i].word)) {
			int ret = fi_scan();

			return ret < 0 ? ret : changes[i].change(pattern);
		}
	return -ENOMSG;
}

static long take_entries(const char *objects)
{
	int ret = fi_take_entries(objects);

	return ret < 0 ? ret : fi_scan();
}

/* A program that is not ended by a signal leaves its counts in that folder. */
static long report_to(const char *folder)
{
	if (attached)
		report_begin(folder, NULL, 0);
	reports = attached;
	return 0;
}

/* How many it was done to, or a negative errno; -ENOMSG: no such request. */
static long serve_client(const char *word, char *rest, struct named **named)
{
	if (!strcmp(word, "counts") || !strcmp(word, "names")) {
		*named = rest ? agent_named(rest, 0) : NULL;
		return rest && !*named ? -errno : (long)fi_probes();
	}
	if (!rest)
		return -ENOMSG;
	if (!strcmp(word, "reset"))
		return report_reset(rest);
	if (!strcmp(word, "report"))
		return report_to(rest);
	if (!strcmp(word, "trace"))
		return trace_request(rest);
	if (!strcmp(word, "untrace"))
		return untrace(rest);
	if (!strcmp(word, "on") || !strcmp(word, "off"))
		return agent_change(rest, !strcmp(word, "on"), 0);
	if (!strcmp(word, "entries"))
		return take_entries(rest);
	return change_branches(word, rest);
}

/* As clients_serve has it. */
static size_t request_serve(char *request, char *text, size_t size, enum report *report,
			    struct named **named)
{
	char *rest = request;
	const char *word = strsep(&rest, " ");
	long result = serve_client(word, rest, named);
	int len;

	*report = result < 0		    ? 0
		  : !strcmp(word, "counts") ? REPORT_ON
		  : !strcmp(word, "names")  ? REPORT_ALL
					    : 0;
	if (result == -ENOMSG)
		len = snprintf(text, size,
			       "error the agent knows no such request; it is of another version of "
			       "fastinst\n");
	else if (result < 0)
		len = snprintf(text, size, "error %s\n", error_cause((int)result));
	else
		len = snprintf(text, size, "ok %ld\n", result);
	return (size_t)len;
}

/* --- The socket ------------------------------------------------------------------------------- */

/* Once in each process: its thread ends, or is not in a child. */
static void serve_no_more(void)
{
	if (atomic_exchange_explicit(&serving, false, memory_order_relaxed))
		fi_own_thread(-1);
}

/*
 * Daemons close all that they do not know, and the number may then be that of a socket of the
 * program's own.
 */
static bool is_listener(int fd)
{
	struct stat now;

	return !fstat(fd, &now) && now.st_dev == socket_file.st_dev &&
	       now.st_ino == socket_file.st_ino;
}

static void *control(void *data)
{
	int fd;

	fi_own_thread(1);
	atomic_store_explicit(&serving, true, memory_order_relaxed);
	while (socket_owner && !agent_alone() && is_listener(listener)) {
		short events = clients_wait(listener, LOOK_MS, request_serve);

		if (each_second)
			each_second();
		if (!events)
			continue;
		if (!(events & POLLIN) || !is_listener(listener))
			break;
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			clients_add(fd, request_serve);
		else if (errno != EINTR && errno != ECONNABORTED && errno != EAGAIN)
			break;
	}
	clients_end();
	serve_no_more();
	return data;
}

/* It gets its name when it listens: one that does not is taken for a dead process's, and removed.
 */
static int listen_at(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, ret = 0;

	/* PID.new instead of PID.sock */
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%.*snew",
		 (int)(strlen(path) - strlen("sock")), path);
	/* A client that has gone meanwhile is not waited for. */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	unlink(addr.sun_path);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    chmod(addr.sun_path, 0600) < 0 || listen(fd, 16) < 0 || rename(addr.sun_path, path) < 0)
		ret = -errno;
	if (!ret)
		return fd;
	unlink(addr.sun_path);
	close(fd);
	return ret;
}

static void leave_socket(void)
{
	if (socket_owner != getpid())
		return;
	unlink(socket_path);
	if (reports)
		report_final();
}

/* With all signals blocked but the one of patches. */
static int start_thread(void)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	sigdelset(&all, SIGTRAP);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&server, NULL, control, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -ret;
}

/* The thread is not in the child, and the sockets are the parent's. */
static void forget_socket(void)
{
	socket_owner = 0;
	clients_forget();
	serve_no_more();
}

/* Another folder is named by who put the agent into this process. */
static int find_path(const char *folder)
{
	int ret;

	if (!folder)
		return control_path(getpid(), true, socket_path, sizeof(socket_path));
	ret = control_trusted(folder);
	return ret < 0 ? ret : control_socket(folder, getpid(), socket_path, sizeof(socket_path));
}

int control_start(const char *folder, void (*look)(void))
{
	int ret = find_path(folder);

	attached = folder;
	each_second = look;
	listener = ret < 0 ? ret : listen_at(socket_path);
	if (listener < 0)
		return listener;
	socket_owner = getpid();
	ret = fstat(listener, &socket_file) < 0 ? -errno : start_thread();
	if (ret < 0)
		return ret;
	pthread_atfork(NULL, NULL, forget_socket);
	atexit(leave_socket);
	return 0;
}

/* Its thread wakes up when it can no longer be connected to. */
void control_stop(void)
{
	if (socket_owner != getpid())
		return;
	reports = false;
	leave_socket();
	socket_owner = 0;
	if (is_listener(listener))
		shutdown(listener, SHUT_RDWR);
	pthread_join(server, NULL);
	if (is_listener(listener))
		close(listener);
}
