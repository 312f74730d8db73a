/* SPDX-License-Identifier: MIT */
/*
 * A program in a child process of its own: run to its end, or spoken to by lines.
 *
 * A request is one line on its standard input. The answer is lines of numbers on its standard
 * output, of digits with at most one dot, a blank apart, ended by a line of one dot; or one
 * line "error TEXT", after which it goes on. Anything else that it says is a fault, and so are its
 * death and an answer that takes too long: then it is killed, with its whole group, and every
 * later request fails for the same reason. It is killed if the caller's thread ends, too.
 * What it writes to its standard error is kept, and a line of that is the reason.
 *
 * No shell is involved. Programs are looked for in PATH. They run with LC_ALL=C.
 */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

#define PROCESS_WHY	160	/* bytes of a reason, at most */
#define PROCESS_LINE	1024	/* bytes of an answer's line, at most */
#define PROCESS_NUMBERS 4000000 /* of an answer, at most */

struct process;

struct process_reply {
	double *value; /* owned */
	size_t count;
};

/*
 * process_start - @argv: ends with NULL. @stop: when it is set, requests fail with -EINTR; may
 * be NULL. 0; -ENOENT: there is no such program; another negative errno. All functions that
 * fail say why, in PROCESS_WHY bytes of printable ASCII.
 */
int process_start(struct process **process, const char *const argv[],
		  const volatile sig_atomic_t *stop, char *why);

/*
 * process_ask - send a request, and wait for the answer so many seconds. NULL: only listen.
 *
 * -EREMOTEIO: it answered "error"; -EPROTO: that is no answer; -EPIPE: it ended; -ETIMEDOUT;
 * -EINTR; -ENOMEM. process_reply_free - also after an error.
 */
int process_ask(struct process *process, const char *request, double seconds,
		struct process_reply *reply, char *why);
void process_reply_free(struct process_reply *reply);

pid_t process_pid(const struct process *process);

/* process_end - close its input, and kill it if that is no hint in half a second. NULL is fine. */
void process_end(struct process *process);

/*
 * process_run - a program that does its work and ends, such as a compiler. 0, or as above;
 * -EIO: it failed, and the first line that it said is why.
 */
int process_run(const char *const argv[], double seconds, const volatile sig_atomic_t *stop,
		char *why);

#endif
