/* SPDX-License-Identifier: MIT */
/*
 * The variables of all threads of a process, in files that the process and a command share: a slot
 * for each thread, with a value for each variable. Only its thread writes to a slot, so counts are
 * exact, and a process that is killed leaves them.
 *
 * A file has VALUES_SLOTS slots; where they are taken, the process makes another file. A child of
 * fork() begins its own. A thread that ends leaves its slot to nobody.
 */
#ifndef METRICS_AGENT_VALUES_H
#define METRICS_AGENT_VALUES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "metrics/language/code.h"

#define VALUES_MAGIC UINT64_C(0x31736575746c6176)
#define VALUES_SLOTS 1024
#define VALUES_MAX   1024 /* variables */

struct values_slot {
	_Atomic uint32_t tid;	    /* 0: no thread has it */
	char name[20];		    /* of the thread, at its first event */
	_Atomic uint64_t was_alive; /* when the process ended, and a timer of its ran */
	struct mdl_value value[];
};

struct values_file {
	_Atomic uint64_t magic; /* written last */
	uint32_t pid;
	uint32_t values; /* in a slot */
	_Atomic uint32_t taken;
	uint32_t unused;
	_Atomic int64_t ended; /* by CLOCK_MONOTONIC, in ns; 0: it has not, or a signal did it */
	_Atomic int64_t ended_cpu; /* what CPU time the process had then, in ns */
	uint64_t previous;	   /* where the process has the file before it */
	uint64_t unused_too[2];
	/* then VALUES_SLOTS slots */
};

static inline size_t values_slot_size(size_t values)
{
	return sizeof(struct values_slot) + values * sizeof(struct mdl_value);
}

static inline size_t values_file_size(size_t values)
{
	return sizeof(struct values_file) + VALUES_SLOTS * values_slot_size(values);
}

static inline struct values_slot *values_slot_at(struct values_file *file, uint32_t values,
						 uint32_t slot)
{
	return (struct values_slot *)((char *)(file + 1) + slot * values_slot_size(values));
}

/* --- In the program --------------------------------------------------------------------------- */

/* values_start - so many variables, in files of that folder, which stays. 0 or a negative errno. */
int values_start(const char *folder, uint32_t values);

/*
 * values_own - those of the calling thread. NULL: there is no memory for them, and the event is
 * missed. Changes no vector register; async-signal-safe. values_missed - how many were.
 */
struct mdl_value *values_own(void);
uint64_t values_missed(void);

/*
 * values_end - the process ends now, or, with false, goes on: timers that run are known to have run
 * until then, of threads that are there.
 */
void values_end(bool ends);

/* --- In the command --------------------------------------------------------------------------- */

/* A thread's value, as it was at one moment. */
struct value_copy {
	int64_t value, start, depth;
};

/*
 * value_read - waits for nobody: 0, or -EAGAIN, if its thread was stopped while it changed it: each
 * of the three is then what it was before, or after.
 */
int value_read(const struct mdl_value *from, struct value_copy *copy);

/*
 * values_read - give the slot of each thread of each process that has files in a folder to a
 * function. Files that are not what they should be are passed over. 0 or a negative errno.
 */
typedef void values_found(const struct values_slot *slot, const struct values_file *file,
			  void *data);
int values_read(const char *folder, uint32_t values, values_found *found, void *data);

#endif
