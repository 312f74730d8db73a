/* SPDX-License-Identifier: MIT */
#include "stress/witness.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static bool seated(const struct seating *seating, unsigned cpu)
{
	if (cpu == seating->patcher)
		return true;
	for (unsigned i = 0; i < seating->executors; i++)
		if (seating->executor[i] == cpu)
			return true;
	return false;
}

uint64_t witness_steal(const struct seating *seating)
{
	FILE *file = fopen("/proc/stat", "re");
	uint64_t sum = 0, steal;
	unsigned cpu;
	char line[512];

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "cpu%u %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &cpu, &steal) != 2)
			continue;
		if (seated(seating, cpu))
			sum += steal;
	}
	fclose(file);
	return sum;
}

void witness_add_thread(struct witness *witness)
{
	struct rusage usage;

	if (getrusage(RUSAGE_THREAD, &usage) < 0)
		return;
	__atomic_fetch_add(&witness->voluntary, (uint64_t)usage.ru_nvcsw, __ATOMIC_RELAXED);
	__atomic_fetch_add(&witness->involuntary, (uint64_t)usage.ru_nivcsw, __ATOMIC_RELAXED);
	__atomic_fetch_add(&witness->major_faults, (uint64_t)usage.ru_majflt, __ATOMIC_RELAXED);
}

double witness_load(void)
{
	FILE *file = fopen("/proc/loadavg", "re");
	double runnable = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%*f %*f %*f %lf/", &runnable) != 1)
		runnable = 0;
	fclose(file);
	return runnable;
}
