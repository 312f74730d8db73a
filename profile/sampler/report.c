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

static double ticks_of(const struct burst_address *place)
{
	double sum = 0;

	for (unsigned i = 0; i < SHARE_GROUPS; i++)
		sum += place->ticks[i];
	return sum;
}

/* Seconds of the process's CPU time, as bursts saw it. What is not known has no address. */
static void put_burst_address(FILE *out, const struct burst_address *place, double scale)
{
	double seconds[SHARE_GROUPS];

	for (unsigned i = 0; i < SHARE_GROUPS; i++)
		seconds[i] = place->ticks[i] * scale;
	fputc('S', out);
	if (!place->at || !report_address(out, place->at))
		fputs("\t\t0", out);
	report_numbers(out, seconds, SHARE_GROUPS);
}

static void put_bursts(FILE *out, double cpu)
{
	const struct burst_address *place = bursts_list();
	double sum = 0;

	for (uint32_t i = 0; i < BURST_ADDRESSES; i++)
		sum += ticks_of(&place[i]);
	for (uint32_t i = 0; i < BURST_ADDRESSES; i++)
		if (ticks_of(&place[i]) > 0)
			put_burst_address(out, &place[i], cpu / sum);
}

void report_profile(FILE *out)
{
	double seconds = clock_seconds(CLOCK_MONOTONIC) - account.began_at;
	double per_second = (double)(__builtin_ia32_rdtsc() - account.began) / seconds;
	double used = account.used > 0 ? account.used : INFINITY;
	const struct quality quality = {
		.seconds = seconds,
		.epochs = (double)account.epochs,
		.budget = asked.budget,
		.cost = account.spent / used,
		.toggles = (double)(account.toggles + load_relaxed(&watch_common.offs)),
		.toggling = cost_of_toggling() / used,
		.lost = (double)callers_lost(),
		.refused = (double)account.refused,
		.exits = (double)account.with_exits,
		.cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID),
	};
	const struct caller_count *callers;
	uint32_t n = fi_probes();

	fputc('Q', out);
	report_numbers(out, &quality, QUALITY_NUMBERS);
	for (uint32_t id = 0; id < n; id++)
		put_function(out, id, per_second);
	callers = callers_list(&n);
	for (uint32_t i = 0; i < n; i++)
		put_caller(out, &callers[i], per_second);
	put_bursts(out, quality.cpu);
	report_moments(out, &account.moments, per_second);
}
