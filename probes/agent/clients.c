/* SPDX-License-Identifier: MIT */
/*
 * The clients of the control socket: several at once, none of which another waits for.
 *
 * A request is one line, the answer a first line, then data. A client has two seconds for its
 * request, and two more whenever it has taken some of the answer. Where all places are taken, a new
 * client gets that of the one whose time is over first. Memory
 * is asked for only where counts by name are.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "probes/agent/agent.h"
#include "probes/text/text.h"

#define CLIENTS	 16
#define PATIENCE 2000 /* ms */
#define REQUEST	 4096
#define TEXT	 65536 /* a line has at most */

struct client {
	bool taken;
	int fd;
	struct stat socket;
	int64_t deadline;
	bool answering;
	enum report report; /* that follows the first line */
	struct named *named;
	uint32_t next; /* probe whose count follows */
	size_t used;   /* of the text */
	size_t sent;
	char text[TEXT]; /* the request, then a part of the answer */
};

/* Of the thread; in a child as they were. */
static struct client clients[CLIENTS];

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * INT64_C(1000) + time.tv_nsec / 1000000;
}

/* A program that closes what it does not know may have the number for a file of its own by now. */
static bool is_ours(const struct client *client)
{
	struct stat stat;

	return !fstat(client->fd, &stat) && stat.st_dev == client->socket.st_dev &&
	       stat.st_ino == client->socket.st_ino;
}

/* Also where a child has a copy of it. */
static void drop(struct client *client)
{
	client->taken = false;
	free(client->named);
	client->named = NULL;
	if (!is_ours(client))
		return;
	shutdown(client->fd, SHUT_RDWR);
	close(client->fd);
}

/* --- Its answer ------------------------------------------------------------------------------- */

/* More of it, when all of the text is sent; false: that was all. */
static bool fill(struct client *client)
{
	client->sent = 0;
	client->used = client->report ? report_fill(&client->next, client->named, client->text,
						    sizeof(client->text), client->report)
				      : 0;
	return client->used > 0;
}

/* As much as it takes. */
static void send_answer(struct client *client)
{
	while (client->sent < client->used || fill(client)) {
		ssize_t n = send(client->fd, client->text + client->sent,
				 client->used - client->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			drop(client);
			return;
		}
		client->sent += (size_t)n;
		client->deadline = now() + PATIENCE;
	}
	drop(client);
}

/* --- Its request ------------------------------------------------------------------------------ */

static void answer(struct client *client, clients_serve *serve)
{
	char text[CLIENTS_ANSWER];

	client->used = serve(client->text, text, sizeof(text), &client->report, &client->named);
	memcpy(client->text, text, client->used);
	client->answering = true;
	client->deadline = now() + PATIENCE;
	send_answer(client);
}

/* Without a line that ends it gets no answer. */
static void read_request(struct client *client, clients_serve *serve)
{
	char *to = client->text + client->used, *end;
	ssize_t n = recv(client->fd, to, REQUEST - client->used, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	end = n > 0 ? memchr(to, '\n', (size_t)n) : NULL;
	client->used += n > 0 ? (size_t)n : 0;
	if (end) {
		*end = '\0';
		text_unescape(client->text);
		answer(client, serve);
	} else if (n <= 0 || client->used == REQUEST) {
		drop(client);
	}
}

static void go_on(struct client *client, clients_serve *serve)
{
	if (!is_ours(client))
		client->taken = false;
	else if (client->answering)
		send_answer(client);
	else
		read_request(client, serve);
}

/* --- All of them ------------------------------------------------------------------------------ */

short clients_wait(int listener, int ms, clients_serve *serve)
{
	struct pollfd call[CLIENTS + 1] = { { .fd = listener, .events = POLLIN } };
	struct client *who[CLIENTS + 1];
	int64_t time = now();
	nfds_t n = 1;

	/* No more than there are: RLIMIT_NOFILE bounds how many poll() takes. */
	for (struct client *client = clients; client < clients + CLIENTS; client++) {
		if (!client->taken)
			continue;
		call[n].fd = client->fd;
		call[n].events = client->answering ? POLLOUT : POLLIN;
		who[n++] = client;
		if (client->deadline - time < ms)
			ms = client->deadline > time ? (int)(client->deadline - time) : 0;
	}
	if (poll(call, n, ms) < 0)
		return errno == EINTR ? 0 : POLLERR;
	time = now();
	for (nfds_t i = 1; i < n; i++)
		if (call[i].revents)
			go_on(who[i], serve);
		else if (who[i]->deadline <= time)
			drop(who[i]);
	return call[0].revents;
}

static bool may(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) &&
	       (peer.uid == geteuid() || peer.uid == 0);
}

/* That of the client whose time is over first, where none is free. */
static struct client *find_place(void)
{
	struct client *first = clients;

	for (struct client *client = clients; client < clients + CLIENTS; client++) {
		if (!client->taken)
			return client;
		if (client->deadline < first->deadline)
			first = client;
	}
	drop(first);
	return first;
}

void clients_add(int fd, clients_serve *serve)
{
	struct client *client;

	if (!may(fd)) {
		close(fd);
		return;
	}
	client = find_place();
	client->fd = fd;
	client->deadline = now() + PATIENCE;
	client->answering = false;
	client->used = client->sent = client->next = 0;
	client->taken = !fstat(fd, &client->socket);
	/* Its request may be there: no flood of others takes the place from it. */
	if (client->taken)
		read_request(client, serve);
	else
		close(fd);
}

void clients_end(void)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		if (clients[i].taken)
			drop(&clients[i]);
}

void clients_forget(void)
{
	for (unsigned i = 0; i < CLIENTS; i++) {
		if (clients[i].taken && is_ours(&clients[i]))
			close(clients[i].fd);
		clients[i].taken = false;
	}
}
