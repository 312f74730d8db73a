/* SPDX-License-Identifier: MIT */
/* What this process has learned. */
#include "profile/sampler/edges.h"

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

void report_edges(FILE *out, const struct quality *quality, struct moments *moments)
{
	uint32_t n = fi_probes();

	fputc('Q', out);
	report_numbers(out, quality, QUALITY_NUMBERS);
	for (uint32_t id = 0; id < n; id++)
		put_block(out, id);
	put_edges(out);
	/* A thread may have been late with a run of the last phase. */
	if (moments->n)
		moments->moment[moments->n - 1].calls += (double)edges_runs();
	report_moments(out, moments, 1);
}
