/* SPDX-License-Identifier: MIT */
#include "bench/record/targets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/method/samples.h"
#include "bench/record/bench_find.h"
#include "bench/record/bench_words.h"

/* What is expected of a row that does not say otherwise: hot, open, and with an executor. */
#define USUAL	    " ?mapping=open ?cache=hot ?executors=1"
#define ALONE	    " ?mapping=open ?cache=hot executors=0"
#define SAME_RISK   " ?risk=none"
#define OVER_FLOORS "(cost - waits) / floor"

struct judging;

/* A target, and how rows answer it. */
struct rule {
	const char *what;
	const char *unit;
	const char *paper;
	const char *benchmark;
	void (*judge)(struct judging *j);
	const char *name, *measure, *params; /* of our rows, as bench_is() takes them */
	const char *other, *with;	     /* name and params of those they are held against */
	double limit;
	bool most;
	bool even; /* no difference is as good as better */
};

struct judging {
	const struct rule *rule;
	const struct bench_result *result;
	struct target *target;
	bool any;
};

/* --- One row ------------------------------------------------------------------------ */

static enum target_state judge_value(const struct rule *rule, struct bench_value v)
{
	double best = rule->most ? v.low : v.high, worst = rule->most ? v.high : v.low;
	double sign = rule->most ? 1 : -1;

	if (sign * worst <= sign * rule->limit)
		return TARGET_REACHED;
	if (sign * best > sign * rule->limit)
		return TARGET_MISSED;
	return rule->even ? TARGET_REACHED : TARGET_NOISE;
}

static bool is_worse(const struct judging *j, double median)
{
	double than = j->target->value.median;

	return !j->any || (j->rule->most ? median > than : median < than);
}

/* States in the order of what one row makes of all: missed, then noise, then reached. */
static enum target_state both(enum target_state a, enum target_state b)
{
	if (a == TARGET_MISSED || b == TARGET_MISSED)
		return TARGET_MISSED;
	return a == TARGET_NOISE || b == TARGET_NOISE ? TARGET_NOISE : TARGET_REACHED;
}

static void put_note(struct judging *j, const struct bench_row *row)
{
	char words[WORDS_ROOM];

	words_of_row(row, NULL, words, sizeof(words));
	snprintf(j->target->note, sizeof(j->target->note), "%.200s, %s%s", words, row->measure,
		 row->pairs < BOOTSTRAP_LEAST ? " (too few rounds)" : "");
}

/* True if it is the worst so far, which the note then tells. */
static bool take(struct judging *j, const struct bench_row *row, struct bench_value v)
{
	enum target_state state;
	bool worse;

	if (!isfinite(v.median))
		return false;
	if (!isfinite(v.low) || !isfinite(v.high))
		v.low = v.high = v.median;
	/* Of a few rounds the interval holds less than it says. */
	state = row->pairs < BOOTSTRAP_LEAST ? TARGET_NOISE : judge_value(j->rule, v);
	worse = is_worse(j, v.median);
	j->target->state = j->any ? both(j->target->state, state) : state;
	if (worse) {
		j->target->value = v;
		put_note(j, row);
	}
	j->any = true;
	return worse;
}

static const struct bench_row *next_row(const struct judging *j, unsigned *i)
{
	return bench_next(j->result, j->rule->name, j->rule->measure, j->rule->params, i);
}

/* --- Ways to judge --------------------------------------------------------------------- */

static void judge_ratio(struct judging *j)
{
	const struct bench_row *row;
	unsigned i = 0;

	while ((row = next_row(j, &i)))
		take(j, row, row->ratio);
}

/* What a straddler costs beyond its two waits, which it must stand still for. */
static void judge_waits(struct judging *j)
{
	double waits = (double)(j->result->first_wait + j->result->second_wait);
	const struct bench_value still = { waits, waits, waits };
	const struct bench_row *row;
	unsigned i = 0;

	while (j->result->first_wait && (row = next_row(j, &i)))
		take(j, row, value_over(value_less(row->value, still), row->base));
}

