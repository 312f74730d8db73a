/* SPDX-License-Identifier: MIT */
/* write_sample FORMAT - a small profile with awkward names in it, to standard output. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/profile/write/write.h"

static int fill(struct profile *profile)
{
	static const char *const names[] = { "main", "work", "sum;of two", "never" };
	static const double calls[] = { 1, 20000, 1e6, 0 };
	size_t chain[] = { 0, 1, 2 };
	int ret = 0;

	profile->program = strdup("sample");
	for (size_t i = 0; i < 4; i++) {
		if (profile_function(profile, names[i], "/bin/sample") != (long)i)
			return -1;
		profile->function[i].calls = calls[i];
		profile->function[i].counted = calls[i] / 10;
		profile->function[i].low = calls[i] * (i == 2 ? 0.9 : 1);
		profile->function[i].high = calls[i] * (i == 2 ? 1.1 : 1);
	}
	profile->function[2].problem = "calls come in bursts";
	for (size_t i = 1; i <= 3; i++)
		ret |= profile_stack(profile, chain, i, calls[i - 1]);
	ret |= profile_phase(profile, &(struct phase){ 0, 0.5, 1e5, 0.01 });
	ret |= profile_phase(profile, &(struct phase){ 0.5, 0.5, 9e5, 0.005 });
	profile->quality = (struct quality){ .seconds = 1, .epochs = 100, .budget = 0.01 };
	return ret | profile_sort(profile);
}

int main(int argc, char **argv)
{
	const struct profile_format *format = profile_format(argc > 1 ? argv[1] : "");
	struct profile profile = { 0 };
	int ret;

	if (!format)
		return EXIT_FAILURE;
	ret = fill(&profile);
	if (!ret)
		ret = format->write(&profile, stdout);
	profile_free(&profile);
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}
