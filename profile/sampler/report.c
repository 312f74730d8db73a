/* SPDX-License-Identifier: MIT */
/* What this process has learned. */
#include <math.h>
#include <time.h>

#include "profile/sampler/epochs.h"

static void put_probe(FILE *out, char letter, const struct fi_probe *probe)
{
	fputc(letter, out);
	report_text(out, probe->function);
	report_text(out, probe->object);
}

static struct duration in_seconds(const struct duration *ticks, double per_second)
{
	struct duration duration = *ticks;
	double variance = per_second * per_second;

	duration.time /= per_second;
	duration.wall /= per_second;
	duration.blur /= per_second;
	duration.spread.last /= per_second;
	duration.spread.squares /= variance;
	duration.spread.quads /= variance * variance;
	return duration;
}

/* Functions that were never called are left out: most functions of most programs. */
static void put_function(FILE *out, uint32_t id, double per_second)
{
	const struct function_state *function = &function_states[id];
	struct measured measured = { function->estimate,
				     in_seconds(&function->duration, per_second) };
	struct fi_probe probe;

	if (!(function->estimate.counted > 0) || fi_get(id, &probe) < 0)
		return;
	put_probe(out, 'F', &probe);
	report_numbers(out, &measured, MEASURED_NUMBERS);
}

static void put_caller(FILE *out, const struct caller_count *count, double per_second)
{
	double number[] = { (double)count->calls, (double)count->timed,
			    (double)count->time / per_second };
	struct fi_probe probe;

	if (!(number[0] + number[1] > 0) || fi_get(count->id, &probe) < 0)
		return;
	put_probe(out, 'C', &probe);
	if (report_address(out, count->from))
		report_numbers(out, number, 3);
	else
		fputc('\n', out);
}

void sampler_report(FILE *out)
{
	double seconds = clock_seconds(CLOCK_MONOTONIC) - account.began_at;
	double per_second = (double)(__builtin_ia32_rdtsc() - account.began) / seconds;
	double used = account.used > 0 ? account.used : INFINITY;
	const struct caller_count *callers;
	struct quality sum = account.sum;
	uint32_t n = fi_probes();

	sum.seconds = seconds;
	sum.budget = asked.budget;
	sum.cost = account.spent / used;
	sum.toggles += (double)load_relaxed(&watch_common.offs);
	sum.toggling = toggles_cost() / used;
	sum.lost = (double)callers_lost();
	sum.cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
	fputc('Q', out);
	report_numbers(out, &sum, QUALITY_NUMBERS);
	for (uint32_t id = 0; id < n; id++)
		put_function(out, id, per_second);
	callers = callers_list(&n);
	for (uint32_t i = 0; i < n; i++)
		put_caller(out, &callers[i], per_second);
	bursts_report(out, sum.cpu);
	report_moments(out, &account.moments, per_second);
}
