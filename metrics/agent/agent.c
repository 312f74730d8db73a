/* SPDX-License-Identifier: MIT */
/*
 * What "fastinst metrics" puts into a program. It plans each metric for this process and turns the
 * probes on; threads then run snippets at them, on values that the command reads. It finds in the
 * environment, by the names of metrics/agent/agent.h:
 *
 *	METRICS_TEXT	  what declares metrics
 *	METRICS_REQUESTS  a line of the flavor, "" for all, and one for each request: the metric,
 *and foci, with tabs between METRICS_VALUES	  the folder of values FASTINST_OUTPUT	  the folder
 *of reports FASTINST_ENTRIES  objects of which functions are taken that nothing was compiled into
 *
 * Its report has lines of a letter and fields with tabs between:
 *
 *	P request, how often code was put, procedures left out, why it cannot be measured or ""
 *	A why probes could not be turned on
 *	E at the end: events that were lost in signal handlers, and missed for lack of memory
 */
#include "metrics/agent/agent.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/counts/base.h"
#include "base/array.h"
#include "base/text.h"
#include "metrics/agent/program.h"
#include "metrics/agent/values.h"
#include "probes/include/fastinst.h"

struct request_state {
	struct metric_request request;
	struct metric_plan plan;
	struct mdl_error error;
};

/* A snippet at a probe; they are sorted by what stands before. */
struct placed {
	uint32_t id;
	bool post;
	int64_t order;
	const struct snippet *snippet;
};

static struct mdl mdl;
static struct request_state *states;
static size_t states_n;
static const char *folder; /* of reports */
static uint32_t looked_at; /* probes below that id have their code */
static const struct snippet *const *at_start, *const *at_exit; /* NULL behind the last one */
static uint32_t *active;
static size_t active_n;
static char activation[256]; /* why it failed */
static pid_t measured;	     /* the process; a child of vfork() is another one */
static bool started;

/* --- Events ----------------------------------------------------------------------------------- */

/* @data: snippets, and NULL */
FI_FUNCTION static void on_event(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	const struct snippet *const *snippet = data;
	struct mdl_value *values = values_own();

	(void)id;
	(void)site;
	for (; values && *snippet; snippet++)
		run_snippet(*snippet, values, regs);
}

