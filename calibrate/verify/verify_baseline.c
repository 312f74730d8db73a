/* SPDX-License-Identifier: MIT */
#include "calibrate/verify/verify_baseline.h"

#include <errno.h>
#include <error.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/statistics/evidence.h"
#include "calibrate/statistics/rise.h"

static bool is_same_kind(const struct identity *a, const struct identity *b)
{
	return strcmp(a->vendor, b->vendor) == 0 && a->family == b->family &&
	       a->model == b->model && a->stepping == b->stepping &&
	       strcmp(a->hypervisor, b->hypervisor) == 0 && a->sockets == b->sockets &&
	       a->cores == b->cores && a->cpus == b->cpus;
}

/* FNV-1a: anything that has nothing to do with how often it tore. */
static uint64_t seed_of(const struct evidence_run *run)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (const char *c = run->boot; *c; c++)
		hash = (hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
	return hash ^ (uint64_t)run->time;
}

static int judge_looks(struct verify *v, const struct evidence *e, const struct cpus *cpus)
{
	struct rise_look *looks = calloc(e->count + 1, sizeof(*looks));
	const struct evidence_run **runs = calloc(e->count + 1, sizeof(*runs)), *here = NULL;
	struct verify_baseline *b = &v->baseline;
	struct rise rise;
	size_t n = 0;
	int ret = looks && runs ? 0 : -ENOMEM;

	for (size_t i = 0; i < e->count && ret == 0; i++) {
		const struct evidence_run *run = &e->run[i];

		if (strcmp(run->source, VERIFY_LOOK) != 0 ||
		    !is_same_kind(&run->identity, &v->here) ||
		    memcmp(&run->cpus, cpus, sizeof(*cpus)) != 0)
			continue;
		here = run;
		if (n && run->time - runs[n - 1]->time < VERIFY_APART) {
			b->crowded++;
			continue;
		}
		runs[n] = run;
		looks[n++] = (struct rise_look){ &run->sums, seed_of(run) };
	}
	if (ret == 0)
		ret = rise_of(looks, n, b->level / b->fleet, &rise);
	if (ret == 0) {
		b->looks = (unsigned)n;
		b->others = (unsigned)(e->count - n - b->crowded + e->broken);
		b->capital = rise.capital;
		b->now = rise.now;
		b->rose = rise.rose;
		b->times = rise.times;
		if (rise.since < n)
			memcpy(b->since, runs[rise.since]->date, sizeof(b->since));
		for (size_t i = 0; here && i < here->sums.count; i++) {
			b->toggles += here->sums.sum[i].count.toggles;
			b->tears += here->sums.sum[i].count.tears;
		}
	}
	free(looks);
	free(runs);
	return ret;
}

int verify_baseline_add(struct verify *v, const char *path, const struct cpus *cpus,
			const struct cell_record *records, size_t count)
{
	struct evidence evidence = { 0 };
	int ret = evidence_add(path, VERIFY_LOOK, &v->here, cpus, records, count);

	if (ret < 0)
		return ret;
	ret = evidence_read(path, &evidence);
	if (ret == 0)
		ret = judge_looks(v, &evidence, cpus);
	if (ret < 0)
		error(0, -ret, "cannot read the looks in %s", path);
	evidence_free(&evidence);
	return ret;
}
