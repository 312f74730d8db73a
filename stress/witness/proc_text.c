/* SPDX-License-Identifier: MIT */
#include "stress/witness/proc_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "stress/cell/cell.h"

#define STEAL_FIELD 8 /* of a CPU's line in /proc/stat: user is the first */

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

/* "   CPU0   CPU2 ...": which columns are of these CPUs. False: of none. */
static bool read_header(const char *line, hwloc_const_bitmap_t cpus, hwloc_bitmap_t columns)
{
	uint64_t cpu;

	for (unsigned column = 0;; column++) {
		line += strspn(line, " \t");
		if (strncmp(line, "CPU", 3) != 0)
			break;
		line += 3;
		if (!take_number(&line, &cpu))
			break;
		if (cpu <= INT32_MAX && hwloc_bitmap_isset(cpus, (unsigned)cpu))
			hwloc_bitmap_set(columns, column);
	}
	return !hwloc_bitmap_iszero(columns);
}

static void add_row(const char *line, hwloc_const_bitmap_t columns, uint64_t *sum)
{
	const char *at = strchr(line, ':');
	uint64_t value;

	line += strspn(line, " \t");
	if (!at || strncmp(line, "ERR:", 4) == 0 || strncmp(line, "MIS:", 4) == 0)
		return;
	at++;
	for (unsigned i = 0; take_number(&at, &value); i++)
		if (hwloc_bitmap_isset(columns, i))
			add_count(sum, value);
}

uint64_t proc_interrupts(FILE *stream, hwloc_const_bitmap_t cpus)
{
	hwloc_bitmap_t columns = hwloc_bitmap_alloc();
	uint64_t sum = WITNESS_UNKNOWN;
	bool more = false;
	char *line = NULL;
	size_t room = 0;

	if (columns && getline(&line, &room, stream) > 0)
		more = read_header(line, cpus, columns);
	while (more && getline(&line, &room, stream) > 0)
		add_row(line, columns, &sum);
	free(line);
	hwloc_bitmap_free(columns);
	return sum;
}

/* "cpu3 1 2 3 4 5 6 7 STEAL ...". False: another line, or a kernel that does not count it. */
static bool read_steal(const char *line, uint64_t *cpu, uint64_t *steal)
{
	if (strncmp(line, "cpu", 3) != 0 || !isdigit((unsigned char)line[3]))
		return false;
	line += 3;
	if (!take_number(&line, cpu) || *cpu > INT32_MAX)
		return false;
	for (unsigned i = 0; i < STEAL_FIELD; i++)
		if (!take_number(&line, steal))
			return false;
	return true;
}

uint64_t proc_steal(FILE *stream, hwloc_const_bitmap_t cpus)
{
	uint64_t sum = WITNESS_UNKNOWN, cpu, steal;
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, stream) > 0)
		if (read_steal(line, &cpu, &steal) && hwloc_bitmap_isset(cpus, (unsigned)cpu))
			add_count(&sum, steal);
	free(line);
	return sum;
}

/* "0.64 0.35 0.63 2/101 2841" */
double proc_runnable(FILE *stream)
{
	char line[128];
	const char *at;

	if (!fgets(line, sizeof(line), stream))
		return -1;
	at = strchr(line, '/');
	if (!at || at == line || !isdigit((unsigned char)at[1]))
		return -1;
	while (at > line && isdigit((unsigned char)at[-1]))
		at--;
	return isdigit((unsigned char)*at) ? strtod(at, NULL) : -1;
}

uint64_t proc_count(FILE *stream)
{
	uint64_t value;
	char line[64];
	const char *at = line;

	if (!fgets(line, sizeof(line), stream) || !take_number(&at, &value))
		return WITNESS_UNKNOWN;
	return value;
}
