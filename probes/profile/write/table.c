/* SPDX-License-Identifier: MIT */
/*
 * A line per function: calls, the interval, a bar.
 */
#include "probes/profile/write/write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BAR 20

static bool colours(FILE *out)
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

static void put_function(FILE *out, const struct function *function, double most, bool colour)
{
	char interval[64];

	if (function->low == function->high)
		snprintf(interval, sizeof(interval), "exact");
	else
		snprintf(interval, sizeof(interval), "%.4g .. %.4g", function->low, function->high);
	fprintf(out, "%15.0f  %-23s %c ", function->calls, interval, function->problem ? '!' : ' ');
	put_bar(out, most > 0 ? function->calls / most : 0, colour);
	fprintf(out, " %s\n", function->name);
}

int write_table(const struct profile *profile, FILE *out)
{
	const struct quality *quality = &profile->quality;
	bool colour = colours(out);
	double most = 0;
	size_t doubtful = 0, silent = 0;

	for (size_t i = 0; i < profile->functions; i++)
		if (profile->function[i].calls > most)
			most = profile->function[i].calls;
	fprintf(out, "%15s  %-23s   %-*s %s\n", "calls", "95 % interval", BAR, "", "function");
	for (size_t i = 0; i < profile->functions; i++) {
		const struct function *function = &profile->function[i];

		silent += function->calls <= 0;
		doubtful += function->problem != NULL;
		if (function->calls > 0)
			put_function(out, function, most, colour);
	}
	if (doubtful)
		fprintf(out, "! %zu of %zu: the interval may be wrong; --format json says why\n",
			doubtful, profile->functions - silent);
	fprintf(out,
		"%.2f s, %.0f epochs, %.0f toggles; cost %.2f %% of CPU time by its own measure, "
		"budget %.2f %%\n",
		quality->seconds, quality->epochs, quality->toggles, 100 * quality->cost,
		100 * quality->budget);
	if (quality->refused > 0)
		fprintf(out, "%.0f functions could not be watched\n", quality->refused);
	return ferror(out) ? -EIO : 0;
}
