/* SPDX-License-Identifier: MIT */
/*
 * Stores inside a line on all CPUs at once: pairs of CPUs, each in a process of its own that runs a
 * calibration of these two, controls included. In the next round each CPU has another partner.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "calibrate/session/session.h"

#define ROUND_MIN 6.0 /* seconds; in shorter rounds most of the time is for the controls */

struct pair_process {
	pid_t process;
	FILE *report; /* a file without a name */
};

bool pair_of_round(unsigned cpus, unsigned round, unsigned i, unsigned pair[2])
{
	unsigned others = cpus - 1 + cpus % 2; /* than one that stays; of odd numbers it is none */

	round %= others;
	pair[0] = i ? (round + i) % others : others;
	pair[1] = i ? (round + others - i) % others : round;
	return pair[0] < cpus && pair[1] < cpus;
}

/* In the process of the pair, where all of the session is its own. */
static void run_pair(struct session *s, const struct plan *all, const unsigned cpu[2], FILE *report)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	struct sums sums = { 0 };
	struct plan plan = *all;
	struct estimate e;
	json_t *line;
	int ret;

	hwloc_bitmap_set(set, cpu[0]);
	hwloc_bitmap_set(set, cpu[1]);
	if (hwloc_topology_restrict(s->topology, set, 0) < 0)
		_exit(EXIT_FAILURE);
	plan.seats = plan.untesteds = 0;
	plan_seat(&plan, s->topology);
	/* Runs of the gap oracle that the journal has say nothing of this pair. */
	json_array_clear(s->known.others);
	ret = climb(s, &plan, &sums, &e);
	line = json_pack("{s:i, s:b, s:o}", "ret", ret, "blind", e.blind, "sums",
			 sums_to_json(&sums));
	json_dumpf(line, report, 0);
	fclose(report);
	_exit(EXIT_SUCCESS);
}

/* Returns what its climb() did; *proven: its oracle saw tears where they had to be. */
static int take_report(const struct session *s, struct pair_process *pair, struct sums *sums,
		       bool *proven)
{
	json_t *line;
	int ret = -ECHILD;

	while (waitpid(pair->process, NULL, 0) < 0 && errno == EINTR)
		if (*s->stop)
			kill(pair->process, SIGTERM);
	rewind(pair->report);
	line = json_loadf(pair->report, 0, NULL);
	fclose(pair->report);
	if (line)
		ret = (int)json_integer_value(json_object_get(line, "ret"));
	if (json_is_false(json_object_get(line, "blind"))) {
		*proven = true;
		if (sums_from_json(json_object_get(line, "sums"), sums) < 0)
			ret = -ENOMEM;
	}
	json_decref(line);
	return ret;
}

static int run_round(struct session *s, const struct plan *plan, const unsigned *cpu, unsigned cpus,
		     unsigned round, double seconds, struct sums *sums, bool *proven)
{
	struct pair_process *pairs = calloc(cpus, sizeof(*pairs));
	unsigned count = 0, two[2];
	int ret = pairs ? 0 : -ENOMEM;

	for (unsigned i = 0; i < (cpus + 1) / 2 && ret == 0; i++) {
		struct pair_process *pair = &pairs[count];

		if (!pair_of_round(cpus, round, i, two))
			continue;
		two[0] = cpu[two[0]];
		two[1] = cpu[two[1]];
		pair->report = tmpfile();
		pair->process = pair->report ? fork() : -1;
		if (pair->process == 0) {
			s->seed = random_at(s->seed, (uint64_t)round << 32 | i) & INT64_MAX;
			s->budget = seconds;
			s->begin = seconds_now();
			s->progress.quiet |= count > 0;
			run_pair(s, plan, two, pair->report);
		}
		if (pair->process < 0)
			ret = -errno;
		else
			count++;
	}
	for (unsigned i = 0; i < count; i++) {
		int one = take_report(s, &pairs[i], sums, proven);

		ret = ret == 0 ? one : ret;
	}
	free(pairs);
	return ret;
}

int climb_pairs(struct session *s, const struct plan *plan, struct sums *sums, struct estimate *e)
{
	unsigned cpus = (unsigned)hwloc_get_nbobjs_by_type(s->topology, HWLOC_OBJ_PU);
	unsigned rounds = (unsigned)(session_left(s) / ROUND_MIN);
	unsigned *cpu = calloc(cpus, sizeof(*cpu));
	bool proven = false;
	int ret = cpu ? 0 : -ENOMEM;

	rounds = rounds < 1 ? 1 : rounds > cpus ? cpus : rounds;
	for (unsigned i = 0; i < cpus && cpu; i++)
		cpu[i] = hwloc_get_obj_by_type(s->topology, HWLOC_OBJ_PU, i)->os_index;
	/* Where there are fewer rounds than partners, each run begins with others. */
	for (unsigned round = 0; ret == 0 && round < rounds; round++)
		ret = run_round(s, plan, cpu, cpus, round + (unsigned)(s->seed % cpus),
				session_left(s) / (rounds - round), sums, &proven);
	free(cpu);
	estimate_make(e, sums, 1, plan);
	if (!proven)
		estimate_blind(e, "on no pair of CPUs the oracle saw the broken protocols tear");
	return ret;
}
