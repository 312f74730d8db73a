/* SPDX-License-Identifier: MIT */
/*
 * fastinst metrics: run a program, and measure what texts in the metric description language say.
 * The agent plans and counts (metrics/agent/agent.c); the values are in files that are read while
 * the program runs, and at its end.
 */
#include "commands/fastinst/metrics.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/text.h"
#include "base/text_file.h"
#include "metrics/agent/agent.h"
#include "metrics/agent/values.h"

#define TEXT_MOST 100000 /* bytes: what an environment takes in one variable */

/* --- What is asked for ------------------------------------------------------------------------ */

static bool add_text(struct metrics_run *run, const char *name, char *text)
{
	struct metric_text one = { .name = name, .text = text };

	return text && !ARRAY_ADD(run->texts, run->texts_n, one);
}

static bool take_text(const struct option_row *row, const char *text, void *request, char *why)
{
	(void)row;
	return add_text(request, "-e", strdup(text)) ||
	       option_refuse(why, "there is no memory for it");
}

static bool take_file(const struct option_row *row, const char *path, void *request, char *why)
{
	char *text = text_file_read(path);

	(void)row;
	if (!text && errno != ENOMEM)
		snprintf(why, OPTION_WHY, "it cannot be read: %s",
			 errno == EINVAL ? "it is empty" : strerror(errno));
	else if (!add_text(request, path, text))
		option_refuse(why, "there is no memory for it");
	return text != NULL;
}

static bool take_metric(const struct option_row *row, const char *name, void *request, char *why)
{
	struct metrics_run *run = request;

	(void)row;
	return !ARRAY_ADD(run->names, run->names_n, name) ||
	       option_refuse(why, "there is no memory for it");
}

static bool take_focus(const struct option_row *row, const char *path, void *request, char *why)
{
	struct metric_request *focus = &((struct metrics_run *)request)->focus;

	(void)row;
	if (*path != '/' || strpbrk(path, "\t\n"))
		return option_refuse(why, "a focus is a path, such as /Code/main.c/parse");
	if (focus->foci_n == FOCI_MAX)
		return option_refuse(why, "there are too many");
	focus->foci[focus->foci_n++] = path;
	return true;
}

static int measure_metric(struct metrics_run *run, const char *name)
{
	struct measured_metric one = { .metric = mdl_metric_named(&run->mdl, name) };

	if (one.metric)
		return ARRAY_ADD(run->measured, run->measured_n, one);
	return complain(-ENOENT, 0, "there is no metric %s; \"fastinst metrics --list\" shows all",
			name);
}

/* Those of --metric; without it, those of the texts that were given, which stand behind the
 * library. */
static int choose_metrics(struct metrics_run *run, unsigned library_lines)
{
	int ret = 0;

	for (size_t i = 0; i < run->names_n && !ret; i++)
		ret = measure_metric(run, run->names[i]);
	for (const struct mdl_metric *one = run->mdl.metrics; one && !ret; one = one->next)
		if (!run->names_n && one->name.place.line > library_lines)
			ret = measure_metric(run, one->name.text);
	return ret;
}

/* Each for a program that has all: what cannot be asked for is told before the program runs. */
static int check_requests(struct metrics_run *run)
{
	struct metric_request request = run->focus;
	struct metric_plan plan;
	struct mdl_error error;
	int ret = 0;

	request.flavor = run->flavor;
	request.next_value = (uint32_t)run->measured_n;
	for (size_t i = 0; i < run->measured_n && !ret; i++) {
		struct measured_metric *measured = &run->measured[i];

		request.metric = measured->metric->name.text;
		request.value = (uint32_t)i;
		ret = plan_metric(&run->mdl, &request, &no_program, &plan, &error);
		measured->type = plan.type;
		measured->thread = plan.thread;
		request.next_value = plan.next_value;
		plan_free(&plan);
		if (ret)
			complain(0, ret == -EINVAL ? 0 : ret, "%s", error.text);
	}
	run->values = request.next_value;
	if (!ret && run->values > VALUES_MAX)
		ret = complain(-E2BIG, 0, "more than %d variables are asked for", VALUES_MAX);
	return ret;
}

static int ask_for_metrics(struct metrics_run *run)
{
	unsigned library_lines = run->no_library ? 0 : run->texts[0].lines;

	if (choose_metrics(run, library_lines) < 0 || check_requests(run) < 0)
		return STATUS_FAILED;
	if (!run->measured_n)
		return refuse_usage("no metric is asked for: --metric, -e or --file name some");
	return STATUS_OK;
}

/* --- The program ------------------------------------------------------------------------------ */

