/* SPDX-License-Identifier: MIT */
/*
 * The clients of the control socket: several at once, none of which another waits for.
 *
 * A request is one line, the answer a first line, then data. A client has two seconds for its
 * request, and two more whenever it has taken some of the answer. Where all places are taken, a new
 * client gets that of the one whose time is over first. Memory
 * is asked for only where counts by name are.
 */
#ifndef PROBES_AGENT_CLIENTS_H
#define PROBES_AGENT_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "probes/agent/agent.h"

#define CLIENTS_ANSWER 256 /* that the first line of an answer fits into */

/*
 * clients_serve - does what a line asks for, and cuts it. Writes "ok N" or "error TEXT", with its
 * end of line, to @text, which has CLIENTS_ANSWER bytes, and which report is to follow: of
 * *named, which is freed then, or of all. The length.
 */
typedef size_t clients_serve(char *request, char *text, size_t size, enum report *report,
			     struct named **named);

/*
 * clients_wait - for @ms at most, until a client has something to do, which is done, or until
 * something is up at the listener: what, as poll(2) has it.
 */
short clients_wait(int listener, int ms, clients_serve *serve);

/* clients_add - one who has connected, and does not block. Closed at once unless it is the owner or
 * root. */
void clients_add(int fd, clients_serve *serve);

/* clients_end - none is served any more. */
void clients_end(void);

/* clients_forget - in a child: its parent serves them. */
void clients_forget(void);

#endif
