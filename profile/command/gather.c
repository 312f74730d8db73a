/* SPDX-License-Identifier: MIT */
/*
 * The lines that processes have reported become one profile: sums, intervals, and shares of
 * callers.
 */
#include "profile/command/command.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/launch.h"
#include "base/array.h"
#include "base/text.h"

#define TEXTS 4 /* of a line, at most */

struct gathered {
	struct profile *profile;
	struct image *image;
	size_t images;
	double bursts[SHARE_GROUPS]; /* seconds of all functions, and what is not known */
	double burst;		     /* of all of them */
	json_t *blocks;	 /* of the process that is being read: index in the profile by number */
	bool has_report; /* of the process that is being read */
	double used;	 /* seconds of all processes, by which costs are weighed */
};

/* --- Which function an address is in ---------------------------------------------------------- */

static const struct image *image_of(struct gathered *all, const char *path)
{
	struct image one;

	for (size_t i = 0; i < all->images; i++)
		if (!strcmp(all->image[i].path, path))
			return &all->image[i];
	image_open(&one, strdup(path));
	if (one.path && !ARRAY_ADD(all->image, all->images, one))
		return &all->image[all->images - 1];
	image_close(&one);
	free((char *)one.path);
	return NULL;
}

/* --- Lines ------------------------------------------------------------------------------------ */

/* A line of a report: its texts, addresses in hex among them, then its numbers. */
struct fields {
	char *text[TEXTS];
	double number[MEASURED_NUMBERS];
};

_Static_assert(QUALITY_NUMBERS <= MEASURED_NUMBERS, "no line has more numbers");

static long function_of(struct gathered *all, const struct fields *fields)
{
	return profile_function(all->profile, *fields->text[0] ? fields->text[0] : "(no name)",
				fields->text[1], 0);
}

static int add_function(struct gathered *all, const struct fields *fields)
{
	long f = function_of(all, fields);
	struct measured one;

	if (f < 0)
		return -ENOMEM;
	memcpy(&one, fields->number, sizeof(one));
	measured_join(&all->profile->function[f].evidence.measured, &one);
	return 0;
}

/* The function with the call before a return address, which may be the end of the function. */
static long function_before(struct gathered *all, const char *object, const char *address)
{
	const struct image *image = image_of(all, object);
	const struct elf_symbol *symbol = NULL;

	if (image)
		symbol = elf_function_at(&image->symbols, strtoull(address, NULL, 16) - 1);
	return profile_function(all->profile, symbol ? symbol->name : "(unknown)", object, 0);
}

/* Until all lines are read, an arc has the calls that were seen. */
static int add_caller(struct gathered *all, const struct fields *fields)
{
	long callee = function_of(all, fields);
	long caller = function_before(all, fields->text[2], fields->text[3]);
	struct arc one = { .from = (size_t)caller,
			   .to = (size_t)callee,
			   .calls = fields->number[0],
			   .timed = fields->number[1],
			   .seconds = fmax(fields->number[2], 0) };
	struct function_evidence *evidence;

	if (callee < 0 || caller < 0)
		return -ENOMEM;
	evidence = &all->profile->function[callee].evidence;
	evidence->seen += one.calls;
	evidence->timed += one.timed;
	evidence->seconds += one.seconds;
	return profile_arc(all->profile, &one);
}

/* Seconds by group of bursts, at an address of an object. An object without a name is not known. */
static int add_burst_address(struct gathered *all, const struct fields *fields)
{
	bool named = *fields->text[0];
	long f = named ? function_before(all, fields->text[0], fields->text[1]) : -1;

	for (int i = 0; i < SHARE_GROUPS; i++) {
		all->bursts[i] += fields->number[i];
		all->burst += fields->number[i];
		if (f >= 0)
			all->profile->function[f].evidence.bursts[i] += fields->number[i];
	}
	return named && f < 0 ? -ENOMEM : 0;
}

static int add_quality(struct gathered *all, const struct fields *fields)
{
	struct quality *sum = &all->profile->quality, one;
	double seconds = sum->seconds;

	memcpy(&one, fields->number, sizeof(one));
	if (!all->profile->edges)
		one.toggling *= one.seconds;
	one.cost *= one.seconds;
	for (int i = 0; i < QUALITY_NUMBERS; i++)
		((double *)sum)[i] += ((const double *)&one)[i];
	sum->budget = one.budget;
	if (!all->profile->edges)
		sum->seconds = fmax(seconds, one.seconds);
	all->has_report = true;
	all->used += one.seconds;
	return 0;
}

