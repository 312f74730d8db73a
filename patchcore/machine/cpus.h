/* SPDX-License-Identifier: MIT */
/* Sets of CPUs, and the list format of Linux ("0-3,8"). Private. */
#ifndef PATCHCORE_MACHINE_CPUS_H
#define PATCHCORE_MACHINE_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPUS_MAX 8192 /* more than any kernel for x86 can have */

struct cpus {
	uint64_t word[CPUS_MAX / 64];
};

/*
 * cpus_parse - the set that the list in text[0..length) names, which has one CPU at least.
 * 0 or -EINVAL.
 */
int cpus_parse(struct cpus *cpus, const char *text, size_t length);

/* cpus_print - as snprintf(): the list, cut off where it does not fit, and its whole length. */
size_t cpus_print(const struct cpus *cpus, char *text, size_t size);

unsigned cpus_count(const struct cpus *cpus);

/* cpus_beyond - *beyond gets the CPUs of @some that @all has not. Returns whether there are any. */
bool cpus_beyond(const struct cpus *some, const struct cpus *all, struct cpus *beyond);

/*
 * cpus_allowed - the CPUs that the threads of this process may run on: all threads that /proc
 * tells of, else the calling one. 0 or a negative errno.
 */
int cpus_allowed(struct cpus *cpus);

#endif
