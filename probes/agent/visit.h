/* SPDX-License-Identifier: MIT */
/*
 * What an agent that was put into a process that runs is told: lines of one text. It runs in a
 * thread that is gone afterwards.
 */
#ifndef PROBES_AGENT_VISIT_H
#define PROBES_AGENT_VISIT_H

#include <stdbool.h>

#define VISIT_LINES 6

/*
 * "fastinst detach" says the first to fastinst_attached(), which answers with the size of stubs and
 * where they are, as hexadecimal numbers; or returns DETACH_BESIDE, and nothing is unloaded. Where
 * no thread is in that code, it says the second.
 */
#define DETACH_CLOSE  "detach"
#define DETACH_UNLOAD "unload"
#define DETACH_BESIDE 1

struct visit {
	char copy[2048];
	char *line[VISIT_LINES]; /* "" where there are fewer */
};

/*
 * visit_abandoned - the command that has made the folder, and holds it locked, is gone: it was
 * killed, and what it has started goes on.
 */
bool visit_abandoned(const char *folder);

/* visit_begin - cuts the text, whose lines are escaped (probes/text/text.h), and lets this thread
 * run patches. False: it is too long. */
bool visit_begin(struct visit *visit, const char *text);

#endif