static int add_phase(struct gathered *all, const struct fields *fields)
{
	struct phase phase;

	memcpy(&phase, fields->number, sizeof(phase));
	return ARRAY_ADD(all->profile->phase, all->profile->phases, phase);
}

static int add_block(struct gathered *all, const struct fields *fields)
{
	long block = profile_function(all->profile, fields->text[3], fields->text[1],
				      strtoull(fields->text[2], NULL, 16));

	if (block < 0)
		return -ENOMEM;
	return json_object_set_new_nocheck(all->blocks, fields->text[0], json_integer(block))
		       ? -ENOMEM
		       : 0;
}

static int add_edge(struct gathered *all, const struct fields *fields)
{
	const json_t *from = json_object_get(all->blocks, fields->text[0]);
	const json_t *to = json_object_get(all->blocks, fields->text[1]);
	const double *count = fields->number;
	struct arc arc = { .from = (size_t)json_integer_value(from),
			   .to = (size_t)json_integer_value(to),
			   .calls = count[0] + count[1],
			   .half = { count[0], count[1] },
			   .seen = count[2] };

	if (!from || !to)
		return 0;
	all->profile->function[arc.to].calls.value += arc.calls;
	return profile_arc(all->profile, &arc);
}

static int add_line(char *line, void *gathered)
{
	struct gathered *all = gathered;
	static const struct {
		char tag;
		int texts, numbers;
		int (*add)(struct gathered *, const struct fields *);
	} kinds[] = { { 'F', 2, MEASURED_NUMBERS, add_function },
		      { 'C', 4, 3, add_caller },
		      { 'S', 2, SHARE_GROUPS, add_burst_address },
		      { 'Q', 0, QUALITY_NUMBERS, add_quality },
		      { 'P', 0, PHASE_NUMBERS, add_phase },
		      { 'B', 4, 0, add_block },
		      { 'E', 2, 3, add_edge } };
	struct fields fields = { 0 };
	const char *tag;
	size_t kind = 0;
	int n;

	if (!line) {
		all->profile->quality.processes += all->has_report;
		all->has_report = false;
		return 0;
	}
	tag = strsep(&line, "\t");
	while (kind < sizeof(kinds) / sizeof(*kinds) && kinds[kind].tag != *tag)
		kind++;
	if (kind == sizeof(kinds) / sizeof(*kinds))
		return 0;
	n = text_fields(&line, fields.text, kinds[kind].texts);
	for (; line && n < kinds[kind].texts + kinds[kind].numbers; n++)
		fields.number[n - kinds[kind].texts] = strtod(strsep(&line, "\t"), NULL);
	return !line && n == kinds[kind].texts + kinds[kind].numbers ? kinds[kind].add(all, &fields)
								     : 0;
}

/* --- What it comes to ------------------------------------------------------------------------- */

static void judge_function(struct gathered *all, struct function *function)
{
	const struct duration *time = &function->evidence.measured.time;
	struct interval total;
	double wall;

	function->calls = estimate_interval(&function->evidence.measured.calls);
	total = duration_interval(time, &function->calls, &wall);
	function->evidence.total = total;
	function->times = (struct times){ .total = total, .self = total, .wall = wall };
	all->profile->quality.torn += time->torn;
	all->profile->quality.cut += time->cut;
}

static struct interval scale_interval(struct interval range, double share)
{
	range.value *= share;
	range.low *= share;
	range.high *= share;
	return range;
}

static struct interval limit_interval(struct interval range, double most)
{
	range.value = fmin(fmax(range.value, 0), most);
	range.low = fmin(fmax(range.low, 0), most);
	range.high = fmin(fmax(range.high, 0), most);
	return range;
}

/* The difference of two intervals that are independent. */
static void subtract_interval(struct interval *from, const struct interval *part)
{
	double below = hypot(from->value - from->low, part->high - part->value);
	double above = hypot(from->high - from->value, part->value - part->low);

	from->value -= part->value;
	from->low = from->value - below;
	from->high = from->value + above;
}

/*
 * Start and end of a call are noted apart, and either may be lost. Where no start was noted, ends
 * tell the share.
 */
static double calls_share(const struct function_evidence *callee, const struct arc *arc)
{
	if (callee->seen > 0)
		return arc->calls / callee->seen;
	return callee->timed > 0 ? arc->timed / callee->timed : 0;
}

