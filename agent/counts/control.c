/* SPDX-License-Identifier: MIT */
/*
 * The control socket: one thread that answers "fastinst on", "off", "top" and "trace".
 *
 * It stands in a folder that only its owner may enter, and has mode 0600. Several clients are
 * served at once, none of which another waits for. A request is one line, the answer a first line,
 * then data. A client has two seconds for its request, and two more whenever it has taken some of
 * the answer. Where all places are taken, a new client gets that of the one whose time is over
 * first. Memory is asked for only where counts by name are.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/counts/agent.h"
#include "agent/counts/base.h"
#include "agent/counts/control.h"
#include "base/clock.h"
#include "base/text.h"
#include "probes/include/fastinst.h"
#include "probes/include/fastinst/branch.h"

#define LOOK	 1.0 /* seconds */
#define CLIENTS	 16
#define PATIENCE 2.0 /* seconds */
#define REQUEST	 4096
#define TEXT	 65536 /* the longest line of a report */

struct own_socket {
	int fd;
	struct stat file;
};

struct client {
	struct own_socket socket;
	double deadline; /* 0: no client is here */
	bool answering;
	enum report_kind report; /* follows the first line of the answer */
	struct named *named;
	uint32_t next; /* probe whose count follows */
	size_t used;   /* of the text */
	size_t sent;
	char text[TEXT]; /* the request, then a part of the answer */
};

static char socket_path[SOCKET_PATH];
static _Atomic pid_t socket_owner; /* 0: the thread is to end */
static bool attached;		   /* to a process that ran */
static bool reports;		   /* at its end, though it was attached */
static pthread_t server;
static struct own_socket listener;
static struct client clients[CLIENTS]; /* of the thread; in a child as they were */
static void (*each_second)(void);

/* --- Requests --------------------------------------------------------------------------------- */

static long change_each(const char *patterns, bool on)
{
	char *rest = (char *)patterns;
	long ret = 0, sum = 0;

	while (rest && ret >= 0) {
		ret = agent_change(text_word(&rest), on, 0);
		sum += ret;
	}
	return ret < 0 ? ret : sum;
}

static long serve_on(const char *pattern)
{
	return agent_change(pattern, true, 0);
}

static long serve_off(const char *pattern)
{
	return agent_change(pattern, false, 0);
}

/* FOLDER PATTERN... */
static long serve_trace(const char *text)
{
	char *rest = (char *)text;
	const char *folder = strsep(&rest, " ");
	int ret = rest ? trace_start(folder) : -EINVAL;

	return ret < 0 ? ret : change_each(rest, true);
}

static long serve_untrace(const char *patterns)
{
	trace_start(NULL);
	return change_each(patterns, false);
}

static long serve_entries(const char *objects)
{
	int ret = fi_take_entries(objects);

	return ret < 0 ? ret : fi_scan();
}

static long serve_writable(const char *on)
{
	return fi_keep_writable(!strcmp(on, "on"));
}

/* A program that is not ended by a signal leaves its counts in that folder. */
static long serve_report(const char *folder)
{
	if (attached)
		report_begin(folder, NULL, 0);
	reports = attached;
	return 0;
}

/* How many it was done to, or a negative errno; -ENOMSG: no such request. */
static long serve_request(const char *word, const char *rest, struct client *client)
{
	static const struct {
		const char *word;
		long (*serve)(const char *rest);
		bool scans; /* static branches are no probes: new objects are looked for before */
	} requests[] = {
		{ "on", serve_on, false },
		{ "off", serve_off, false },
		{ "reset", report_reset, false },
		{ "report", serve_report, false },
		{ "trace", serve_trace, false },
		{ "untrace", serve_untrace, false },
		{ "entries", serve_entries, false },
		{ "writable", serve_writable, false },
		{ "branch-on", fi_branch_on, true },
		{ "branch-off", fi_branch_off, true },
		{ "branch-veto", fi_branch_veto, true },
		{ "branch-allow", fi_branch_allow, true },
	};
	int ret;

	client->report = 0;
	if (!strcmp(word, "counts") || !strcmp(word, "names")) {
		client->named = rest ? agent_named(rest, 0) : NULL;
		if (rest && !client->named)
			return -errno;
		client->report = *word == 'c' ? REPORT_ON : REPORT_ALL;
		return fi_probes();
	}
	for (size_t i = 0; rest && i < sizeof(requests) / sizeof(*requests); i++)
		if (!strcmp(word, requests[i].word)) {
			ret = requests[i].scans ? fi_scan() : 0;
			return ret < 0 ? ret : requests[i].serve(rest);
		}
	return -ENOMSG;
}