/* Costs are compared only where both had as much to do. */
static bool alike(const struct bench_row *a, const struct bench_row *b)
{
	static const char *const texts[] = { "split", "crossing", "mode" };
	double of_a = bench_row_number(a, "executors"), of_b = bench_row_number(b, "executors");

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *p = bench_row_text(a, texts[i]), *q = bench_row_text(b, texts[i]);

		if (p && q && strcmp(p, q) != 0)
			return false;
	}
	return strcmp(a->measure, b->measure) == 0 && !(of_a < of_b || of_a > of_b);
}

/* How many times dearer the others are. */
static void judge_others(struct judging *j)
{
	const struct bench_row *ours, *other;

	for (unsigned i = 0; (ours = next_row(j, &i));)
		for (unsigned k = 0;
		     (other = bench_next(j->result, j->rule->other, NULL, j->rule->with, &k));)
			if (alike(ours, other))
				take(j, ours, row_over(other, ours));
}

/* Against the cheapest of the others. */
static void judge_best(struct judging *j)
{
	const struct bench_row *ours, *other, *best;

	for (unsigned i = 0; (ours = next_row(j, &i));) {
		best = NULL;
		for (unsigned k = 0;
		     (other = bench_next(j->result, j->rule->other, NULL, j->rule->with, &k));)
			if (alike(ours, other) &&
			    (!best || other->value.median < best->value.median))
				best = other;
		if (best)
			take(j, ours, row_over(ours, best));
	}
}

/* One that was toggled less often than asked had less to bear: it can only fail. */
static void judge_share(struct judging *j)
{
	const struct bench_row *row;
	unsigned i = 0;

	while ((row = next_row(j, &i))) {
		double got = bench_row_extra_of(row, "toggles_per_s");
		bool slow = got < 0.9 * bench_row_number(row, "rate");

		if (!slow || judge_value(j->rule, row->ratio) == TARGET_MISSED)
			take(j, row, row->ratio);
		else if (!j->any)
			snprintf(j->target->note, sizeof(j->target->note),
				 "no more than %.3g toggles/s were got", got);
	}
}

/*
 * By counts, as in the paper; or of the time in either state where that is told: against a
 * NOP, counts say mostly that a NOP is faster.
 */
static double balance_of(const struct bench_row *row, bool by_time)
{
	double of_time = bench_row_extra_of(row, "balance_time");

	return isnan(of_time) || !by_time ? bench_row_extra_of(row, "balance") : of_time;
}

/* As the paper does: the geometric mean over all runs. The interval is from best to worst. */
static void judge_balances(struct judging *j, bool by_time)
{
	double sum = 0, least = INFINITY, most = 0;
	const struct bench_row *row;
	unsigned i = 0, count = 0;
	bool few = false;

	while ((row = next_row(j, &i))) {
		double balance = balance_of(row, by_time);

		if (!(balance >= 1) || !(bench_row_number(row, "rate") > 0))
			continue;
		if (balance > most)
			put_note(j, row);
		few = few || row->pairs < BOOTSTRAP_LEAST;
		most = fmax(most, balance);
		least = fmin(least, balance);
		sum += log(balance);
		count++;
	}
	if (!count)
		return;
	j->any = true;
	j->target->value = (struct bench_value){ exp(sum / count), least, most };
	if (few)
		j->target->state = TARGET_NOISE;
	else
		j->target->state =
			j->target->value.median <= j->rule->limit ? TARGET_REACHED : TARGET_MISSED;
}

static void judge_counts(struct judging *j)
{
	judge_balances(j, false);
}

static void judge_times(struct judging *j)
{
	judge_balances(j, true);
}

static struct bench_value over_of(const struct bench_row *row)
{
	struct bench_value over = { bench_row_extra_of(row, "over_empty"),
				    bench_row_extra_of(row, "over_low"),
				    bench_row_extra_of(row, "over_high") };

	return isfinite(over.low) && isfinite(over.high) ? over : value_less(row->value, row->base);
}

static void judge_over(struct judging *j)
{
	const struct bench_row *row;
	unsigned i = 0;

	while ((row = next_row(j, &i)))
		take(j, row, over_of(row));
}

/* --- The targets ---------------------------------------------------------------------- */

