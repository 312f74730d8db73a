/* SPDX-License-Identifier: MIT */
#include "stress/run/trace_log.h"

#include "patchcore/machine/wait.h"
#include "stress/witness/witness.h"

static struct trace_entry *entry_of(struct trace_log *log, uint64_t toggle)
{
	return &log->entry[toggle % TRACE_TOGGLES];
}

struct word_trace *trace_begin(struct trace_log *log, uint64_t toggle)
{
	struct trace_entry *entry = entry_of(log, toggle);

	*entry = (struct trace_entry){ .begun = ticks_now() };
	log->toggles = toggle + 1;
	return &entry->trace;
}

void trace_end(struct trace_log *log, uint64_t toggle, struct witness *witness)
{
	const struct word_trace *trace = &entry_of(log, toggle)->trace;
	uint64_t latency = trace->latency[0];

	for (unsigned i = 0; i < 2; i++)
		if (trace->step[i])
			witness_step(witness, trace->step[i]);
	if (!latency)
		return;
	log->latencies++;
	log->latency[gap_bucket(latency)]++;
	if (latency > log->latency_max)
		log->latency_max = latency;
}

/* When the site could not be run as a whole any more. */
static uint64_t closed_at(const struct trace_entry *entry)
{
	return entry->trace.visible[0] ? entry->trace.visible[0] : entry->begun;
}

uint64_t trace_tears(struct trace_log *log, const struct code *code, unsigned executor,
		     unsigned site, const struct code_slots *slots, struct cell_result *result)
{
	uint64_t made = __atomic_load_n(&slots->marks, __ATOMIC_ACQUIRE);
	struct trace_seen *seen = &log->seen[executor][site];
	uint64_t number = seen->marks, twice = 0;
	const struct trace_entry *entry;
	const struct word_trace *trace;
	struct tear_event *event;
	struct code_mark mark;
	uint64_t toggle, known;

	seen->marks = made;
	if (!log->toggles)
		return 0;
	if (made - number >= CODE_MARKS)
		number = made - CODE_MARKS + 1;
	for (; number < made; number++) {
		if (!code_mark(slots, number, &mark))
			continue;
		/* Torn for the first time by this executor: has another one done so before? */
		toggle = code_mark_toggle(&mark);
		if (seen->torn_last != toggle + 1) {
			twice += log->torn[toggle % TRACE_TOGGLES] == toggle + 1;
			log->torn[toggle % TRACE_TOGGLES] = toggle + 1;
			seen->torn_last = toggle + 1;
		}
		if (result->events == TEAR_EVENTS_MAX)
			continue;
		/* The last toggle whose INT3 was visible by then; else the first that is known. */
		known = log->toggles < TRACE_TOGGLES ? log->toggles : TRACE_TOGGLES;
		toggle = log->toggles;
		while (known-- > 0)
			if ((int64_t)(mark.tsc - closed_at(entry_of(log, --toggle))) >= 0)
				break;
		entry = entry_of(log, toggle);
		trace = &entry->trace;
		event = &result->event[result->events++];
		*event = (struct tear_event){
			.toggle = toggle,
			.kind = code_mark_kind(code, &mark),
			.tsc = mark.tsc,
			.after_int3 = (int64_t)(mark.tsc - closed_at(entry)),
			.after_front = (int64_t)(mark.tsc - trace->visible[2]),
			.latency = { trace->latency[0], trace->latency[1], trace->latency[2] },
			.waited = { trace->waited[0], trace->waited[1] },
			.step = { trace->step[0], trace->step[1] },
			.executor = executor,
		};
	}
	return twice;
}

/* The middle of the bucket in which the one of that rank is, from 0. */
static uint64_t ranked(const struct trace_log *log, uint64_t rank)
{
	uint64_t below = 0;
	unsigned i = 0;

	while (i < GAP_BUCKETS - 1 && below + log->latency[i] <= rank)
		below += log->latency[i++];
	return gap_bucket_low(i) + (gap_bucket_low(i + 1) - gap_bucket_low(i)) / 2;
}

void trace_latency(const struct trace_log *log, struct latency *latency)
{
	if (!log->latencies)
		return;
	latency->median = ranked(log, log->latencies / 2);
	latency->p99 = ranked(log, log->latencies - 1 - log->latencies / 100);
	latency->max = log->latency_max;
}
