/* SPDX-License-Identifier: MIT */
/*
 * What threads hold of malloc() and mmap(). All of a program's go through here once it is loaded by
 * LD_PRELOAD; only those of threads that have said so are counted.
 */
#ifndef PROBES_REAL_PROGRAMS_HELD_H
#define PROBES_REAL_PROGRAMS_HELD_H

/* held_count - from now on the calling thread's are counted. */
void held_count(void);

/* held_bytes - what all those threads have taken and not given back. */
long held_bytes(void);

#endif
