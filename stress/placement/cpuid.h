/* SPDX-License-Identifier: MIT */
/* What this CPU says of itself by CPUID, or another one by a dump that was taken there. */
#ifndef STRESS_PLACEMENT_CPUID_H
#define STRESS_PLACEMENT_CPUID_H

#include <jansson.h>
#include <stdio.h>

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
 * cpuid_keep - dump the CPUID of this machine as STORE.VENDOR-FAMILY-MODEL-STEPPING.cpuid, beside
 * the store of evidence, unless that is there. Without it there is a complaint, and no more.
 */
void cpuid_keep(const char *store);

#endif
