/* SPDX-License-Identifier: MIT */
/* One cell of the matrix: to which steps, and whether what comes of it is what is expected. */
#define _GNU_SOURCE
#include "patchcore/life/tests/life_cell.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "patchcore/tests/scale.h"

#define VISITS	  20 /* in a cell at most, ... */
#define AT_RANDOM 4  /* ... so many of them where nothing was seen to change; both at scale 1 */

static struct survey *surveys; /* of each protocol, shared with the children that make them */

static void *share(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		abort();
	return at;
}

void cells_start(void)
{
	srand((unsigned)time(NULL));
	seen = share(sizeof(*seen));
	surveys = share(protocol_count * sizeof(*surveys));
}

/* NULL: it does not go in steps. */
static const struct survey *survey_of(const struct protocol *protocol)
{
	struct survey *survey = &surveys[protocol - protocols];

	return survey->count || life_survey(protocol, survey) ? survey : NULL;
}

/* --- Where to
 * -------------------------------------------------------------------------------------- */

/* May the event come there? */
static bool may_come(const struct event *event, const struct point *point)
{
	return !event->to_it || (!point->blocked && (point->own || !event->libc));
}

static bool is_among(const struct point *points, unsigned count, uint64_t state)
{
	for (unsigned i = 0; i < count; i++)
		if (points[i].state == state)
			return true;
	return false;
}

static void swap(struct point *a, struct point *b)
{
	struct point c = *a;

	*a = *b;
	*b = c;
}

static void shuffle(struct point *points, unsigned count)
{
	for (unsigned i = 0; i + 1 < count; i++)
		swap(&points[i], &points[i + (unsigned)rand() % (count - i)]);
}

/* First one of each state of the protocol, then the others. Returns how many states. */
static unsigned choose(const struct survey *survey, const struct event *event, struct point *points,
		       unsigned *count)
{
	unsigned states = 0;

	*count = 0;
	for (unsigned i = 0; i < survey->count; i++)
		if (may_come(event, &survey->point[i]))
			points[(*count)++] = survey->point[i];
	shuffle(points, *count);
	for (unsigned i = 0; i < *count; i++)
		if (!is_among(points, states, points[i].state))
			swap(&points[states++], &points[i]);
	return states;
}

/* Of every other one of the rest: any step behind the same call. */
static struct point point_at(const struct survey *survey, const struct event *event,
			     struct point point, bool anywhere)
{
	int steps = survey->steps[point.call];

	if (anywhere && steps > 1)
		point.step = 1 + rand() % steps;
	point.only_own = event->to_it && event->libc;
	point.only_unblocked = event->to_it;
	return point;
}

/* --- What comes of it ------------------------------------------------------------------------- */

static void describe(struct report *report, const struct visit *visit, int status)
{
	const char *why = status < 0 ? "it hung" : status ? "it failed" : "it went otherwise";
	char returned[32] = "did not return";

	if (seen->returned)
		snprintf(returned, sizeof(returned), "returned %d", seen->ret);
	snprintf(report->what, sizeof(report->what),
		 "%s, status %#x, LIFE_POINT=%u,%d%s, state %llx, turn %u: %s, %d children, "
		 "%d refused, the worst %d",
		 why, (unsigned)status, visit->point.call, visit->point.step,
		 visit->point.own ? "" : " in other code", (unsigned long long)visit->point.state,
		 visit->turn, returned, seen->children, seen->refused, seen->child_ret);
}

static enum outcome make_visit(const struct visit *visit, struct report *report)
{
	const struct expected *expected = expected_of(visit->event, visit->protocol);
	int status;

	memset(seen, 0, sizeof(*seen));
	status = life_visit(visit);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIPPED)
		return CELL_SKIPPED;
	report->visits++;
	if (status == 0 && (!seen->met || expected_is(expected, visit->event))) {
		report->met += seen->met;
		return CELL_WELL;
	}
	/*
	 * On a loaded machine a look may take more than its second: then the visit does not
	 * count.
	 */
	if (status == 0 && (seen->ret == -ETIMEDOUT || seen->child_ret == -ETIMEDOUT))
		return CELL_WELL;
	describe(report, visit, status);
	return CELL_FAILED;
}

static unsigned scaled(unsigned count, unsigned least)
{
	unsigned now = (unsigned)(count * test_scale());

	return now > least ? now : least;
}

static unsigned visits_of(const struct expected *expected, const struct report *report)
{
	unsigned most = scaled(VISITS, 2), wanted = report->states + scaled(AT_RANDOM, 1);

	if (expected->visits && expected->visits < most)
		most = expected->visits;
	if (wanted < most)
		most = wanted;
	return most;
}

/* LIFE_POINT=CALLS,STEPS in the environment: that step alone, over and over. */
static unsigned choose_by_hand(const struct event *event, struct point *points)
{
	const char *text = getenv("LIFE_POINT");
	struct point point = {
		.only_own = event->to_it && event->libc,
		.only_unblocked = event->to_it,
	};

	if (!text || sscanf(text, "%u,%d", &point.call, &point.step) != 2)
		return 0;
	for (unsigned i = 0; i < VISITS; i++)
		points[i] = point;
	return VISITS;
}

enum outcome cell_try(const struct cell *cell, struct report *report)
{
	const struct expected *expected = expected_of(cell->event, cell->protocol);
	struct visit visit = { .protocol = cell->protocol, .event = cell->event };
	static struct point points[POINTS_MAX];
	enum outcome outcome = CELL_WELL;
	const struct survey *survey;
	unsigned visits, by_hand;

	*report = (struct report){ .what = "" };
	if (CHILD_TSAN || expected->na || (CHILD_ASAN && cell->event->starves))
		return CELL_SKIPPED;
	survey = survey_of(cell->protocol);
	if (!survey) {
		snprintf(report->what, sizeof(report->what), "it does not go in steps");
		return CELL_FAILED;
	}
	report->states = choose(survey, cell->event, points, &report->points);
	visits = visits_of(expected, report);
	by_hand = choose_by_hand(cell->event, points);
	if (by_hand)
		visits = report->points = report->states = by_hand;
	/* With a system call more or less some steps do not exist: then others are taken. */
	for (; visit.turn < report->points && report->met < visits && outcome == CELL_WELL;
	     visit.turn++) {
		visit.point = by_hand ? points[0]
				      : point_at(survey, cell->event, points[visit.turn],
						 visit.turn >= report->states && visit.turn % 2);
		outcome = make_visit(&visit, report);
	}
	if (outcome == CELL_WELL && !report->met) {
		snprintf(report->what, sizeof(report->what), "none of these steps was there");
		outcome = CELL_FAILED;
	}
	return outcome;
}
