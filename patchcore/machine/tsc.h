/* SPDX-License-Identifier: MIT */
/* May this machine's TSC be waited by? Private. */
#ifndef PATCHCORE_MACHINE_TSC_H
#define PATCHCORE_MACHINE_TSC_H

#include "patchcore/machine/identity.h"

/*
 * tsc_problem - why a wait by the TSC may be shorter here than it should be. NULL if
 * nothing speaks for that, else one line, in text or static.
 *
 * CPUID's word that the TSC is invariant is not enough. The kernel watches it against other clocks
 * and takes it out of its clock sources when they differ (or is told to, by tsc=unstable): then the
 * TSCs of two CPUs need not agree, nor run at one rate. And RDTSCP must tell the CPU that was read.
 */
const char *tsc_problem(char *text, size_t size);

/* tsc_problem_of - the same for a recorded machine, of whose RDTSCP only CPUID tells. */
const char *tsc_problem_of(const struct identity_source *src, char *text, size_t size);

/* tsc_learn - before the first change: is there an RDTSCP for moment_now()? */
void tsc_learn(void);

#endif
