/* SPDX-License-Identifier: MIT */
/* A session: a profile of this process, from start to report, whichever way it begins and ends. */
#include "profile/sampler/session.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/counts/base.h"
#include "base/text.h"
#include "probes/include/fastinst.h"

static _Atomic pid_t owner; /* the process that still has to report, or 0 */
static const char *folder;
static bool visited;

int fastinst_profile(const char *text);

/* A child of vfork() has its parent's memory, and another PID. */
static int finish_session(bool reports)
{
	pid_t me = getpid(), expected = me;
	int ret;

	if (!folder || !atomic_compare_exchange_strong(&owner, &expected, 0))
		return 0;
	ret = sampler_finish();
	if (ret < 0) {
		owner = me;
		return ret;
	}
	if (reports)
		write_report(folder, sampler_report);
	return 0;
}

static void end_session(void)
{
	finish_session(true);
}

static int stop_session(bool reports)
{
	int ret = finish_session(reports);

	return ret < 0 ? ret : sampler_stop();
}

/* The child has nothing to report of its parent's profile. */
static void fork_session(void)
{
	owner = sampler_forked(owner, visited) ? getpid() : 0;
}

static int begin_session(const char *options, const char *functions, const char *entries)
{
	static const struct leaving leaving = { end_session, end_session, NULL };
	static bool known;
	int ret = options ? sampler_read(options, functions && *functions ? functions : "*")
			  : -EINVAL;

	if (!ret && entries)
		ret = fi_take_entries(entries);
	if (!ret)
		ret = fi_init();
	if (!ret && !known)
		ret = -pthread_atfork(sampler_before_fork, sampler_after_fork, fork_session);
	known |= !ret;
	if (!ret)
		ret = sampler_start(visited);
	if (ret)
		return ret;
	owner = getpid();
	set_leaving(&leaving);
	return 0;
}

__attribute__((constructor)) static void start_session(void)
{
	const char *options = getenv("FASTINST_PROFILE");
	int ret;

	folder = copy_folder(getenv("FASTINST_OUTPUT"));
	if (!options || !folder)
		return;
	ret = begin_session(options, getenv("FASTINST_FUNCTIONS"), getenv("FASTINST_ENTRIES"));
	if (ret < 0)
		say_line("no profile, the program runs without it: %s\n", explain_error(ret));
}

/*
 * @text: lines: "start", the folder of the report, options, patterns, and "=" and objects of which
 *	  functions are taken; or "stop"
 */
int fastinst_profile(const char *text)
{
	struct visit visit;

	unblock_traps();
	if (!read_visit(&visit, text))
		return -ENAMETOOLONG;
	if (!strcmp(visit.line[0], "stop"))
		return stop_session(true);
	if (owner) {
		int ret = is_folder_abandoned(folder) ? stop_session(false) : -EBUSY;

		if (ret < 0)
			return ret;
	}
	folder = copy_folder(visit.line[1]);
	visited = true;
	return begin_session(visit.line[2], visit.line[3],
			     *visit.line[4] ? visit.line[4] + 1 : NULL);
}

/* No probe of an object may be turned on while that is unloaded. */
int dlclose(void *handle)
{
	int (*close)(void *) = (int (*)(void *))dlsym(RTLD_NEXT, "dlclose");
	bool begun = sampler_before_unload();
	int ret = close(handle);

	if (begun)
		sampler_after_unload();
	return ret;
}

static void *run_thread(void *number)
{
	fi_own_thread(1);
	sampler_run((uintptr_t)number);
	fi_own_thread(-1);
	return NULL;
}

int session_thread(pthread_t *thread, uintptr_t number)
{
	return start_own_thread(thread, run_thread, (void *)number);
}

/* --- The report ----------------------------------------------------------------------------- */

void report_text(FILE *out, const char *text)
{
	fputc('\t', out);
	text_put(out, text);
}

/* Most numbers are 0. */
void report_numbers(FILE *out, const void *numbers, int n)
{
	const double *number = numbers;

	for (int i = 0; i < n; i++)
		if (number[i] != 0)
			fprintf(out, "\t%a", number[i]);
		else
			fputs("\t0", out);
	fputc('\n', out);
}

bool report_address(FILE *out, uint64_t address)
{
	const struct link_map *map = NULL;
	char program[PATH_MAX];
	Dl_info info;
	ssize_t len;

	if (!dladdr1((const void *)address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return false;
	if (map->l_name && *map->l_name) {
		report_text(out, map->l_name);
	} else {
		len = readlink("/proc/thread-self/exe", program, sizeof(program) - 1);
		program[len < 0 ? 0 : len] = '\0';
		report_text(out, program);
	}
	fprintf(out, "\t%lx", (unsigned long)(address - map->l_addr));
	return true;
}

static void join_phases(struct phase *to, const struct phase *next)
{
	to->length = next->start + next->length - to->start;
	to->calls += next->calls;
	to->cost += next->cost;
	to->phases += next->phases;
	to->on += next->on;
	to->toggling += next->toggling;
}

/* Join moments in pairs, to make room for as many again. */
static void merge_moments(struct moments *moments)
{
	struct phase *moment = moments->moment;

	for (size_t i = 0; i < MOMENTS / 2; i++) {
		moment[i] = moment[2 * i];
		join_phases(&moment[i], &moment[2 * i + 1]);
	}
	moments->n = MOMENTS / 2;
	moments->merged *= 2;
}

void moments_add(struct moments *moments, const struct phase *phase)
{
	struct phase *last = moments->n ? &moments->moment[moments->n - 1] : NULL;

	if (last)
		last->length = phase->start - last->start;
	if (last && last->phases < moments->merged) {
		join_phases(last, phase);
		return;
	}
	if (!moments->n)
		moments->merged = 1;
	if (moments->n == MOMENTS)
		merge_moments(moments);
	moments->moment[moments->n++] = *phase;
}

void report_moments(FILE *out, const struct moments *moments, double per_second)
{
	for (size_t i = 0; i < moments->n; i++) {
		struct phase one = moments->moment[i];

		one.cost = one.length > 0 ? one.cost / one.length : 0;
		one.start /= per_second;
		one.length /= per_second;
		fputc('P', out);
		report_numbers(out, &one, PHASE_NUMBERS);
	}
}
