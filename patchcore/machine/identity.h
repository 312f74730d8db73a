/* SPDX-License-Identifier: MIT */
/*
 * Which machine this is: the fields that a calibration is valid for. One reader serves both the
 * calibrator, which writes them, and the library, which compares them, so that the two can never
 * disagree. Private.
 */
#ifndef PATCHCORE_MACHINE_IDENTITY_H
#define PATCHCORE_MACHINE_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDENTITY_CACHES 8

struct identity {
	char vendor[16]; /* CPUID 0 */
	unsigned family; /* CPUID 1, with extended family and model folded in */
	unsigned model;
	unsigned stepping;
	char brand[64];	     /* CPUID 80000002..4, blanks trimmed and folded */
	char microcode[24];  /* /proc/cpuinfo; "unknown" if absent */
	char hypervisor[16]; /* CPUID 40000000 signature, "none" on bare metal */
	unsigned cache_line; /* bytes */
	char caches[96];     /* sysfs cpu0: "L1d 32K L1i 32K L2 1024K L3 32768K" */
	uint64_t features;   /* FNV-1a 64 over the CPUID feature words */
	bool tsc_invariant;  /* CPUID 80000007 edx bit 8 */
	uint64_t tsc_khz;    /* from bogomips (lpj is the TSC on x86) */
	unsigned sockets;    /* from sysfs, packages and cores of all present CPUs */
	unsigned cores;
	unsigned cpus;	 /* present logical CPUs */
	char kernel[72]; /* uname -r; told, never compared */
};

/* Each field and how it is printed. The last is for the reader, never compared. */
#define IDENTITY_FIELDS(FIELD)                                                                     \
	FIELD(vendor, TEXT)                                                                        \
	FIELD(family, COUNT)                                                                       \
	FIELD(model, COUNT)                                                                        \
	FIELD(stepping, COUNT)                                                                     \
	FIELD(brand, TEXT)                                                                         \
	FIELD(microcode, TEXT)                                                                     \
	FIELD(hypervisor, TEXT)                                                                    \
	FIELD(cache_line, COUNT)                                                                   \
	FIELD(caches, TEXT)                                                                        \
	FIELD(features, HASH)                                                                      \
	FIELD(tsc_invariant, FLAG)                                                                 \
	FIELD(tsc_khz, KHZ)                                                                        \
	FIELD(sockets, COUNT)                                                                      \
	FIELD(cores, COUNT)                                                                        \
	FIELD(cpus, COUNT)                                                                         \
	FIELD(kernel, TEXT)

/* Where to read from; tests put recorded machines here. */
struct identity_source {
	const char *root; /* prefix of /proc and /sys, "" for this machine */
	/* Registers of one CPUID leaf: eax, ebx, ecx, edx. */
	void (*cpuid)(void *arg, uint32_t leaf, uint32_t subleaf, uint32_t regs[4]);
	void *arg;
};

/* This machine. */
extern const struct identity_source identity_here;

/* identity_line - the first line of a small file. False, and "", if there is none. */
bool identity_line(const struct identity_source *src, const char *path, char *line, size_t size);

/* identity_read - this machine; identity_read_from - a recorded one. 0 or a negative errno. */
int identity_read(struct identity *id);
int identity_read_from(struct identity *id, const struct identity_source *src);

/*
 * identity_differs - name of the first field in which two machines differ, as the config spells it,
 * NULL if they are the same machine. tsc_khz may differ by 1 % (it is read anew at every boot).
 */
const char *identity_differs(const struct identity *a, const struct identity *b);

/*
 * identity_field - print field number i as text, for config, journal and info.
 * @name: set to its name. Returns false behind the last field.
 */
bool identity_field(const struct identity *id, unsigned i, const char **name, char *value,
		    size_t size);

/* identity_set - parse a field as identity_field printed it. -ENOENT, -EINVAL. */
int identity_set(struct identity *id, const char *name, const char *value);

#endif
