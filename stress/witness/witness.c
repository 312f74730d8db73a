/* SPDX-License-Identifier: MIT */
#include "stress/witness/witness.h"

#include <cpuid.h>
#include <ctype.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "patchcore/machine/wait.h"

#define MSR_SMI_COUNT 0x34
#define LOAD_SAMPLES  3
#define STEAL_FIELD   8 /* of a CPU's line in /proc/stat: user is the first */

#define ADDS  100
#define LOOPS 2500 /* about 100 us */
#define RUNS  20   /* long enough to come up to speed, and one of them undisturbed */

#define TEXT_OF(x) #x
#define TEXT(x)	   TEXT_OF(x)

static bool take_number(const char **text, uint64_t *value)
{
	const char *from = *text + strspn(*text, " \t");
	char *end;

	if (!isdigit((unsigned char)*from))
		return false;
	*value = strtoull(from, &end, 10);
	if (*value > INT64_MAX || (*end && !isspace((unsigned char)*end)))
		return false;
	*text = end;
	return true;
}

/* Text that is not the kernel's may hold anything, sums past the end included. */
static void add_count(uint64_t *sum, uint64_t count)
{
	if (*sum == WITNESS_UNKNOWN)
		*sum = 0;
	*sum = count > INT64_MAX - *sum ? INT64_MAX : *sum + count;
}

/* All rows of these CPUs. An offline one has no column; ERR and MIS belong to no CPU. */
static uint64_t proc_interrupts(FILE *stream, hwloc_const_bitmap_t cpus)
{
	hwloc_bitmap_t columns = hwloc_bitmap_alloc();
	uint64_t sum = WITNESS_UNKNOWN, cpu;
	const char *head = "";
	char *line = NULL;
	size_t room = 0;

	if (columns && getline(&line, &room, stream) > 0)
		head = line + strspn(line, " \t");
	/* "   CPU0   CPU2 ...": which columns are of these CPUs. */
	for (unsigned column = 0; strncmp(head, "CPU", 3) == 0; column++) {
		head += 3;
		if (!take_number(&head, &cpu))
			break;
		if (cpu <= INT32_MAX && hwloc_bitmap_isset(cpus, (unsigned)cpu))
			hwloc_bitmap_set(columns, column);
		head += strspn(head, " \t");
	}
	while (columns && !hwloc_bitmap_iszero(columns) && getline(&line, &room, stream) > 0) {
		const char *name = line + strspn(line, " \t"), *at = strchr(line, ':');
		uint64_t value;

		if (!at || strncmp(name, "ERR:", 4) == 0 || strncmp(name, "MIS:", 4) == 0)
			continue;
		at++;
		for (unsigned i = 0; take_number(&at, &value); i++)
			if (hwloc_bitmap_isset(columns, i))
				add_count(&sum, value);
	}
	free(line);
	hwloc_bitmap_free(columns);
	return sum;
}

static uint64_t proc_steal(FILE *stream, hwloc_const_bitmap_t cpus)
{
	uint64_t sum = WITNESS_UNKNOWN, cpu, steal = 0;
	char *line = NULL;
	size_t room = 0;

	/* "cpu3 1 2 3 4 5 6 7 STEAL ...". Some kernels do not count it. */
	while (getline(&line, &room, stream) > 0) {
		const char *at = line + 3;
		unsigned fields = 0;

		if (strncmp(line, "cpu", 3) != 0 || !isdigit((unsigned char)*at) ||
		    !take_number(&at, &cpu) || cpu > INT32_MAX)
			continue;
		while (fields < STEAL_FIELD && take_number(&at, &steal))
			fields++;
		if (fields == STEAL_FIELD && hwloc_bitmap_isset(cpus, (unsigned)cpu))
			add_count(&sum, steal);
	}
	free(line);
	return sum;
}

/* "0.64 0.35 0.63 2/101 2841" */
static double proc_runnable(FILE *stream)
{
	unsigned runnable, tasks;

	return fscanf(stream, "%*s %*s %*s %u/%u", &runnable, &tasks) == 2 ? (double)runnable : -1;
}

static uint64_t proc_count(FILE *stream, hwloc_const_bitmap_t cpus)
{
	uint64_t value;
	char line[64];
	const char *at = line;

	(void)cpus;
	if (!fgets(line, sizeof(line), stream) || !take_number(&at, &value))
		return WITNESS_UNKNOWN;
	return value;
}