static const struct rule rules[] = {
	{ "a change within the atomic window", "x floor", "300 on, 120 off", "toggle", judge_ratio,
	  "aligned", "on off", USUAL, NULL, NULL, 1.25, true, false },
	{ "a call switched on or off, every split", "x floor", "432 on, 315 off", "toggle",
	  judge_ratio, "call", "on off", USUAL, NULL, NULL, 1.25, true, false },
	{ "a straddler beyond its waits, policy wait", OVER_FLOORS, "8850 on, 8435 off", "toggle",
	  judge_waits, "straddler", "on off", "policy=wait" USUAL, NULL, NULL, 4, true, false },
	{ "a straddler left to be finished, in the caller", "x floor", "low, unimodal", "toggle",
	  judge_ratio, "start", NULL, USUAL, NULL, NULL, 2, true, false },
	{ "a straddler of a batch of 1024", "x floor", "", "toggle", judge_ratio, "batch", NULL,
	  "batch=1024 ?policy=auto" SAME_RISK USUAL, NULL, NULL, 5, true, false },
	{ "a straddler by membarrier against one by wait", "x dearer", "", "toggle", judge_others,
	  "straddler", "on off", "policy=wait" USUAL, "straddler", "policy=membarrier" USUAL, 10,
	  false, false },
	{ "a batch of 1024 by auto against the better policy", "x its cost", "", "toggle",
	  judge_best, "batch", NULL, "batch=1024 policy=auto risk=any" USUAL, "batch",
	  "batch=1024 policy!=auto" USUAL, 1, true, true },
	{ "stopping the world by signals against a call", "x dearer", "", "toggle", judge_others,
	  "call", "on off", USUAL, "stop-the-world", USUAL, 50, false, false },
	{ "stopping the world by signals against a straddler by wait", "x dearer", "", "toggle",
	  judge_others, "straddler", "on off", "policy=wait" USUAL, "stop-the-world", USUAL, 50,
	  false, false },
	{ "stopping by ptrace against a call", "x dearer", "1,929,244 on (Dyninst)", "toggle",
	  judge_others, "call", "on off", USUAL, "ptrace", USUAL, 500, false, false },
	{ "stopping by ptrace against a straddler by wait", "x dearer", "1,929,244 on (Dyninst)",
	  "toggle", judge_others, "straddler", "on off", "policy=wait" USUAL, "ptrace", USUAL, 500,
	  false, false },
	{ "JVM VolatileCallSite.setTarget against a call, both hot", "x dearer", "", "toggle",
	  judge_others, "call", "on off", USUAL, "jvm-volatile", USUAL, 2, false, false },
	{ "JVM VolatileCallSite.setTarget against a call, nobody there", "x dearer", "995",
	  "toggle", judge_others, "call", "on off", ALONE, "jvm-volatile", ALONE, 2, false, false },
	{ "calls through a toggled call, 100,000 toggles/s", "of untouched", "flat", "throughput",
	  judge_share, "call", "calls", "rate=100000", NULL, NULL, 0.98, false, false },
	{ "calls through an aligned patch, 100,000 toggles/s", "of untouched", "flat", "throughput",
	  judge_share, "aligned", "calls", "rate=100000", NULL, NULL, 0.98, false, false },
	{ "calls through a straddler by wait, 100,000 toggles/s", "of untouched", "flat",
	  "throughput", judge_share, "straddler", "calls", "rate=100000 policy=wait", NULL, NULL,
	  0.98, false, false },
	{ "calls through a toggled call, 1,000,000 toggles/s", "of untouched", "drops",
	  "throughput", judge_share, "call", "calls", "rate=1000000", NULL, NULL, 0.75, false,
	  false },
	{ "calls through an aligned patch, 1,000,000 toggles/s", "of untouched", "drops",
	  "throughput", judge_share, "aligned", "calls", "rate=1000000", NULL, NULL, 0.75, false,
	  false },
	{ "calls through a straddler by wait, 1,000,000 toggles/s", "of untouched", "drops",
	  "throughput", judge_share, "straddler", "calls", "rate=1000000 policy=wait", NULL, NULL,
	  0.75, false, false },
	{ "balance of a call toggled 50:50, executions", "more : less", "2.7; Java 38.7",
	  "throughput", judge_counts, "call", "calls", NULL, NULL, NULL, 1.5, true, false },
	{ "balance of a call toggled 50:50, time", "more : less", "", "throughput", judge_times,
	  "call", "calls", NULL, NULL, NULL, 1.5, true, false },
	{ "balance of a patch toggled 50:50, executions", "more : less", "2.5; Java 38.7",
	  "throughput", judge_counts, "aligned straddler", "calls", "?policy=wait", NULL, NULL, 1.5,
	  true, false },
	{ "balance of a patch toggled 50:50, time", "more : less", "", "throughput", judge_times,
	  "aligned straddler", "calls", "?policy=wait", NULL, NULL, 1.5, true, false },
	{ "a deactivated site in a loop", "ticks over none", "1 to 2", "latent", judge_over,
	  "call nop", "pass", "split!=1|4", NULL, NULL, 2, true, false },
	{ "a deactivated site in a loop, split 1|4", "ticks over none", "4", "latent", judge_over,
	  "call nop", "pass", "split=1|4", NULL, NULL, 4, true, false },
};

