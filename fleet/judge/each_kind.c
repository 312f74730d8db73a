/* SPDX-License-Identifier: MIT */
#include "fleet/judge/each_kind.h"

#include <errno.h>
#include <stdlib.h>

int each_kind(struct fleet *fleet, int (*tell)(const struct kind_report *report, void *arg),
	      void *arg)
{
	struct kind_report *r = calloc(1, sizeof(*r));
	struct fleet_kind *kinds = NULL;
	int ret = r ? 0 : -ENOMEM, sum = 0;

	if (ret == 0) {
		r->fleet = fleet;
		ret = fleet_kinds(fleet, &kinds, &r->kind_count);
		r->kinds = kinds;
	}
	if (ret == 0 && !r->kind_count)
		ret = -ENODATA;
	for (size_t i = 0; ret >= 0 && i < r->kind_count; i++) {
		struct fleet_run *runs;

		r->kind = &kinds[i];
		ret = fleet_runs(fleet, r->kind->id, &runs, &r->count);
		r->runs = runs;
		if (ret == 0)
			ret = ladder_of_kind(&r->kind->identity, runs, r->count, &r->estimate);
		if (ret == 0) {
			ladder_behind(runs, r->count, &r->estimate, &r->behind);
			ret = tell(r, arg);
		}
		fleet_runs_free(runs, r->count);
		sum += ret;
	}
	free(kinds);
	free(r);
	return ret < 0 ? ret : sum;
}
