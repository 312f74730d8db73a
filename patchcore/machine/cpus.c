/* SPDX-License-Identifier: MIT */
#include "patchcore/machine/cpus.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>

#include "patchcore/syscall/sys.h"
#include "patchcore/syscall/task.h"

#define DIGITS 5 /* of a number that can be below CPUS_MAX */

static bool has_cpu(const struct cpus *cpus, unsigned cpu)
{
	return cpu < CPUS_MAX && cpus->word[cpu / 64] >> cpu % 64 & 1;
}

static bool take_number(const char **at, const char *end, unsigned *number)
{
	const char *begin = *at;

	*number = 0;
	while (*at < end && *at - begin < DIGITS && **at >= '0' && **at <= '9')
		*number = *number * 10 + (unsigned)(*(*at)++ - '0');
	return *at > begin && *number < CPUS_MAX;
}

int cpus_parse(struct cpus *cpus, const char *text, size_t length)
{
	const char *end = text + length;
	unsigned from, to;

	*cpus = (struct cpus){ 0 };
	for (;;) {
		if (!take_number(&text, end, &from))
			return -EINVAL;
		to = from;
		if (text < end && *text == '-') {
			text++;
			if (!take_number(&text, end, &to) || from > to)
				return -EINVAL;
		}
		for (unsigned cpu = from; cpu <= to; cpu++)
			cpus->word[cpu / 64] |= UINT64_C(1) << cpu % 64;
		if (text == end)
			return 0;
		if (*text++ != ',')
			return -EINVAL;
	}
}

size_t cpus_print(const struct cpus *cpus, char *text, size_t size)
{
	size_t n = 0;

	if (size)
		text[0] = '\0';
	for (unsigned from = 0, to; from < CPUS_MAX; from = to + 1) {
		for (to = from; has_cpu(cpus, from) && has_cpu(cpus, to + 1); to++)
			;
		if (!has_cpu(cpus, from))
			continue;
		n += (size_t)snprintf(n < size ? text + n : NULL, n < size ? size - n : 0, "%s%u",
				      n ? "," : "", from);
		if (from < to)
			n += (size_t)snprintf(n < size ? text + n : NULL, n < size ? size - n : 0,
					      "-%u", to);
	}
	return n;
}

unsigned cpus_count(const struct cpus *cpus)
{
	return (unsigned)CPU_COUNT_S(sizeof(*cpus), (const cpu_set_t *)cpus->word);
}

bool cpus_beyond(const struct cpus *some, const struct cpus *all, struct cpus *beyond)
{
	uint64_t any = 0;

	for (size_t i = 0; i < CPUS_MAX / 64; i++)
		any |= beyond->word[i] = some->word[i] & ~all->word[i];
	return any;
}

/* A thread that has ended meanwhile (-ESRCH) runs nowhere. */
static bool add_allowed(pid_t tid, void *arg)
{
	struct cpus *cpus = arg, its = { 0 };

	if (sys_call(SYS_sched_getaffinity, tid, sizeof(its), &its) < 0)
		return true;
	for (size_t i = 0; i < CPUS_MAX / 64; i++)
		cpus->word[i] |= its.word[i];
	return true;
}

int cpus_allowed(struct cpus *cpus)
{
	*cpus = (struct cpus){ 0 };
	/* The caller's own first: there may be no /proc. */
	add_allowed(0, cpus);
	task_list(0, add_allowed, cpus);
	return cpus_count(cpus) ? 0 : -ENODATA;
}