/* A signal handler that runs a probe meanwhile would change the same values. */
static void run_events(const struct snippet *const *snippets)
{
	sigset_t all, before;

	if (!snippets)
		return;
	sigfillset(&all);
	sigdelset(&all, SIGTRAP);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	on_event(0, NULL, NULL, (void *)snippets);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* --- Code at probes --------------------------------------------------------------------------- */

static int compare_placed(const void *a, const void *b)
{
	const struct placed *one = a, *two = b;

	if (one->id != two->id)
		return one->id < two->id ? -1 : 1;
	if (one->post != two->post)
		return one->post ? 1 : -1;
	return (one->order > two->order) - (one->order < two->order);
}

/* Those of all requests, in the order of the text. What is prepended is before what was there. */
static struct placed *collect_placed(size_t *n)
{
	struct placed *placed = NULL;
	int64_t order = 0;

	*n = 0;
	for (struct request_state *state = states; state < states + states_n; state++)
		for (size_t i = 0; i < state->plan.n && !*state->error.text; i++) {
			const struct placement *from = &state->plan.placement[i];
			int64_t place = from->prepend ? -++order : ++order;

			if (from->id < looked_at)
				continue;
			if (ARRAY_ADD(placed, *n,
				      (struct placed){ from->id, from->post, place,
						       from->snippet })) {
				free(placed);
				return NULL;
			}
		}
	if (placed)
		qsort(placed, *n, sizeof(*placed), compare_placed);
	return placed;
}

static void set_snippets(uint32_t id, const struct snippet *const *snippets)
{
	if (id == AT_START || id == AT_EXIT) {
		if (!started)
			*(id == AT_START ? &at_start : &at_exit) = snippets;
		return;
	}
	fi_set_data(id, (void *)snippets);
	active[active_n++] = id;
}

static int turn_on(size_t first)
{
	int ret =
		fi_activate_how(active + first, active_n - first, on_event, FI_KEEPS_VECTORS_HERE);

	if (ret < 0)
		snprintf(activation, sizeof(activation), "%s", explain_error(ret));
	return ret;
}

/* Lists of snippets stay for ever: probes run them. */
static int place_snippets(void)
{
	size_t n, used = 0, first = active_n;
	struct placed *placed = collect_placed(&n);
	const struct snippet **lists = calloc(2 * n + 1, sizeof(*lists));
	uint32_t *more = realloc(active, (active_n + n + 1) * sizeof(*more));

	active = more ? more : active;
	if ((n && !placed) || !lists || !more) {
		free(placed);
		free(lists);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		if (!i || placed[i].id != placed[i - 1].id)
			set_snippets(placed[i].id, lists + used);
		lists[used++] = placed[i].snippet;
		used += i + 1 == n || placed[i + 1].id != placed[i].id;
	}
	free(placed);
	return turn_on(first);
}

/* --- Plans ------------------------------------------------------------------------------------ */

/* Of the probes that there are now. Snippets of plans that were made before stay. */
static int make_plans(void)
{
	struct procedures *procedures = procedures_find();
	struct metric_world world;

	if (!procedures)
		return -ENOMEM;
	world = procedures_world(procedures);
	for (struct request_state *state = states; state < states + states_n; state++) {
		int ret = plan_metric(&mdl, &state->request, &world, &state->plan, &state->error);

		if (ret)
			mdl_fault(&state->error, (struct mdl_place){ 0 }, "%s", strerror(-ret));
	}
	procedures_free(procedures);
	return 0;
}

static int measure_new(void)
{
	uint32_t end = fi_probes();
	int ret = make_plans();

	if (!ret)
		ret = place_snippets();
	looked_at = end;
	return ret;
}

/* Of a request, the variables come behind those of the one before. */
static int read_requests(char *text)
{
	const char *flavor = strsep(&text, "\n");
	uint32_t next;
	char *line;

	if (!flavor)
		return -ENOMEM;
	for (const char *at = text; at && *at; at++)
		states_n += *at == '\n';
	states = calloc(states_n + 1, sizeof(*states));
	if (!states)
		return -ENOMEM;
	next = (uint32_t)states_n;
	for (size_t i = 0; i < states_n; i++) {
		struct metric_request *request = &states[i].request;
		struct metric_plan plan;

		line = strsep(&text, "\n");
		request->flavor = *flavor ? flavor : NULL;
		request->metric = strsep(&line, "\t");
		request->value = (uint32_t)i;
		request->next_value = next;
		while (line && request->foci_n < FOCI_MAX)
			request->foci[request->foci_n++] = strsep(&line, "\t");
		plan_metric(&mdl, request, &no_program, &plan, &states[i].error);
		next = plan.next_value;
		plan_free(&plan);
	}
	return next <= VALUES_MAX ? (int)next : -E2BIG;
}

/* --- The report ------------------------------------------------------------------------------- */

static void write_plans(FILE *out)
{
	for (size_t i = 0; i < states_n; i++) {
		const struct request_state *state = &states[i];

		fprintf(out, "P\t%zu\t%zu\t%zu\t", i, state->plan.n, state->plan.left_out);
		text_put(out, state->error.text);
		fputc('\n', out);
	}
	if (*activation)
		fprintf(out, "A\t%s\n", activation);
}

static void write_end(FILE *out)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < active_n; i++)
		lost += fi_lost(active[i]);
	fprintf(out, "E\t%llu\t%llu\n", (unsigned long long)lost,
		(unsigned long long)values_missed());
}

/* --- Life ------------------------------------------------------------------------------------- */

static void end_measuring(void)
{
	if (measured != getpid())
		return;
	measured = 0;
	run_events(at_exit);
	values_end(true);
	write_report(folder, write_end);
}

/* The program that was to be executed in place of this one was not. */
static void go_on(void)
{
	if (measured)
		return;
	measured = getpid();
	values_end(false);
	run_events(at_start);
}

/* In a child, measuring begins. */
static void begin_in_child(void)
{
	measured = getpid();
	run_events(at_start);
}

static int start_measuring(const char *text, char *requests)
{
	struct mdl_error error;
	int ret = fi_take_entries(getenv("FASTINST_ENTRIES"));

	if (!ret)
		ret = fi_init();
	if (!ret)
		ret = mdl_read(&mdl, text, &error);
	if (!ret)
		ret = read_requests(requests);
	if (ret >= 0)
		ret = values_start(getenv(METRICS_VALUES), (uint32_t)ret);
	if (!ret)
		ret = -pthread_atfork(NULL, NULL, begin_in_child);
	return ret ? ret : measure_new();
}

__attribute__((constructor)) static void start(void)
{
	static const struct leaving leaving = { end_measuring, end_measuring, go_on };
	const char *text = getenv(METRICS_TEXT), *requests = getenv(METRICS_REQUESTS);
	int ret;

	folder = copy_folder(getenv("FASTINST_OUTPUT"));
	if (!text || !requests || !folder || !getenv(METRICS_VALUES))
		return;
	/* The program may clear its environment. */
	ret = start_measuring(text, strdup(requests));
	if (ret < 0 && !*activation) {
		say_line("no metrics, the program runs without them: %s\n", explain_error(ret));
		return;
	}
	measured = getpid();
	set_leaving(&leaving);
	write_report(folder, write_plans);
	run_events(at_start);
	started = true;
}

void __gmon_start__(void);

/* Objects that the loader has just loaded, as in agent/counts/agent.c. */
void __gmon_start__(void)
{
	int cancel, saved = errno;

	if (!started || measured != getpid())
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (fi_scan() > 0) {
		measure_new();
		write_report(folder, write_plans);
	}
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
}
