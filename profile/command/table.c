/* SPDX-License-Identifier: MIT */
/* A line per function: calls, the interval, a bar. */
#include "profile/command/command.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/demangle.h"
#include "base/text.h"

#define BAR   20
#define EDGES 25 /* rows */

static bool has_colours(FILE *out)
{
	const char *no = getenv("NO_COLOR");

	return !(no && *no) && isatty(fileno(out));
}

static void put_bar(FILE *out, double share, bool colour)
{
	static const char marks[] = "####################";
	int len = (int)(share * BAR + 0.5);

	len = len < 0 ? 0 : len > BAR ? BAR : len;
	fprintf(out, "%s%.*s%s%*s", colour ? "\033[32m" : "", len, marks, colour ? "\033[0m" : "",
		BAR - len, "");
}

/* How an estimate is printed: columns and digits of the value, and of the interval. */
struct columns {
	int value, decimals, interval, digits;
};

static const struct columns call_columns = { 15, 0, 23, 4 }, time_columns = { 10, 4, 21, 3 };

static void put_estimate(FILE *out, const struct columns *as, bool known,
			 const struct interval *one)
{
	char interval[64] = "exact";

	if (!known) {
		fprintf(out, "%*s  %-*s   ", as->value, "-", as->interval, "");
		return;
	}
	if (as->decimals || one->low < one->high)
		snprintf(interval, sizeof(interval), "%.*g .. %.*g", as->digits, one->low,
			 as->digits, one->high);
	fprintf(out, "%*.*f  %-*s %c ", as->value, as->decimals, one->value, as->interval, interval,
		one->problem ? '!' : ' ');
}

static void put_times(FILE *out, const struct function *function)
{
	bool known = has_times(function);

	put_estimate(out, &time_columns, known, &function->times.self);
	if (known)
		fprintf(out, "%10.4f ", function->times.total.value);
	else
		fprintf(out, "%10s ", "-");
}

static double weight_of(const struct function *function, bool timed)
{
	return timed ? function->times.self.value : function->calls.value;
}

static void put_rows(const struct profile *profile, FILE *out, bool timed)
{
	bool colour = has_colours(out);
	double most = 0;

	for (size_t i = 0; i < profile->functions; i++)
		if (weight_of(&profile->function[i], timed) > most)
			most = weight_of(&profile->function[i], timed);
	for (size_t i = 0; i < profile->functions; i++) {
		const struct function *function = &profile->function[i];

		if (!(weight_of(function, timed) > 0 || function->calls.value > 0))
			continue;
		put_estimate(out, &call_columns, function->calls.value > 0, &function->calls);
		if (timed)
			put_times(out, function);
		put_bar(out, most > 0 ? weight_of(function, timed) / most : 0, colour);
		fputc(' ', out);
		text_put(out, name_for_people(function->name, true));
		fputc('\n', out);
	}
}

static void put_quality_of_times(const struct quality *quality, FILE *out, bool timed)
{
	if (timed)
		fprintf(out,
			"times are of CPU; %.0f calls were left without an exit, %.0f went on for "
			"too long: neither is in them\n",
			quality->torn, quality->cut);
	else if (quality->exits > 0)
		fputs("no times: of no call both entry and exit were seen\n", out);
	else
		fputs("no times: exits cannot be seen; fastinst(7) says how to compile\n", out);
}

int write_edge_table(const struct profile *profile, FILE *out)
{
	const struct quality *quality = &profile->quality;
	double all = 0;

	for (size_t i = 0; i < profile->arcs; i++)
		all += profile->arc[i].calls;
	fprintf(out, "   share        count  edge\n");
	for (size_t i = 0; i < profile->arcs && i < EDGES; i++) {
		const struct arc *edge = &profile->arc[i];

		fprintf(out, "%7.2f%% %12.0f  ", 100 * edge->calls / all, edge->calls);
		text_put(out, name_for_people(profile->function[edge->from].name, true));
		fputs(" -> ", out);
		text_put(out, name_for_people(profile->function[edge->to].name, true));
		fputc('\n', out);
	}
	if (profile->arcs > EDGES)
		fprintf(out, "and %zu more edges: --format json has them\n", profile->arcs - EDGES);
	fprintf(out,
		"%.0f blocks, %.0f refused; %.0f phases, %.3f s of %.3f s, and %.3f s to turn "
		"blocks on and off; %.0f blocks outside of phases not counted, %.0f lost\n"
		"odd and even phases agree in %.1f%% of the profile\n",
		quality->blocks, quality->refused, quality->epochs, quality->on, quality->seconds,
		quality->toggling, quality->late, quality->lost, 100 * profile_agreement(profile));
	return 0;
}

int write_table(const struct profile *profile, FILE *out)
{
	const struct quality *quality = &profile->quality;
	bool timed = profile_has_times(profile);
	size_t doubtful = 0, silent = 0;

	fprintf(out, "%15s  %-23s   ", "calls", "95 % interval");
	if (timed)
		fprintf(out, "%10s  %-21s   %10s ", "self s", "95 % interval", "total s");
	fprintf(out, "%-*s %s\n", BAR, "", "function");
	put_rows(profile, out, timed);
	for (size_t i = 0; i < profile->functions; i++) {
		silent += profile->function[i].calls.value <= 0;
		doubtful +=
			profile->function[i].calls.value > 0 && profile->function[i].calls.problem;
	}
	if (doubtful)
		fprintf(out, "! %zu of %zu: the interval may be wrong; --format json says why\n",
			doubtful, profile->functions - silent);
	fprintf(out,
		"%.2f s, %.0f epochs, %.0f toggles; cost %.2f %% of CPU time by its own measure, "
		"of it toggles %.2f %%, budget %.2f %%\n",
		quality->seconds, quality->epochs, quality->toggles, 100 * quality->cost,
		100 * quality->toggling, 100 * quality->budget);
	put_quality_of_times(quality, out, timed);
	if (quality->refused > 0)
		fprintf(out, "%.0f functions could not be watched\n", quality->refused);
	return 0;
}
