/* SPDX-License-Identifier: MIT */
/*
 * The machine that this runs on, and texts about it. And what a CPU says of itself by CPUID, as
 * libcpuid understands it: of this machine, or of another one by a dump that was taken there.
 */
#ifndef CALIBRATE_PROGRAM_HERE_H
#define CALIBRATE_PROGRAM_HERE_H

#include <hwloc.h>
#include <jansson.h>
#include <stdio.h>

#include "patchcore/machine/cpus.h"
#include "patchcore/machine/identity.h"

/*
 * topology_here - open the topology of this machine to measure on it. EXIT_PASS, or EXIT_MISSING
 * after a complaint: it cannot be read, or the environment has hwloc tell of another machine.
 */
int topology_here(hwloc_topology_t *topology);

/* machine_here - which machine this is. EXIT_PASS, or EXIT_MISSING after a complaint. */
int machine_here(struct identity *id);

/* cpus_here - the CPUs of that topology. */
void cpus_here(hwloc_topology_t topology, struct cpus *cpus);

/*
 * text_printable - copy a text of any bytes, such as a path, so that every form of output can hold
 * it: what is no UTF-8, and control characters, become '?'.
 */
void text_printable(char *to, size_t size, const char *text);

struct cpu_name {
	char vendor[16];		  /* printable, as the brand */
	unsigned family, model, stepping; /* as vendors tell them: with the extended parts */
	char brand[64];
	char codename[64]; /* "" unless libcpuid knows this very model */
};

/* cpuid_name_here - of the CPU that this runs on. 0 or -ENOTSUP. */
int cpuid_name_here(struct cpu_name *name);

/*
 * cpuid_name_of - of the machine where a dump was taken, by a calibration or by `cpuid_tool
 * --save`. 0, a negative errno where the file cannot be read, or -EINVAL: it is no dump.
 */
int cpuid_name_of(const char *dump, struct cpu_name *name);

/* cpu_name_to_json, cpu_name_print - what a dump tells: an object, or lines. */
json_t *cpu_name_to_json(const struct cpu_name *name);
void cpu_name_print(FILE *out, const struct cpu_name *name);

/*
 * cpuid_each_kept - of each dump that lies beside the store of evidence, in order of their names.
 * What is no dump is passed over. 0 or -ENOMEM.
 */
int cpuid_each_kept(const char *store, void (*tell)(const struct cpu_name *name, void *arg),
		    void *arg);

/*
 * cpuid_keep - dump the CPUID of this machine beside the store of evidence, as
 * STORE.VENDOR-FAMILY-MODEL-STEPPING.cpuid, unless that is there. A dump is a service: without it
 * there is a complaint, and nothing else is lost.
 */
void cpuid_keep(const char *store);

#endif
