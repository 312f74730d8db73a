/* SPDX-License-Identifier: MIT */
/*
 * The work of single provokers. Private to provoker*.c.
 */
#ifndef STRESS_PROVOKE_PROVOKER_WORK_H
#define STRESS_PROVOKE_PROVOKER_WORK_H

#include <hwloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A thread that works until it is told to quit. */
struct worker {
	void (*work)(struct worker *w); /* a little of it */
	size_t size;			/* of the memory that it wants */
	uint8_t *memory;
	size_t at;		/* of the memory, as far as the work has got */
	_Atomic(uint64_t) done; /* counted by the work */
	_Atomic(int) quit;
	pthread_t thread;
	bool runs;
};

/* worker_start - map memory of that size and work on that CPU. 0 or a negative errno. */
int worker_start(struct worker *w, hwloc_topology_t topology, unsigned cpu);
void worker_stop(struct worker *w);

/* The works. done counts changes, bytes, and rounds. */
void work_shootdown(struct worker *w);
void work_bandwidth(struct worker *w);
void work_sibling(struct worker *w);

#define SHOOTDOWN_SIZE 8192 /* a page whose protection changes, and one that is dropped */

/* bandwidth_size - a buffer that no cache holds. */
size_t bandwidth_size(hwloc_topology_t topology);

/*
 * load_start - a process that time-slices this CPU until it is killed, or the
 * calling thread ends. Its id, or a negative errno.
 */
pid_t load_start(hwloc_topology_t topology, unsigned cpu);
void load_stop(pid_t pid);

/* Lines that compete with the two of a site for a set of the second-level cache. */
#define EVICT_LINES 48 /* more than twice as many as any has ways */

struct evict {
	uint8_t *memory;
	const uint8_t *line[2][EVICT_LINES]; /* for the front, for the back */
	unsigned lines[2];
};

/* evict_possible - does the kernel tell this process physical pages? */
bool evict_possible(void);

/*
 * evict_start - find such memory for a site that is in place. 0, or a negative errno; then too,
 * evict_stop() frees what there is. evict_lines - read all of it; how many lines that were.
 */
int evict_start(struct evict *e, const uint8_t *front, const uint8_t *back);
void evict_stop(struct evict *e);
uint64_t evict_lines(const struct evict *e);

/* wide_possible - has the CPU vectors of 256 bits or more with multiply-add? */
bool wide_possible(void);

/* wide_burst - some thousand multiply-adds on them. */
void wide_burst(void);

#endif
