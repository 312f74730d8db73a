/* SPDX-License-Identifier: MIT */
/*
 * What "fastinst profile --edges" puts into a program. Its options are FASTINST_PROFILE: "PERIOD
 * ON", seconds; the rest is in session.h. A child of fork() is not profiled: the thread of phases
 * is its parent's.
 */
#include <errno.h>

#include "probes/agent/pin.h"
#include "probes/profile/edges/edges.h"
#include "probes/profile/session/session.h"

static double period, on;

static void put_block(FILE *out, uint32_t id)
{
	struct fi_probe probe;

	if (fi_get(id, &probe) < 0 || probe.kind != FI_BLOCK)
		return;
	fprintf(out, "B\t%u", id);
	/* A block whose object was unloaded has no name any more. */
	if (report_address(out, (uintptr_t)probe.address))
		report_text(out, probe.function);
	fputc('\n', out);
}

/* An edge that was seen has a count of 1 at least. */
static double estimate_count(const struct edge *edge, int half, double scale)
{
	double count = (double)(uint64_t)(edge->weighed[half] * scale + 0.5);

	return count >= 1 || !edge->count[half] ? count : 1;
}

static void put_edges(FILE *out)
{
	double seen = 0, weighed = 0, scale;
	uint32_t next = 0;
	struct edge edge;

	while (edges_next(&next, &edge)) {
		seen += (double)(edge.count[0] + edge.count[1]);
		weighed += edge.weighed[0] + edge.weighed[1];
	}
	scale = weighed > 0 ? seen / weighed : 0;
	for (next = 0; edges_next(&next, &edge);) {
		fprintf(out, "E\t%u\t%u", edge.from, edge.to);
		report_numbers(out,
			       (double[]){ estimate_count(&edge, 1, scale),
					   estimate_count(&edge, 0, scale),
					   (double)(edge.count[0] + edge.count[1]) },
			       3);
	}
}

static void report_edges(FILE *out)
{
	const struct phases *phases = phases_get();
	struct quality quality = phases->sum;
	uint32_t n = fi_probes();

	edges_sums(&quality);
	fputc('Q', out);
	report_numbers(out, &quality, QUALITY_NUMBERS);
	for (uint32_t id = 0; id < n; id++)
		put_block(out, id);
	put_edges(out);
	report_moments(out, &phases->moments, 1);
}

static int read_options(const char *options, const char *functions)
{
	(void)functions;
	return sscanf(options, "%lf %lf", &period, &on) == 2 ? 0 : -EINVAL;
}

static int start_phases(bool visit)
{
	int ret = edges_start();

	return ret ? ret : phases_start(period, on, visit);
}

static int stop_edges(void)
{
	int ret = fi_synchronize();

	if (!ret)
		pins_drop();
	return ret;
}

/* The child is not profiled; another command may profile it. */
static bool forget_edges(bool runs, bool visit)
{
	(void)runs;
	(void)visit;
	phases_reset_in_child();
	return false;
}

__attribute__((constructor)) static void start(void)
{
	/* No block is on at a fork. */
	static const struct sampler sampling = {
		.read = read_options,
		.start = start_phases,
		.finish = phases_stop,
		.stop = stop_edges,
		.report = report_edges,
		.run = phases_run,
		.before_unload = phases_begin_unload,
		.after_unload = phases_end_unload,
		.before_fork = phases_lock_off,
		.after_fork = phases_unlock,
		.forked = forget_edges,
	};

	session_start(&sampling);
}
