/* SPDX-License-Identifier: MIT */
#include "bench/method/method.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"

/* One block of a case, or of its baseline. */
static int one_block(struct bench_case *c, struct samples *to, char *why)
{
	struct samples forgotten[2] = { { 0 } };
	int ret = bench_set_policy(c->policy, why);

	if (ret == 0 && c->begin)
		ret = c->begin(c, why);
	if (ret < 0) {
		pc_set_policy(PC_POLICY_AUTO);
		return ret;
	}
	if (c->hot)
		hot_aim(c->hot, c->work, c->executors);
	if (!c->warm) {
		ret = c->block(c, forgotten, why);
		samples_free(&forgotten[0]);
		samples_free(&forgotten[1]);
		c->warm = true;
	}
	if (ret == 0)
		ret = c->block(c, to, why);
	if (c->hot)
		hot_sleep(c->hot);
	if (c->end)
		c->end(c);
	pc_set_policy(PC_POLICY_AUTO);
	samples_end_block(&to[0]);
	samples_end_block(&to[1]);
	return ret;
}

static bool is_stopped(const struct bench_run *run)
{
	return run->stop && *run->stop;
}

/* Each case once, A B B A or A A, in an order drawn anew by Fisher and Yates. */
static int one_round(const struct bench_run *run, struct bench_case *cases, size_t count,
		     unsigned round, size_t *order, uint64_t *state)
{
	static const bool is_base[] = { false, true, true, false };

	for (size_t i = count; i > 1; i--) {
		size_t other = random_next(state) % i, mine = order[i - 1];

		order[i - 1] = order[other];
		order[other] = mine;
	}
	for (size_t i = 0; i < count; i++) {
		struct bench_case *c = &cases[order[i]];
		char why[BENCH_WHY] = "";
		int ret = 0;

		if (run->progress)
			run->progress(round * (unsigned)count + (unsigned)i,
				      run->rounds * (unsigned)count, c->row.name);
		if (c->skipped || (c->rounds && round >= c->rounds))
			continue;
		for (unsigned k = 0; k < 4 && ret == 0; k++) {
			if (is_stopped(run))
				return -EINTR;
			if (!is_base[k])
				ret = one_block(c, c->samples, why);
			else if (c->base)
				ret = one_block(c->base, c->base_samples, why);
		}
		if (ret == -EINTR || is_stopped(run))
			return -EINTR;
		c->skipped = ret < 0;
		if (ret < 0)
			bench_row_skip(&c->row, "%s", why[0] ? why : strerror(-ret));
	}
	return 0;
}

/* One more row: what samples tell, and what the case has to add. */
static int add_row(struct bench_case *c, unsigned which, uint64_t seed, struct bench_result *result)
{
	struct bench_row *row = bench_result_add(result);
	const struct samples *base = NULL;
	int ret;

	if (!row)
		return -ENOMEM;
	*row = c->row;
	if (which)
		snprintf(row->measure, sizeof(row->measure), "%s", c->second_measure);
	if (c->skipped)
		return 0;
	if (c->base) {
		snprintf(row->against, sizeof(row->against), "%s", c->base->row.name);
		/* A baseline without a second measure serves both. */
		base = &c->base_samples[c->base_samples[which].count ? which : 0];
	}
	ret = samples_sum_up(&c->samples[which], base, seed, row);
	if (ret == -EDOM)
		bench_row_skip(row, "a sample was not a finite number");
	else if (ret == 0 && row->samples == 0)
		bench_row_skip(row, "nothing was measured");
	else if (ret == 0 && c->sum_up)
		c->sum_up(c, row);
	return ret == -EDOM ? 0 : ret;
}

int bench_measure(const struct bench_run *run, struct bench_case *cases, size_t count,
		  struct bench_result *result)
{
	size_t *order = calloc(count, sizeof(*order));
	struct samples distance = { 0 };
	struct bench_row far = { 0 };
	struct tsc_offset offset;
	const struct seating *seating = &run->seating;
	uint64_t state = run->seed;
	int ret = order ? pin_this_thread(run->topology, run->seating.patcher) : -ENOMEM;

