/* SPDX-License-Identifier: MIT */
/* Traced programs: their probes, and the events in their rings, in order of time. */
#ifndef COMMANDS_FASTINST_TRACE_READ_H
#define COMMANDS_FASTINST_TRACE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/counts/ring.h"
#include "probes/dwarf/source.h"
#include "probes/include/fastinst.h"

/* A probe of a process that has turned it on. */
struct traced {
	uint32_t id;
	enum fi_kind kind;
	char *function;
	char *object;
	uint64_t addr; /* in the object's file */
	size_t pair;   /* the entry of the same function, or itself; SIZE_MAX: without exits */
	bool has_types;
	struct source_function types;
	uint64_t how; /* RING_HOW_* */
	uint64_t seen;
};

/* A function that a thread is in, and whose exits are seen. */
struct trace_frame {
	unsigned table;
	size_t pair;
	uint64_t since; /* as shown.time */
	unsigned tree;	/* which frame begins the call tree that is shown, or */
#define TRACE_NO_TREE UINT32_MAX
	bool is_shown; /* its entry is shown */
	char *pending; /* or kept as text until it is known how long the call takes */
};

struct shown {
	const struct traced *probe;
	const struct trace_event *event;
	uint64_t time; /* ns since the trace began */
	int pid, tid;
	unsigned depth;		    /* of functions that are entered and not left */
	unsigned left;		    /* functions that were shown, and are left by this exit */
	struct trace_frame *frames; /* those, the outermost first */
	struct trace_frame *frame;  /* of this entry or exit, behind those; NULL: none */
};

/* A process's probes, by id. */
struct traced_table {
	struct traced *probe;
	size_t n;
};

struct trace_to {
	void (*event)(struct shown *shown, void *arg);
	/* The last event of a thread has come; it has not left these functions. */
	void (*end)(struct trace_frame *frames, unsigned n, uint64_t time, void *arg);
	/* So many events of a thread were lost before its next one. */
	void (*lost)(uint64_t lost, int pid, int tid, uint64_t time, void *arg);
	void *arg;
};

struct trace_read {
	struct trace_to to;
	char folder[40];
	int listener;
	int first; /* the first process that connected; 0: none has */
	bool stopped;
	uint64_t start;
	uint64_t lost; /* events of all threads */
	struct traced_table *table;
	size_t tables;
	struct stream *streams;
};

/* trace_open - with a folder of its own, and the socket in it. NULL: errno tells why. */
struct trace_read *trace_open(const struct trace_to *to);

/* trace_poll - handles events and connections that have come; how many. */
size_t trace_poll(struct trace_read *trace);

/* trace_finish - ends all threads: no more events are read. */
void trace_finish(struct trace_read *trace);

/* trace_stop - tells the programs to write no more. */
void trace_stop(struct trace_read *trace);

void trace_close(struct trace_read *trace);

#endif
