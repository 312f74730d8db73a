/* SPDX-License-Identifier: MIT */
/* write_sample FORMAT [timed] - a small profile with awkward names in it, to standard output. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/command/command.h"

static const double seconds[] = { 0.25, 0.5, 2 }, total[] = { 2.75, 2.5, 2 };

static void fill_times(struct profile *profile, size_t f)
{
	profile->function[f].times =
		(struct times){ .self = { seconds[f], seconds[f] / 2, seconds[f] * 2, NULL },
				.total = { total[f], total[f] / 2, total[f] * 2, NULL },
				.wall = total[f] * 1.5 };
	profile->function[f].evidence.measured.time = (struct duration){ .timed = 10, .torn = f };
}

static int fill(struct profile *profile, bool timed)
{
	static const char *const names[] = { "main", "work", "sum;of two", "never" };
	static const double calls[] = { 1, 20000, 1e6, 0 };
	int ret = 0;

	profile->program = strdup("sample");
	for (size_t i = 0; i < 4; i++) {
		if (profile_function(profile, names[i], "/bin/sample", 0) != (long)i)
			return -1;
		profile->function[i].calls =
			(struct interval){ calls[i], calls[i] * (i == 2 ? 0.9 : 1),
					   calls[i] * (i == 2 ? 1.1 : 1),
					   i == 2 ? "calls come in bursts" : NULL };
		profile->function[i].evidence.measured.calls.counted = calls[i] / 10;
		if (timed && i < 3)
			fill_times(profile, i);
	}
	for (size_t i = 0; i < 3; i++)
		ret |= profile_arc(profile, &(struct arc){ .from = i ? i - 1 : NO_CALLER,
							   .to = i,
							   .calls = calls[i],
							   .seconds = timed * seconds[i],
							   .total = timed * total[i] });
	/* Of a caller only times are known. */
	if (timed)
		ret |= profile_arc(
			profile, &(struct arc){ .from = 3, .to = 2, .seconds = 0.5, .total = 0.5 });
	profile->phase = calloc(2, sizeof(*profile->phase));
	if (!profile->phase)
		return -1;
	profile->phase[0] = (struct phase){ .length = 0.5, .calls = 1e5, .cost = 0.01 };
	profile->phase[1] =
		(struct phase){ .start = 0.5, .length = 0.5, .calls = 9e5, .cost = 0.005 };
	profile->phases = 2;
	profile->quality = (struct quality){ .seconds = 1, .epochs = 100, .budget = 0.01 };
	return ret | profile_sort(profile);
}

int main(int argc, char **argv)
{
	profile_writer *write = profile_format(argc > 1 ? argv[1] : "", false);
	struct profile profile = { 0 };
	bool timed = argc > 2 && !strcmp(argv[2], "timed");
	int ret;

	if (!write)
		return EXIT_FAILURE;
	ret = fill(&profile, timed);
	if (!ret)
		ret = write(&profile, stdout);
	profile_free(&profile);
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}
