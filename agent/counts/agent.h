/* SPDX-License-Identifier: MIT */
/*
 * The agent: what "fastinst run" puts into a program by LD_PRELOAD, and "fastinst attach" into a
 * process.
 */
#ifndef AGENT_COUNTS_AGENT_H
#define AGENT_COUNTS_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Some of the probes, in the order of their ids. */
struct named {
	size_t n;
	uint32_t ids[];
};

/* agent_named - the probes of a pattern, from that id on, to be freed; NULL: errno tells why. */
struct named *agent_named(const char *pattern, uint32_t from);

/*
 * agent_change - turn the probes of a pattern on or off that have at least that id: how many there
 * are, or a negative errno.
 */
long agent_change(const char *pattern, bool on, uint32_t from);

/* agent_scan - after objects were loaded: finds their probes, turns on what FASTINST_ON names. */
void agent_scan(void);

/* Which probes a report has; 0: none. */
enum report_kind {
	REPORT_RUN = 1, /* probes that were run */
	REPORT_ON,	/* and probes that are on */
	REPORT_ALL,	/* and probes that can be turned on */
};

/*
 * report_fill - a line per probe: count, lost, kind, function, object. From place *next on;
 * *next is where to go on. As many as fit, or 0: there are no more.
 * @named: NULL, or which only
 */
size_t report_fill(uint32_t *next, const struct named *named, char *block, size_t size,
		   enum report_kind which);

/* report_reset - the probes of a pattern count from 0 again: how many, or a negative errno. */
long report_reset(const char *pattern);

/* A pattern of FASTINST_ON, and whether it has matched a probe. */
struct agent_pattern {
	const char *text;
	bool matched;
};

/*
 * report_begin - this process reports to that folder, of patterns too: lines of the kind "pattern",
 * and the count 0 or 1. NULL: to stderr, of probes only. report_forked - a child does.
 */
void report_begin(const char *folder, const struct agent_pattern *patterns, size_t n);
void report_forked(void);

/* report_final - once per process: a file named by its PID, or to stderr. Not in a child of
 * vfork().
 */
void report_final(void);

/* report_image - before another program is executed in place of this one, and report_back - it was
 * not. Only with FASTINST_OUTPUT. */
void report_image(void);
void report_back(void);

/*
 * control_start - the thread that "fastinst on|off|top" talk to. Its socket is in @folder, or where
 * control.h says. It calls look(), unless that is NULL, once a second. 0 or a negative errno.
 */
int control_start(const char *folder, void (*look)(void));
void control_stop(void);

/* --- Events: see agent/counts/ring.h --- */

/* trace_start - probes that are turned on later are traced, into that folder; NULL: no more. */
int trace_start(const char *folder);

/* trace_unload - where no thread writes events any more: no thread that ends comes back here. */
void trace_unload(void);

/* trace_wanted - whether a folder is known. */
bool trace_wanted(void);

/* trace_on - turn probes on as those of events. Where no command reads them any more, none. */
int trace_on(const uint32_t *ids, size_t n);

#endif
