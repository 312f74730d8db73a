/* SPDX-License-Identifier: MIT */
/*
 * What the kernel tells as text about interrupts, stolen time and load. Readers
 * of streams, so that text recorded elsewhere can be read as well. What a stream
 * does not tell is WITNESS_UNKNOWN, or negative where a double is returned; no
 * count is above INT64_MAX.
 */
#ifndef STRESS_WITNESS_PROC_TEXT_H
#define STRESS_WITNESS_PROC_TEXT_H

#include <hwloc.h>
#include <stdint.h>
#include <stdio.h>

/*
 * proc_interrupts - of these CPUs since boot: all rows of /proc/interrupts. An
 * offline CPU has no column there. ERR and MIS, which belong to no CPU, are left
 * out.
 */
uint64_t proc_interrupts(FILE *stream, hwloc_const_bitmap_t cpus);

/* proc_steal - time stolen from these CPUs since boot, clock ticks, /proc/stat. */
uint64_t proc_steal(FILE *stream, hwloc_const_bitmap_t cpus);

/* proc_runnable - runnable tasks of the whole system, /proc/loadavg. */
double proc_runnable(FILE *stream);

/* proc_count - a file that holds one number, as those of sysfs do. */
uint64_t proc_count(FILE *stream);

#endif
