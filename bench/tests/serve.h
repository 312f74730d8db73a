/* SPDX-License-Identifier: MIT */
/*
 * A test that is /proc/self/exe to the benchmarks must do what the command would.
 */
#ifndef BENCH_TESTS_SERVE_H
#define BENCH_TESTS_SERVE_H

#include <stdlib.h>
#include <string.h>

#include "bench/cases/scaling/known.h"

static inline uint64_t serve_number(char **argv, int i)
{
	return strtoull(argv[i], NULL, 10);
}

/* argv as of tmax: an exit status. */
static inline int serve(int argc, char **argv)
{
	if (argc == 7 && strcmp(argv[2], "--serve-sites") == 0) {
		struct known_waits waits = { serve_number(argv, 4), serve_number(argv, 5),
					     serve_number(argv, 6) };

		return known_serve(serve_number(argv, 3), &waits) < 0;
	}
	if (argc == 5 && strcmp(argv[2], "--count-finds") == 0)
		return bench_count_finds(serve_number(argv, 3), serve_number(argv, 4)) < 0;
	return 64;
}

#endif
