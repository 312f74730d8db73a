/* SPDX-License-Identifier: MIT */
/*
 * The control socket: one thread that answers "fastinst on", "off", "top" and "trace".
 *
 * It stands in a folder that only its owner may enter, has mode 0600, and serves only who the
 * kernel says is the owner or root. A request is one line, escaped (probes/text/text.h), the answer
 * a first line "ok N" or "error TEXT", then data. A client that says nothing for two seconds is
 * dropped; others wait meanwhile.
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
#include "probes/agent/trace.h"
#include "probes/include/fastinst.h"
#include "probes/include/fastinst/branch.h"
#include "probes/text/text.h"

#define PATIENCE 2 /* seconds */
#define REQUEST	 4096
#define LOOK_MS	 1000

static char socket_path[108];
static pid_t socket_owner;
static struct stat socket_file;
static atomic_bool serving; /* the thread counts as one of ours */

/* Not by stdio: at exit the main thread would flush what this one has not written yet. */
static void say(int fd, const char *text)
{
	send(fd, text, strlen(text), MSG_NOSIGNAL);
}

static void answer(int fd, long result)
{
	char text[128];

	if (result < 0)
		snprintf(text, sizeof(text), "error %s\n", strerror((int)-result));
	else
		snprintf(text, sizeof(text), "ok %ld\n", result);
	say(fd, text);
}

/* FOLDER PATTERN */
static long trace(char *rest)
{
	const char *folder = strsep(&rest, " ");
	int ret = rest ? trace_start(folder) : -EINVAL;

	return ret < 0 ? ret : agent_change(rest, true);
}

/* Static branches: they are no probes. */
static long change_branches(const char *pattern, bool on)
{
	int ret = on ? fi_scan() : 0;

	if (ret < 0)
		return ret;
	return on ? fi_branch_on(pattern) : fi_branch_off(pattern);
}

static long take_entries(const char *objects)
{
	int ret = fi_take_entries(objects);

	return ret < 0 ? ret : fi_scan();
}

static void serve(int fd, char *request)
{
	char *rest = request;
	const char *word = strsep(&rest, " ");

	if (!strcmp(word, "counts")) {
		answer(fd, (long)fi_probes());
		report_lines(fd, true);
	} else if (rest && !strcmp(word, "trace")) {
		answer(fd, trace(rest));
	} else if (rest && !strcmp(word, "untrace")) {
		trace_start(NULL);
		answer(fd, agent_change(rest, false));
	} else if (rest && (!strcmp(word, "on") || !strcmp(word, "off"))) {
		answer(fd, agent_change(rest, !strcmp(word, "on")));
	} else if (rest && !strcmp(word, "entries")) {
		answer(fd, take_entries(rest));
	} else if (rest && (!strcmp(word, "branch-on") || !strcmp(word, "branch-off"))) {
		answer(fd, change_branches(rest, !strcmp(word, "branch-on")));
	} else {
		say(fd, "error no such request\n");
	}
}

static bool may(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) &&
	       (peer.uid == geteuid() || peer.uid == 0);
}

/* One line, or nothing. */
static bool read_request(int fd, char *request, size_t size)
{
	size_t used = 0;

	while (used < size - 1) {
		ssize_t n = recv(fd, request + used, size - 1 - used, 0);
		char *end;

		if (n <= 0)
			return false;
		used += (size_t)n;
		request[used] = '\0';
		end = strchr(request, '\n');
		if (end) {
			*end = '\0';
			text_unescape(request);
			return true;
		}
	}
	return false;
}

static void client(int fd)
{
	const struct timeval patience = { .tv_sec = PATIENCE };
	char request[REQUEST];

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (may(fd) && read_request(fd, request, sizeof(request)))
		serve(fd, request);
	close(fd);
}

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
	int listener = (int)(intptr_t)data;
	int fd;

	fi_own_thread(1);
	atomic_store_explicit(&serving, true, memory_order_relaxed);
	while (!agent_alone() && is_listener(listener)) {
		struct pollfd call = { .fd = listener, .events = POLLIN };

		if (poll(&call, 1, LOOK_MS) <= 0)
			continue;
		if (!(call.revents & POLLIN) || !is_listener(listener))
			break;
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			client(fd);
		else if (errno != EINTR && errno != ECONNABORTED && errno != EAGAIN)
			break;
	}
	serve_no_more();
	return NULL;
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

static void leave(void)
{
	if (socket_owner == getpid())
		unlink(socket_path);
}

/* With all signals blocked but the one of patches. */
static int start_thread(int listener)
{
	sigset_t all, before;
	pthread_t thread;
	int ret;

	sigfillset(&all);
	sigdelset(&all, SIGTRAP);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&thread, NULL, control, (void *)(intptr_t)listener);
	if (!ret)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -ret;
}

/* The thread is not in the child, and the socket is the parent's. */
static void forked(void)
{
	socket_owner = 0;
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

int control_start(const char *folder)
{
	int ret = find_path(folder);
	int listener = ret < 0 ? ret : listen_at(socket_path);

	if (listener >= 0)
		ret = fstat(listener, &socket_file) < 0 ? -errno : start_thread(listener);
	else
		ret = listener;
	if (ret < 0)
		return ret;
	socket_owner = getpid();
	pthread_atfork(NULL, NULL, forked);
	atexit(leave);
	return 0;
}
