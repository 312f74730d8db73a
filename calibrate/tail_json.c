/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "calibrate/tail_fit.h"

static json_t *number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *thresholds(const struct tail_fit *fit)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < fit->thresholds; i++) {
		const struct tail_threshold *t = &fit->tried[i];

		json_array_append_new(array, json_pack("[o, I, o, o]", number(t->threshold),
						       (json_int_t)t->exceedances, number(t->fit_p),
						       number(t->xi)));
	}
	return array;
}

static json_t *rows(const struct tail_fit *fit)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < fit->rows; i++) {
		const struct tail_row *r = &fit->row[i];

		json_array_append_new(
			array, json_pack("[f, I, f]", r->wait, (json_int_t)r->above, r->upper_p));
	}
	return array;
}

json_t *tail_fit_to_json(const struct tail_fit *fit, const struct tail_origin *origin)
{
	const struct tail_threshold *t = &fit->chosen;

	return json_pack("{s:s, s:s, s:s, s:s, s:I, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:b, s:s, "
			 "s:f, s:o, s:o, s:f, s:o, s:o, s:o, s:o}",
			 "source", origin->source, "crossing", origin->crossing, "kind",
			 origin->kind, "provokers", origin->provokers, "stores",
			 (json_int_t)fit->stores, "threshold", number(t->threshold), "exceedances",
			 (json_int_t)t->exceedances, "xi", number(t->xi), "sigma", number(t->sigma),
			 "independence_p", number(fit->independence_p), "stationarity_p",
			 number(fit->stationarity_p), "fit_p", number(t->fit_p), "accepted",
			 fit->accepted, "reason", fit->reason, "target_p", fit->target_p, "level",
			 number(fit->level), "level_upper", number(fit->level_upper), "confidence",
			 fit->confidence, "thresholds", thresholds(fit), "largest",
			 number(fit->largest), "supported_p", number(fit->supported_p), "empirical",
			 rows(fit));
}