/* The share of the function's time by this caller, as in the calls that were timed. */
static double time_share(const struct function_evidence *callee, const struct arc *arc)
{
	return callee->seconds > 0 ? arc->seconds / callee->seconds : calls_share(callee, arc);
}

/* Self time is total time without callees: exact where all calls were timed. */
static void subtract_callees(struct gathered *all)
{
	struct function *function = all->profile->function;

	for (size_t i = 0; i < all->profile->arcs; i++) {
		const struct arc *arc = &all->profile->arc[i];
		const struct function_evidence *callee = &function[arc->to].evidence;
		struct interval part = scale_interval(callee->total, time_share(callee, arc));

		subtract_interval(&function[arc->from].times.self, &part);
		if (arc->from == arc->to)
			subtract_interval(&function[arc->from].times.total, &part);
	}
}

/*
 * Self time is known in two ways: total time without callees is exact where all calls were timed,
 * and bursts are right for functions that run most. Take the narrower interval.
 */
static void choose_self(const struct gathered *all, struct function *function)
{
	const struct quality *quality = &all->profile->quality;
	const struct times *times = &function->times;
	struct interval bursts = share_of(function->evidence.bursts, all->bursts, quality->epochs);

	bursts = scale_interval(bursts, quality->cpu);
	bursts.problem = quality->epochs < SHARE_GROUPS ? "few epochs" : NULL;
	if (!(function->evidence.measured.time.timed > 0) || times->total.problem ||
	    times->self.high - times->self.low > bursts.high - bursts.low)
		function->times.self = bursts;
}

static void judge_self_times(struct gathered *all)
{
	subtract_callees(all);
	for (size_t f = 0; f < all->profile->functions; f++) {
		struct times *times = &all->profile->function[f].times;

		times->self = limit_interval(times->self, all->profile->quality.cpu);
		/* A program may end before the first burst. */
		if (all->burst > 0)
			choose_self(all, &all->profile->function[f]);
		times->total = limit_interval(times->total, all->profile->quality.cpu);
		times->total.value = fmax(times->total.value, times->self.value);
		times->total.high = fmax(times->total.high, times->self.high);
	}
}

/*
 * Share out all calls of a function by the callers of the calls that were seen, and its time by the
 * callers of the calls that were timed.
 */
static int share_out_calls(struct profile *profile)
{
	int ret = 0;

	for (size_t i = 0; i < profile->arcs; i++) {
		struct arc *arc = &profile->arc[i];
		const struct function *function = &profile->function[arc->to];
		const struct function_evidence *evidence = &function->evidence;
		double share = time_share(evidence, arc);

		arc->calls = calls_share(evidence, arc) * function->calls.value;
		arc->seconds = function->times.self.value * share;
		arc->total = fmin(evidence->total.value, profile->quality.cpu) * share;
	}
	for (size_t f = 0; f < profile->functions && !ret; f++) {
		const struct function *function = &profile->function[f];
		const struct function_evidence *evidence = &function->evidence;
		struct arc all_calls = { .from = NO_CALLER,
					 .to = f,
					 .calls = function->calls.value,
					 .seconds = function->times.self.value,
					 .total = evidence->total.value };

		if (!(evidence->seen + evidence->timed > 0) && function->calls.value > 0)
			ret = profile_arc(profile, &all_calls);
	}
	return ret;
}

static void release_gathered(struct gathered *all)
{
	for (size_t i = 0; i < all->images; i++) {
		image_close(&all->image[i]);
		free((char *)all->image[i].path);
	}
	free(all->image);
	json_decref(all->blocks);
}

static int judge_profile(struct gathered *all)
{
	int ret;

	for (size_t f = 0; f < all->profile->functions; f++)
		judge_function(all, &all->profile->function[f]);
	judge_self_times(all);
	ret = share_out_calls(all->profile);
	if (all->used > 0) {
		all->profile->quality.cost /= all->used;
		all->profile->quality.toggling /= all->used;
	}
	return ret ? ret : profile_sort(all->profile);
}

int gather(struct profile *profile, const char *folder)
{
	struct gathered all = { .profile = profile, .blocks = json_object() };
	int lost = all.blocks ? launch_reports(folder, add_line, &all) : -ENOMEM;
	int ret = lost;

	if (lost >= 0)
		ret = profile->edges ? profile_sort(profile) : judge_profile(&all);

	release_gathered(&all);
	return ret ? ret : lost;
}