	for (size_t i = 0; i < count && order; i++)
		order[i] = i;
	for (unsigned round = 0; round < run->rounds && ret == 0; round++) {
		/*
		 * How far apart patcher and first executor are. A hypervisor may move them: then
		 * every figure that is a trip of a line changes with it.
		 */
		if (seating->executors && seating->executor[0] != seating->patcher &&
		    tsc_offset_measure(run->topology, seating->patcher, seating->executor[0],
				       &offset) == 0)
			samples_add(&distance, (double)offset.error);
		ret = one_round(run, cases, count, round, order, &state);
	}
	for (size_t i = 0; i < count; i++)
		for (unsigned which = 0; which < 2; which++)
			if (ret == 0 && (!which || cases[i].second_measure))
				ret = add_row(&cases[i], which, run->seed, result);
	for (size_t i = 0; i < count; i++)
		for (unsigned which = 0; which < 2; which++) {
			samples_free(&cases[i].samples[which]);
			samples_free(&cases[i].base_samples[which]);
		}
	samples_end_block(&distance);
	/* The least and the most also of earlier calls for this result, NAN if there are none. */
	if (distance.count && samples_sum_up(&distance, NULL, run->seed, &far) == 0)
		result->distance = (struct bench_value){ far.value.median,
							 fmin(far.least, result->distance.low),
							 fmax(far.most, result->distance.high) };
	samples_free(&distance);
	free(order);
	return ret;
}

int bench_result_begin(const struct bench_run *run, const char *benchmark,
		       struct bench_result *result, struct bench_watch *watch)
{
	int ret = pin_this_thread(run->topology, run->seating.patcher);
	struct pc_status status;

	*result = (struct bench_result){
		.seed = run->seed,
		.rounds = run->rounds,
		.seating = run->seating,
		.distance = { NAN, NAN, NAN },
	};
	snprintf(result->benchmark, sizeof(result->benchmark), "%s", benchmark);
	witness_clear(&result->witness);
	if (ret < 0)
		return ret;
	/* Whether policy wait may be used here, and by which waits. */
	if (pc_set_policy(PC_POLICY_WAIT) == 0 && pc_get_status(&status) == 0)
		result->waits =
			(struct waits){ status.first_wait, status.second_wait, status.stretch };
	pc_set_policy(PC_POLICY_AUTO);
	witness_before(&result->witness, run->topology, &run->seating);
	watch->seconds = seconds_now();
	getrusage(RUSAGE_SELF, &watch->usage);
	witness_mark(&run->seating, &watch->mark);
	return 0;
}

void bench_result_end(const struct bench_run *run, struct bench_result *result,
		      struct bench_watch *watch)
{
	struct witness *witness = &result->witness;

	/*
	 * Of the whole process: an executor that was pushed off its CPU spoils as much as a
	 * patcher that was.
	 */
	witness_add_usage(witness, RUSAGE_SELF, &watch->usage);
	result->seconds = seconds_now() - watch->seconds;
	witness_end(witness, &run->seating, &watch->mark, result->seconds);
	witness_after(witness);
	date_text(time(NULL), false, result->date);
}

int bench_ask_child(void (*work)(void *arg, void *answer), void *arg, void *answer, size_t size,
		    double seconds, char *why)
{
	struct pollfd from = { .events = POLLIN };
	int ends[2], ready;
	pid_t child;
	bool told;

	if (pipe(ends) < 0)
		return bench_say(why, "pipe", -errno);
	from.fd = ends[0];
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		work(arg, answer);
		_exit(write(ends[1], answer, size) != (ssize_t)size);
	}
	close(ends[1]);
	ready = child < 0 ? -errno : poll(&from, 1, (int)(seconds * 1000));
	told = ready > 0 && read(ends[0], answer, size) == (ssize_t)size;
	close(ends[0]);
	if (child < 0)
		return bench_say(why, "fork", ready);
	if (!told)
		kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		continue;
	if (told)
		return 0;
	if (ready == 0)
		snprintf(why, BENCH_WHY, "not done in %.1f s", seconds);
	else
		snprintf(why, BENCH_WHY, "its process died");
	return ready < 0 ? -EINTR : -ETIMEDOUT;
}

void bench_policy_refused(enum pc_policy policy, char *why)
{
	struct pc_status status = { 0 };

	pc_get_status(&status);
	snprintf(why, BENCH_WHY, "refused by the library: %.120s",
		 policy == PC_POLICY_MEMBARRIER ? "no membarrier SYNC_CORE" : status.reason);
}

int bench_set_policy(enum pc_policy policy, char *why)
{
	int ret = pc_set_policy(policy);

	if (ret == 0 || policy == PC_POLICY_AUTO)
		return 0;
	bench_policy_refused(policy, why);
	return ret;
}

const char *bench_policy_name(enum pc_policy policy)
{
	static const char *const names[] = {
		[PC_POLICY_AUTO] = "auto",
		[PC_POLICY_WAIT] = "wait",
		[PC_POLICY_MEMBARRIER] = "membarrier",
		[PC_POLICY_QUIET] = "quiet",
	};

	return names[policy];
}

int bench_say(char *why, const char *what, int ret)
{
	snprintf(why, BENCH_WHY, "%s: %s", what, strerror(-ret));
	return ret;
}