void witness_clear(struct witness *witness)
{
	*witness = (struct witness){
		.interrupts = WITNESS_UNKNOWN,
		.smis = WITNESS_UNKNOWN,
		.throttles = WITNESS_UNKNOWN,
		.offset_error = WITNESS_UNKNOWN,
		.error_after = WITNESS_UNKNOWN,
		.clock = { -1, -1 },
		.steal = -1,
		.load = -1,
	};
}

static uint64_t read_file(const char *path, hwloc_const_bitmap_t cpus,
			  uint64_t (*read_stream)(FILE *, hwloc_const_bitmap_t))
{
	FILE *stream = fopen(path, "re");
	uint64_t value;

	if (!stream)
		return WITNESS_UNKNOWN;
	value = read_stream(stream, cpus);
	fclose(stream);
	return value;
}

/* Every CPU also tells how often its package was throttled: that slows it as much. */
static uint64_t witness_throttles(const char *root, hwloc_const_bitmap_t cpus)
{
	static const char *const names[] = { "core_throttle_count", "package_throttle_count" };
	uint64_t sum = 0, count;
	bool told = false;
	char path[256];

	for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0; cpu = hwloc_bitmap_next(cpus, cpu))
		for (unsigned i = 0; i < 2; i++) {
			snprintf(path, sizeof(path), "%s/cpu%d/thermal_throttle/%s", root, cpu,
				 names[i]);
			count = read_file(path, NULL, proc_count);
			told |= count != WITNESS_UNKNOWN;
			sum += count != WITNESS_UNKNOWN ? count : 0;
		}
	return told ? sum : WITNESS_UNKNOWN;
}

static uint64_t witness_smis(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t msr;
	ssize_t got;

	if (fd < 0)
		return WITNESS_UNKNOWN;
	got = pread(fd, &msr, sizeof(msr), MSR_SMI_COUNT);
	close(fd);
	/* The upper half is reserved. */
	return got == (ssize_t)sizeof(msr) ? (uint32_t)msr : WITNESS_UNKNOWN;
}

void witness_mark(const struct seating *seating, struct witness_mark *mark)
{
	hwloc_bitmap_t cpus = seating_cpus(seating);
	unsigned eax, name[3];
	char path[64];

	*mark = (struct witness_mark){ WITNESS_UNKNOWN, WITNESS_UNKNOWN, WITNESS_UNKNOWN,
				       WITNESS_UNKNOWN };
	if (!cpus)
		return;
	mark->interrupts = read_file("/proc/interrupts", cpus, proc_interrupts);
	mark->steal = read_file("/proc/stat", cpus, proc_steal);
	mark->throttles = witness_throttles("/sys/devices/system/cpu", cpus);
	/* On other makes the register is something else, or a fault that the kernel logs. */
	if (__get_cpuid(0, &eax, &name[0], &name[2], &name[1]) &&
	    memcmp(name, "GenuineIntel", sizeof(name)) == 0) {
		snprintf(path, sizeof(path), "/dev/cpu/%u/msr", seating->patcher);
		mark->smis = witness_smis(path);
	}
	hwloc_bitmap_free(cpus);
}

/* A counter that went back (the kernel's own are 32 bits wide) tells nothing. */
static uint64_t grown(uint64_t before, uint64_t after)
{
	if (before == WITNESS_UNKNOWN || after == WITNESS_UNKNOWN || after < before)
		return WITNESS_UNKNOWN;
	return after - before;
}

/* The least of a few: a task that only woke for a moment is no noise. */
static double load_now(void)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	double least = INFINITY;

	for (unsigned i = 0; i < LOAD_SAMPLES; i++) {
		FILE *stream = fopen("/proc/loadavg", "re");

		if (i)
			nanosleep(&pause, NULL);
		least = fmin(least, stream ? proc_runnable(stream) : -1);
		if (stream)
			fclose(stream);
	}
	return least;
}

static void fill_between(struct witness *witness, const struct seating *seating,
			 const struct witness_mark *before, const struct witness_mark *after,
			 double seconds)
{
	uint64_t steal = grown(before->steal, after->steal);
	hwloc_bitmap_t cpus = seating_cpus(seating);
	int count = cpus ? hwloc_bitmap_weight(cpus) : 0;

	hwloc_bitmap_free(cpus);
	witness->interrupts = grown(before->interrupts, after->interrupts);
	witness->throttles = grown(before->throttles, after->throttles);
	witness->smis = grown(before->smis, after->smis);
	witness->steal = -1;
	if (steal != WITNESS_UNKNOWN && count > 0 && seconds > 0)
		witness->steal = (double)steal / (double)sysconf(_SC_CLK_TCK) / seconds / count;
}