/* --- Clients ---------------------------------------------------------------------------------- */

/* A program that closes what it does not know may have the number for a file of its own by now. */
static bool is_open(const struct own_socket *socket)
{
	struct stat now;

	return !fstat(socket->fd, &now) && now.st_dev == socket->file.st_dev &&
	       now.st_ino == socket->file.st_ino;
}

/* shutdown(): a child may have a copy of the descriptor. */
static void drop_client(struct client *client)
{
	client->deadline = 0;
	free(client->named);
	client->named = NULL;
	if (!is_open(&client->socket))
		return;
	shutdown(client->socket.fd, SHUT_RDWR);
	close(client->socket.fd);
}

/* Sends as much as the client takes now. */
static void send_answer(struct client *client)
{
	ssize_t n = 0;

	while (n >= 0) {
		if (client->sent == client->used) {
			client->sent = client->used = 0;
			if (client->report)
				client->used =
					report_fill(&client->next, client->named, client->text,
						    sizeof(client->text), client->report);
			if (!client->used)
				break;
		}
		n = send(client->socket.fd, client->text + client->sent,
			 client->used - client->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			return;
		client->sent += n > 0 ? (size_t)n : 0;
		client->deadline = seconds_now() + PATIENCE;
	}
	drop_client(client);
}

static void answer_request(struct client *client)
{
	char request[REQUEST], *rest = strcpy(request, client->text);
	const char *word = strsep(&rest, " ");
	long result = serve_request(word, rest, client);
	int len;

	if (result < 0)
		len = snprintf(client->text, TEXT, "error %s\n",
			       result == -ENOMSG ? "the agent knows no such request; it is of "
						   "another version of fastinst"
						 : explain_error((int)result));
	else
		len = snprintf(client->text, TEXT, "ok %ld\n", result);
	client->used = (size_t)len;
	client->answering = true;
	client->deadline = seconds_now() + PATIENCE;
	send_answer(client);
}

/* A request without an end of line gets no answer. */
static void read_request(struct client *client)
{
	char *to = client->text + client->used, *end;
	ssize_t n = recv(client->socket.fd, to, REQUEST - client->used, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	end = n > 0 ? memchr(to, '\n', (size_t)n) : NULL;
	client->used += n > 0 ? (size_t)n : 0;
	if (end) {
		*end = '\0';
		text_unescape(client->text);
		answer_request(client);
	} else if (n <= 0 || client->used == REQUEST) {
		drop_client(client);
	}
}

/* A free place, or the one of the client whose time is over first. */
static struct client *find_place(void)
{
	struct client *first = clients;

	for (struct client *client = clients; client < clients + CLIENTS; client++)
		if (client->deadline < first->deadline)
			first = client;
	if (first->deadline > 0)
		drop_client(first);
	return first;
}

/* Only the owner and root are served. */
static void add_client(int fd)
{
	socklen_t len = sizeof(struct ucred);
	struct client *client;
	struct ucred peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) ||
	    (peer.uid != geteuid() && peer.uid != 0)) {
		close(fd);
		return;
	}
	client = find_place();
	client->socket.fd = fd;
	client->answering = false;
	client->used = client->sent = client->next = 0;
	if (fstat(fd, &client->socket.file) < 0) {
		close(fd);
		return;
	}
	client->deadline = seconds_now() + PATIENCE;
	/* A request that is there is served before others can take the place. */
	read_request(client);
}

/* --- The thread ------------------------------------------------------------------------------- */