static int set_requests(const struct metrics_run *run)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int ret;

	if (!out)
		return -ENOMEM;
	fprintf(out, "%s\n", run->flavor ? run->flavor : "");
	for (size_t i = 0; i < run->measured_n; i++) {
		fputs(run->measured[i].metric->name.text, out);
		for (size_t k = 0; k < run->focus.foci_n; k++)
			fprintf(out, "\t%s", run->focus.foci[k]);
		fputc('\n', out);
	}
	ret = fclose(out) ? -ENOMEM : 0;
	if (!ret && strlen(run->whole) + size > TEXT_MOST)
		ret = -E2BIG;
	if (!ret && (setenv(METRICS_TEXT, run->whole, 1) || setenv(METRICS_REQUESTS, text, 1) ||
		     setenv(METRICS_VALUES, run->folder, 1)))
		ret = -errno;
	free(text);
	return ret;
}

/* A line for each metric each interval, until the program is over. */
static void *print_intervals(void *arg)
{
	struct metrics_run *run = arg;
	double next = run->start + run->every;

	pthread_mutex_lock(&run->lock);
	while (!run->over) {
		struct timespec until = { .tv_sec = (time_t)next,
					  .tv_nsec = (long)((next - (double)(time_t)next) * 1e9) };

		if (pthread_cond_clockwait(&run->over_changed, &run->lock, CLOCK_MONOTONIC,
					   &until) != ETIMEDOUT)
			continue;
		print_metrics(run, false);
		next += run->every;
	}
	pthread_mutex_unlock(&run->lock);
	return NULL;
}

/* A process makes plans again when it has loaded objects: the last one counts. */
static void take_plan(struct metrics_run *run, char *line)
{
	uint64_t number, places, left_out;
	struct metric_report *last;
	char *field[4];

	if (text_fields(&line, field, 4) != 4 ||
	    !number_in(field[0], 0, run->measured_n - 1, &number) ||
	    !number_in(field[1], 0, UINT32_MAX, &places) ||
	    !number_in(field[2], 0, UINT32_MAX, &left_out))
		return;
	last = &run->measured[number].last;
	free(last->why);
	*last = (struct metric_report){ 1, places, left_out, *field[3] ? strdup(field[3]) : NULL };
}

/* A metric that no process can measure is a failure; one that some cannot is none. */
static void add_process(struct metrics_run *run)
{
	for (size_t i = 0; i < run->measured_n; i++) {
		struct metric_report *last = &run->measured[i].last, *all = &run->measured[i].all;

		if (last->why) {
			free(all->why);
			all->why = last->why;
		} else {
			all->processes += last->processes;
			all->places += last->places;
			all->left_out += last->left_out;
		}
		*last = (struct metric_report){ 0 };
	}
}

static int take_line(char *line, void *arg)
{
	struct metrics_run *run = arg;
	char *field[2];
	uint64_t lost, missed;

	if (!line)
		add_process(run);
	if (!line || !*line || line[1] != '\t')
		return 0;
	if (*line == 'A') {
		remark("not all probes could be turned on: %s", line + 2);
		run->failed = true;
	}
	if (*line == 'P')
		take_plan(run, line + 2);
	line += 2;
	if (line[-2] != 'E' || text_fields(&line, field, 2) != 2 ||
	    !number_in(field[0], 0, UINT64_MAX, &lost) ||
	    !number_in(field[1], 0, UINT64_MAX, &missed))
		return 0;
	run->ended++;
	run->lost += lost;
	run->missed += missed;
	return 0;
}

static const char *reason_of(const struct metric_report *all)
{
	if (all->left_out)
		return "nothing is left";
	if (all->processes)
		return "it has no procedures with probes: compile with "
		       "-fpatchable-function-entry=5, or take --entries";
	return all->why ? all->why : "no process took the agent: is the program linked statically?";
}

/* What is not in the values, or may not be. */
static void remark_on(struct metrics_run *run)
{
	for (size_t i = 0; i < run->measured_n; i++) {
		const struct measured_metric *measured = &run->measured[i];
		const char *name = measured->metric->name.text;

		if (measured->all.left_out)
			remark("%s: %zu procedure%s left out, as not all points that it needs "
			       "have probes; fastinst(7) says how to compile",
			       name, measured->all.left_out, S(measured->all.left_out));
		if (measured->running)
			remark("%s: %zu timer%s not stopped before the end; the time since "
			       "the start is left out",
			       name, measured->running, measured->running == 1 ? " was" : "s were");
		if (was_measured(measured))
			continue;
		run->failed = true;
		remark("%s was not measured: %s", name, reason_of(&measured->all));
	}
	if (run->lost)
		remark("%llu event%s in signal handlers lost", (unsigned long long)run->lost,
		       S(run->lost));
	if (run->missed)
		remark("%llu event%s missed, as there was no memory for values",
		       (unsigned long long)run->missed, S(run->missed));
}

