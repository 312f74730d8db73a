/* SPDX-License-Identifier: MIT */
/* Values of metrics: of all threads that a metric is about, by its aggregate operator. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "commands/fastinst/metrics.h"
#include "metrics/agent/values.h"

struct aggregate {
	int64_t sum, min, max;
	size_t threads;
};

struct aggregates {
	const struct metrics_run *run;
	struct aggregate *all; /* one for each metric */
};

static bool is_of_thread(const struct values_slot *slot, const char *thread)
{
	uint64_t tid;

	if (!thread || !strncmp(slot->name, thread, sizeof(slot->name)))
		return true;
	return number_in(thread, 1, UINT32_MAX, &tid) && slot->tid == tid;
}

/* The thread that took the slot is there, and is no other one that has its number by now. */
static bool is_alive(const struct values_slot *slot, uint32_t pid)
{
	char path[64], name[sizeof(slot->name)] = "";
	FILE *comm;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", pid, slot->tid);
	comm = fopen(path, "re");
	if (!comm)
		return false;
	if (fgets(name, sizeof(name), comm))
		name[strcspn(name, "\n")] = '\0';
	fclose(comm);
	return !strncmp(name, slot->name, sizeof(name));
}

/* When the slot's process had its end, or now, by the clock of a timer; 0: that is not known. */
static int64_t timer_now(enum mdl_type type, const struct values_slot *slot,
			 const struct values_file *file)
{
	clockid_t clock = CLOCK_MONOTONIC;
	struct timespec now;

	if (type == MDL_THREAD_TIMER)
		return 0;
	if (file->ended)
		return !slot->was_alive		   ? 0
		       : type == MDL_PROCESS_TIMER ? file->ended_cpu
						   : file->ended;
	if (!is_alive(slot, file->pid) ||
	    (type == MDL_PROCESS_TIMER && clock_getcpuclockid((pid_t)file->pid, &clock)) ||
	    clock_gettime(clock, &now))
		return 0;
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* What a timer has run since it was started; it is counted where that is not known. */
static int64_t running_time(struct measured_metric *measured, const struct value_copy *copy,
			    const struct values_slot *slot, const struct values_file *file)
{
	int64_t now;

	if (measured->type == MDL_COUNTER || copy->depth <= 0)
		return 0;
	now = timer_now(measured->type, slot, file);
	measured->running += !now;
	return now > copy->start ? now - copy->start : 0;
}

static void add_slot(const struct values_slot *slot, const struct values_file *file, void *data)
{
	const struct aggregates *look = data;

	for (size_t i = 0; i < look->run->measured_n; i++) {
		struct measured_metric *measured = &look->run->measured[i];
		struct aggregate *to = &look->all[i];
		struct value_copy copy;
		int64_t value;

		if (!is_of_thread(slot, measured->thread))
			continue;
		/* A timer in the midst of a change is taken without what it runs. */
		if (value_read(&slot->value[i], &copy))
			copy.depth = 0;
		value = copy.value + running_time(measured, &copy, slot, file);
		to->sum += value;
		to->min = !to->threads || value < to->min ? value : to->min;
		to->max = !to->threads || value > to->max ? value : to->max;
		to->threads++;
	}
}

static double aggregate_value(const struct measured_metric *measured, const struct aggregate *all)
{
	double unit = measured->type == MDL_COUNTER ? 1 : 1e9;

	switch (measured->metric->aggregate) {
	case MDL_MIN:
		return (double)all->min / unit;
	case MDL_MAX:
		return (double)all->max / unit;
	case MDL_AVG:
		return all->threads ? (double)all->sum / unit / (double)all->threads : 0;
	default:
		return (double)all->sum / unit;
	}
}

/* Whole numbers as they are. */
static void print_value(FILE *out, double value)
{
	if (value == (double)(int64_t)value)
		fprintf(out, "%18" PRId64, (int64_t)value);
	else
		fprintf(out, "%18.6f", value);
}

static void print_metric(struct metrics_run *run, struct measured_metric *measured,
			 const struct aggregate *all, double seconds, bool at_end)
{
	double value = aggregate_value(measured, all), shown = value;
	enum mdl_units units = measured->metric->units_type;

	if (units != MDL_SAMPLED && !at_end)
		shown -= measured->before;
	if (units == MDL_NORMALIZED)
		shown = seconds > 0 ? shown / seconds : 0;
	measured->before = value;
	if (at_end && !was_measured(measured))
		fprintf(run->out, "%18s", "-");
	else
		print_value(run->out, shown);
	fprintf(run->out, " %-12s %s\n", measured->metric->units ? measured->metric->units : "",
		measured->metric->name.text);
}

bool was_measured(const struct measured_metric *measured)
{
	return measured->all.processes && measured->all.places;
}

void print_metrics(struct metrics_run *run, bool at_end)
{
	struct aggregates look = { run, calloc(run->measured_n, sizeof(*look.all)) };
	double now = seconds_now();

	if (!look.all)
		return;
	for (size_t i = 0; i < run->measured_n; i++)
		run->measured[i].running = 0;
	values_read(run->folder, run->values, add_slot, &look);
	for (size_t i = 0; i < run->measured_n; i++) {
		if (run->every > 0 && !at_end)
			fprintf(run->out, "%10.3f", now - run->start);
		else if (run->every > 0)
			fputs("       end", run->out);
		print_metric(run, &run->measured[i], &look.all[i],
			     at_end ? now - run->start : now - run->printed, at_end);
	}
	run->printed = now;
	fflush(run->out);
	free(look.all);
}