/*
 * Waits for a moment, and serves the clients that are ready. Returns the listener's events as
 * poll(2) has them.
 */
static short wait_for_clients(void)
{
	struct pollfd call[CLIENTS + 1] = { { .fd = listener.fd, .events = POLLIN } };
	struct client *who[CLIENTS + 1];
	double time = seconds_now(), until = time + LOOK;
	nfds_t n = 1;

	/* Only sockets that are open: RLIMIT_NOFILE bounds how many poll() takes. */
	for (struct client *client = clients; client < clients + CLIENTS; client++) {
		if (client->deadline <= 0)
			continue;
		call[n].fd = client->socket.fd;
		call[n].events = client->answering ? POLLOUT : POLLIN;
		who[n++] = client;
		if (client->deadline < until)
			until = client->deadline;
	}
	if (poll(call, n, until > time ? (int)((until - time) * 1e3) + 1 : 0) < 0)
		return errno == EINTR ? 0 : POLLERR;
	time = seconds_now();
	for (nfds_t i = 1; i < n; i++)
		if (call[i].revents && !is_open(&who[i]->socket))
			who[i]->deadline = 0;
		else if (call[i].revents && who[i]->answering)
			send_answer(who[i]);
		else if (call[i].revents)
			read_request(who[i]);
		else if (who[i]->deadline <= time)
			drop_client(who[i]);
	return call[0].revents;
}

static void *run_control(void *data)
{
	int fd;

	fi_own_thread(1);
	while (socket_owner && !is_program_over() && is_open(&listener)) {
		short events = wait_for_clients();

		if (each_second)
			each_second();
		if (!events)
			continue;
		if (!(events & POLLIN) || !is_open(&listener))
			break;
		fd = accept4(listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			add_client(fd);
		else if (errno != EINTR && errno != ECONNABORTED && errno != EAGAIN)
			break;
	}
	for (struct client *client = clients; client < clients + CLIENTS; client++)
		if (client->deadline > 0)
			drop_client(client);
	fi_own_thread(-1);
	return data;
}

/*
 * A socket gets its name when it listens: one that does not is taken for a dead process's, and
 * removed.
 */
static int listen_at(const char *path)
{
	char name[SOCKET_PATH];
	int fd, ret;

	/* PID.new instead of PID.sock */
	snprintf(name, sizeof(name), "%.*snew", (int)(strlen(path) - strlen("sock")), path);
	unlink(name);
	/* A client that has gone meanwhile is not waited for. */
	fd = socket_listen(name, 16);
	if (fd < 0)
		return fd;
	if (!chmod(name, 0600) && !rename(name, path))
		return fd;
	ret = -errno;
	unlink(name);
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

/* In a child: it has no such thread, and the sockets are the parent's. */
static void forget_socket(void)
{
	socket_owner = 0;
	for (struct client *client = clients; client < clients + CLIENTS; client++) {
		if (client->deadline > 0 && is_open(&client->socket))
			close(client->socket.fd);
		client->deadline = 0;
	}
}

int control_start(const char *folder, void (*look)(void))
{
	/* "fastinst attach" names the folder that its user's commands look in. */
	int ret = control_path(folder, getpid(), true, socket_path, sizeof(socket_path));

	attached = folder;
	each_second = look;
	listener.fd = ret < 0 ? ret : listen_at(socket_path);
	if (listener.fd < 0)
		return listener.fd;
	socket_owner = getpid();
	ret = fstat(listener.fd, &listener.file) < 0 ? -errno
						     : start_own_thread(&server, run_control, NULL);
	if (ret < 0)
		return ret;
	pthread_atfork(NULL, NULL, forget_socket);
	atexit(leave_socket);
	return 0;
}

/* shutdown() wakes the thread. */
void control_stop(void)
{
	if (socket_owner != getpid())
		return;
	reports = false;
	leave_socket();
	socket_owner = 0;
	if (is_open(&listener))
		shutdown(listener.fd, SHUT_RDWR);
	pthread_join(server, NULL);
	if (is_open(&listener))
		close(listener.fd);
}