#define RULES (sizeof(rules) / sizeof(rules[0]))

_Static_assert(RULES <= TARGETS_MAX, "more targets than callers have room for");

/* Of two that are compared, either may be what is missing. */
static void put_why(const struct judging *j)
{
	const struct rule *rule = j->rule;
	const struct bench_row *row =
		bench_skipped(j->result, rule->name, rule->measure, rule->params);

	if (!row && rule->other)
		row = bench_skipped(j->result, rule->other, NULL, rule->with);
	if (!j->result)
		snprintf(j->target->note, sizeof(j->target->note), "no benchmark %s",
			 rule->benchmark);
	else if (row)
		snprintf(j->target->note, sizeof(j->target->note), "%s: %s", row->name, row->why);
	else if (rule->judge == judge_waits && !j->result->first_wait)
		snprintf(j->target->note, sizeof(j->target->note), "no waits are in use");
	else
		snprintf(j->target->note, sizeof(j->target->note), "no such row");
}

static struct target judge(const struct rule *rule, const struct bench_result *result)
{
	struct target target = {
		.what = rule->what,
		.unit = rule->unit,
		.paper = rule->paper,
		.most = rule->most,
		.limit = rule->limit,
		.value = { NAN, NAN, NAN },
		.state = TARGET_UNKNOWN,
	};
	struct judging j = { .rule = rule, .result = result, .target = &target };

	if (result)
		rule->judge(&j);
	if (!j.any && !target.note[0])
		put_why(&j);
	return target;
}

size_t targets_of(const struct bench_result *results, size_t count, struct target *targets,
		  size_t room)
{
	for (size_t i = 0; i < RULES && i < room; i++)
		targets[i] = judge(&rules[i], bench_of(results, count, rules[i].benchmark));
	return RULES;
}

const char *target_state_text(enum target_state state)
{
	static const char *const texts[] = {
		[TARGET_REACHED] = "reached",
		[TARGET_MISSED] = "missed",
		[TARGET_NOISE] = "within the noise",
		[TARGET_UNKNOWN] = "not measured",
	};

	return texts[state];
}

static void print_one(const struct target *t, FILE *out)
{
	fprintf(out, "  %-56s ", t->what);
	if (t->state == TARGET_UNKNOWN)
		fprintf(out, "not measured: %s\n", t->note);
	else
		fprintf(out, "%.3g [%.3g, %.3g] %s, %s %g: %s\n", t->value.median, t->value.low,
			t->value.high, t->unit, t->most ? "at most" : "at least", t->limit,
			target_state_text(t->state));
}

void targets_print(const struct bench_result *results, size_t count, FILE *out)
{
	struct target targets[TARGETS_MAX];
	size_t all = targets_of(results, count, targets, TARGETS_MAX);

	fputs("Targets, each by the row that has the least to spare:\n", out);
	for (size_t i = 0; i < all; i++)
		if (bench_of(results, count, rules[i].benchmark))
			print_one(&targets[i], out);
}