static int measure_program(struct metrics_run *run, char **argv)
{
	struct launch launch = { .agent = METRICS_AGENT,
				 .lost = "the number of its lost events is" };
	pthread_t thread;
	bool has_thread;
	int status;

	run->start = run->printed = seconds_now();
	has_thread = run->every > 0 && !pthread_create(&thread, NULL, print_intervals, run);
	status = launch_program(&launch, argv);
	pthread_mutex_lock(&run->lock);
	run->over = true;
	pthread_cond_signal(&run->over_changed);
	pthread_mutex_unlock(&run->lock);
	if (has_thread)
		pthread_join(thread, NULL);
	if (!launch.folder[0])
		return status;
	if (launch_reports(launch.folder, take_line, run) != 0)
		run->failed = true;
	print_metrics(run, true);
	remark_on(run);
	return !status && run->failed ? STATUS_FAILED : status;
}

static int run_metrics(struct metrics_run *run, char **argv)
{
	int status = STATUS_FAILED, ret;

	ending_ignore(SIGPIPE);
	ending_hold();
	strcpy(run->folder, "/dev/shm/fastinst-metrics-XXXXXX");
	ret = folder_make(run->folder);
	if (ret)
		ret = folder_make(strcpy(run->folder, "/tmp/fastinst-metrics-XXXXXX"));
	if (ret)
		return complain(STATUS_FAILED, ret, "no folder for values in /dev/shm or /tmp");
	set_environment(&run->asked);
	ret = set_requests(run);
	run->out = ret ? NULL : open_output(run->asked.output);
	if (ret)
		complain(0, ret, "the texts and requests cannot be handed to the program");
	if (run->out)
		status = measure_program(run, argv);
	folder_remove(run->folder);
	if (run->out && close_output(run->out, run->asked.output) && !status)
		status = STATUS_FAILED;
	return status;
}

/* --- The command ------------------------------------------------------------------------------ */

static const struct option_row options[] = {
	{ "metric", "NAME",
	  "this metric, of the library or of a text; may be given several times (all of the texts)",
	  OPTION_INTO(take_metric, struct metrics_run, names), .letter = 'm' },
	{ "focus", "PATH",
	  "only there: /Code/MODULE/PROCEDURE, /Code/MODULE, /Thread/NAME, or what a constraint "
	  "has; may be given several times, and all hold",
	  OPTION_INTO(take_focus, struct metrics_run, focus) },
	{ "text", "TEXT", "declarations, as mdl(5) explains; may be given several times",
	  OPTION_INTO(take_text, struct metrics_run, texts), .letter = 'e' },
	{ "file", "FILE", "declarations in a file; may be given several times",
	  OPTION_INTO(take_file, struct metrics_run, texts), .letter = 'f' },
	{ "no-library", NULL, "without the metrics and constraints that the package brings",
	  OPTION_FLAG(struct metrics_run, no_library) },
	{ "flavor", "NAME", "without metrics and lists of other flavors",
	  OPTION_TEXT(struct metrics_run, flavor) },
	{ "every", "TIME", "lines while the program runs, too, as 1s",
	  OPTION_TIME(struct metrics_run, every, 0) },
	{ "list", NULL, "show which metrics there are, and run nothing",
	  OPTION_FLAG(struct metrics_run, list) },
	{ "entries", "[=OBJECT]",
	  "take functions as well that nothing was compiled into, of the program or of objects of "
	  "these names (a glob); they have no probes at returns",
	  OPTION_TEXT(struct metrics_run, asked.entries) },
	{ "output", "FILE", "write there instead of to standard error",
	  OPTION_FILE(struct metrics_run, asked.output), .letter = 'o' },
	{ 0 },
};

static const struct command_line line = {
	.operands = "PROGRAM [ARGUMENT]... | --list",
	.program = true,
	.about =
		"Run a program, measure what metrics say, and print their values at the end, over\n"
		"all its processes and threads.\n",
	.options = { options },
	.end = "The exit status is the program's, or 128 and the signal that ended it.\n",
};

static void free_run(struct metrics_run *run)
{
	for (size_t i = 0; i < run->measured_n; i++)
		free(run->measured[i].all.why);
	for (size_t i = 0; i < run->texts_n; i++)
		free(run->texts[i].text);
	free(run->measured);
	free(run->texts);
	free(run->names);
	free(run->whole);
	mdl_free(&run->mdl);
}

int metrics_command(int argc, char **argv)
{
	struct metrics_run run = { .lock = PTHREAD_MUTEX_INITIALIZER,
				   .over_changed = PTHREAD_COND_INITIALIZER,
				   .asked.nothing_on = true };
	int status = command_line_parse(&line, argc, argv, &run, NULL);

	if (status == STATUS_OK && (optind == argc) != run.list)
		status = refuse_usage("it takes either a program to run or --list");
	if (status == STATUS_OK)
		status = read_metrics(&run);
	if (status == STATUS_OK && run.list)
		list_metrics(&run);
	else if (status == STATUS_OK)
		status = ask_for_metrics(&run);
	if (status == STATUS_OK && !run.list)
		status = run_metrics(&run, argv + optind);
	free_run(&run);
	return status;
}
