/* SPDX-License-Identifier: MIT */
/*
 * What "fastinst profile" puts into a program. Its options are FASTINST_PROFILE: "EPOCH BUDGET
 * SAMPLES BY_COUNT NO_TIMES", numbers; the rest is in session.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "probes/profile/epochs/epochs.h"
#include "probes/profile/session/session.h"

static struct options options;

static int read_options(const char *text, const char *functions)
{
	static char *patterns;
	int by_count, no_times;

	options = (struct options){ .before = clock_seconds(CLOCK_THREAD_CPUTIME_ID) };
	free(patterns);
	options.functions = patterns = strdup(functions);
	if (!patterns || sscanf(text, "%lf %lf %u %d %d", &options.epoch, &options.budget,
				&options.samples, &by_count, &no_times) != 5)
		return -EINVAL;
	options.by_count = by_count;
	options.no_times = no_times;
	return 0;
}

static int start_sampling(bool visit)
{
	options.visits = visit;
	return profiling_start(&options);
}

static bool forget_sampling(bool runs, bool visit)
{
	if (runs)
		profiling_reset_in_child(!visit);
	return runs && !visit;
}

static bool lock_scans(void)
{
	return profiling_is_on() && !profiling_lock();
}

static void scan_objects(void)
{
	if (profiling_is_on())
		functions_scan();
	profiling_unlock();
}

__attribute__((constructor)) static void start(void)
{
	static const struct sampler sampling = {
		.read = read_options,
		.start = start_sampling,
		.finish = profiling_finish,
		.stop = profiling_stop,
		.report = report_profile,
		.run = epochs_run,
		.before_unload = lock_scans,
		.after_unload = scan_objects,
		.forked = forget_sampling,
	};

	session_start(&sampling);
}
