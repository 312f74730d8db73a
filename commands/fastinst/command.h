/* SPDX-License-Identifier: MIT */
/*
 * The program fastinst: a function per command, each with argc and argv from its own name on. They
 * return the exit status.
 */
#ifndef COMMANDS_FASTINST_COMMAND_H
#define COMMANDS_FASTINST_COMMAND_H

#include "agent/launch/launch.h"
#include "base/spelling.h"
#include "commands/fastinst/counts.h"

int attach_command(int argc, char **argv);
int detach_command(int argc, char **argv);
int run_command(int argc, char **argv);
int on_command(int argc, char **argv);
int reset_command(int argc, char **argv);
int off_command(int argc, char **argv);
int top_command(int argc, char **argv);
int list_command(int argc, char **argv);
int trace_command(int argc, char **argv);

/*
 * control_ask - one request, as printf(3), to the agent of a process; its counts are added to
 * @counts, or how many probes it names is printed where that is NULL. The exit status, after a
 * complaint. control_listens - whether there is one.
 */
int control_ask(long pid, struct counts *counts, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
bool control_listens(long pid);

/* refuse_entries - STATUS_FAILED, after a complaint, where --entries can do nothing. */
int refuse_entries(void);

/* control_sweep - sockets of processes that are gone, and have not removed them, are removed. */
void control_sweep(void);

/* set_environment - sets FASTINST_* for the agent. */
void set_environment(const struct asked *asked);

/*
 * collect_counts - what processes of a program left, joined, and why_little(). Or a negative errno
 * after a complaint.
 */
int collect_counts(const struct launch *launch, const char *program, const struct asked *asked,
		   struct counts *counts, bool *unmatched);

/*
 * why_little - tells on stderr of patterns that matched no probe, with similar names, or why there
 * are no counts, or counts without names. Returns whether a pattern matched none.
 */
bool why_little(const char *program, const struct counts *counts, const struct asked *asked);

/* Names that a pattern without a match may mean: they contain it with a few errors. */
#define NEAR_NAMES 3

struct near {
	const char *pattern;
	char letter[SPELLING_LETTERS]; /* of its function */
	unsigned letters;
	struct near_name {
		char *text;
		size_t distance;
	} name[NEAR_NAMES]; /* the nearest first */
	size_t n;
};

/* near_begin - look for that pattern, which stays where it is. */
void near_begin(struct near *near, const char *pattern);

/* near_look - at the name of a function that has a probe. */
void near_look(struct near *near, const char *function);

/* near_tell - complain that nothing matches there, and of what is near. Frees all. */
void near_tell(struct near *near, const char *where);

#endif
