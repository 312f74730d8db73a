/* SPDX-License-Identifier: MIT */
#include "probes/profile/sample/report.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "probes/include/fastinst.h"
#include "probes/profile/sample/epochs.h"
#include "probes/profile/sample/watch.h"

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void put_function(FILE *out, uint32_t id)
{
	const struct estimate *one = &epochs_book(id)->estimate;
	double number[ESTIMATE_NUMBERS];
	struct fi_probe probe;

	if (!(one->known > 0) || fi_get(id, &probe) < 0)
		return;
	fprintf(out, "F\t%s\t%s", probe.function, probe.object);
	memcpy(number, one, sizeof(number));
	for (int i = 0; i < ESTIMATE_NUMBERS; i++)
		fprintf(out, "\t%a", number[i]);
	fputc('\n', out);
}

static void put_caller(FILE *out, const struct caller_count *count, const char *program)
{
	const struct link_map *map = NULL;
	struct fi_probe probe;
	const char *object;
	Dl_info info;

	if (fi_get((uint32_t)count->id, &probe) < 0 ||
	    !dladdr1((const void *)count->from, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return;
	object = map->l_name && *map->l_name ? map->l_name : program;
	fprintf(out, "C\t%s\t%s\t%s\t%lx\t%llu\n", probe.function, probe.object, object,
		(unsigned long)(count->from - map->l_addr), (unsigned long long)count->calls);
}

static void put_moments(FILE *out, double per_second)
{
	const struct account *account = epochs_account();

	for (unsigned i = 0; i < account->moments; i++) {
		const struct moment *one = &account->moment[i];

		fprintf(out, "P\t%a\t%a\t%a\t%a\n", one->start / per_second,
			one->length / per_second, one->calls,
			one->length > 0 ? one->cost / one->length : 0);
	}
}

void report_profile(FILE *out)
{
	const struct account *account = epochs_account();
	double seconds = now() - account->began_at;
	double ticks = (double)(__builtin_ia32_rdtsc() - account->began);
	char program[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
	uint64_t offs = atomic_load_explicit(&watch_common.offs, memory_order_relaxed);
	uint32_t n = fi_probes();

	program[len < 0 ? 0 : len] = '\0';
	fprintf(out, "Q\t%a\t%a\t%a\t%a\t%a\t%a\t%a\n", seconds, (double)account->epochs,
		epochs_options()->budget, epochs_cost(), (double)(account->toggles + offs),
		(double)account->lost, (double)account->refused);
	for (uint32_t id = 0; id < n; id++)
		put_function(out, id);
	for (unsigned i = 0; i < CALLERS; i++)
		if (account->callers[i].calls)
			put_caller(out, &account->callers[i], program);
	put_moments(out, ticks / seconds);
}