void witness_end(struct witness *witness, const struct seating *seating,
		 const struct witness_mark *before, double seconds)
{
	struct witness_mark after;

	witness_mark(seating, &after);
	fill_between(witness, seating, before, &after, seconds);
	witness->load = load_now();
}

static void add_growth(uint64_t *sum, long begin, long end)
{
	if (end > begin)
		__atomic_fetch_add(sum, (uint64_t)(end - begin), __ATOMIC_RELAXED);
}

void witness_add_usage(struct witness *witness, int who, const struct rusage *begin)
{
	struct rusage end;

	getrusage(who, &end);
	add_growth(&witness->voluntary, begin->ru_nvcsw, end.ru_nvcsw);
	add_growth(&witness->involuntary, begin->ru_nivcsw, end.ru_nivcsw);
	add_growth(&witness->minor_faults, begin->ru_minflt, end.ru_minflt);
	add_growth(&witness->major_faults, begin->ru_majflt, end.ru_majflt);
}

void witness_threads_lost(struct witness *witness)
{
	witness->voluntary = WITNESS_UNKNOWN;
	witness->involuntary = WITNESS_UNKNOWN;
	witness->minor_faults = WITNESS_UNKNOWN;
	witness->major_faults = WITNESS_UNKNOWN;
}

/*
 * Core cycles per tick of the CPU, in 2 ms, in which a core that was asleep comes up to speed.
 * Every add waits for the one before, so a cycle each; the loop's own counting runs beside them. Of
 * registers: some cores do additions of a constant while renaming, for nothing.
 */
static double clock_rate(void)
{
	uint64_t best = UINT64_MAX;

	for (unsigned i = 0; i < RUNS; i++) {
		uint64_t sum = 1, step = 3, loops = LOOPS, ticks = ticks_now();

		__asm__ volatile("1:\n\t"
				 ".rept " TEXT(ADDS) "\n\t"
						     "add %[step], %[sum]\n\t"
						     ".endr\n\t"
						     "dec %[loops]\n\t"
						     "jnz 1b"
				 : [sum] "+r"(sum), [loops] "+r"(loops)
				 : [step] "r"(step)
				 : "cc");
		ticks = ticks_now() - ticks;
		if (ticks && ticks < best)
			best = ticks;
	}
	return best == UINT64_MAX ? -1 : (double)ADDS * LOOPS / (double)best;
}

static struct tsc_offset offset_of(hwloc_topology_t topology, const struct seating *seating)
{
	struct tsc_offset to = TSC_OFFSET_UNKNOWN;

	if (seating->executors)
		tsc_offset_measure(topology, seating->patcher, seating->executor[0], &to);
	return to;
}

void witness_before(struct witness *witness, hwloc_topology_t topology,
		    const struct seating *seating)
{
	struct tsc_offset to;

	witness->clock[0] = clock_rate();
	to = offset_of(topology, seating);
	witness->offset = to.offset;
	witness->offset_error = to.error;
}

void witness_after(struct witness *witness)
{
	witness->clock[1] = clock_rate();
}

void witness_apart_after(struct witness *witness, hwloc_topology_t topology,
			 const struct seating *seating)
{
	witness->error_after = offset_of(topology, seating).error;
}

/* Threads on one CPU have none, and witnesses of those that died do not tell. */
static enum distance distance_of(uint64_t error)
{
	if (!error || error == WITNESS_UNKNOWN)
		return DISTANCES;
	return error < DISTANCE_TICKS ? DISTANCE_NEAR : DISTANCE_FAR;
}

enum distance witness_distance_after(const struct witness *witness)
{
	return distance_of(witness->error_after);
}

enum distance witness_distance(const struct witness *witness)
{
	enum distance before = distance_of(witness->offset_error);

	/* It may be known of the beginning alone. */
	return witness_distance_after(witness) == DISTANCE_FAR ? DISTANCE_FAR : before;
}

void witness_step(struct witness *witness, uint64_t step)
{
	if (step > INT64_MAX)
		step = WITNESS_BACKWARDS;
	if (step > witness->longest_step)
		witness->longest_step = step;
	if (step > WITNESS_STEP_ALLOWED)
		witness->tsc_jumps++;
}
