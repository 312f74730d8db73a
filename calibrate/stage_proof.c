/* SPDX-License-Identifier: MIT */
/*
 * Proof: can the oracle see a tear here. Window: how many bytes one store
 * changes at once.
 */
#include "calibrate/search_state.h"

static int prove_one(struct search *s, enum protocol protocol, enum crossing crossing,
		     double seconds, uint64_t *tears)
{
	const struct cell_record *record;
	struct cell cell;
	int ret;

	search_cell(s, &cell, &s->plan->seat[0], seconds);
	cell.protocol = protocol;
	cell.crossing = crossing;
	cell.stop_tears = 1;
	ret = search_run_cell(s, "proof", 0, &cell, &record);
	if (ret == 0)
		*tears += cell_result_tears(&record->result);
	return ret;
}

/*
 * no-int3 and front-first leave a mix standing in memory for a whole wait:
 * whoever cannot see that is blind. A naive store tears only where two fetches
 * really come apart, which a machine need not do.
 */
int stage_proof(struct search *s)
{
	double seconds = s->plan->budget * s->plan->proof / 4;
	uint64_t standing[2] = { 0, 0 }, naive = 0;
	int ret;

	progress_stage(&s->session->progress, "proof");
	ret = prove_one(s, PROTOCOL_NO_INT3, CROSSING_LINE, seconds, &standing[0]);
	if (ret == 0)
		ret = prove_one(s, PROTOCOL_FRONT_FIRST, CROSSING_LINE, seconds, &standing[1]);
	if (ret == 0)
		ret = prove_one(s, PROTOCOL_NAIVE, CROSSING_LINE, seconds, &naive);
	if (ret == 0)
		ret = prove_one(s, PROTOCOL_NAIVE, CROSSING_PAGE, seconds, &naive);
	s->sighted = standing[0] && standing[1];
	return ret;
}

int stage_window(struct search *s)
{
	const struct cell_record *record;
	double seconds = s->plan->budget * s->plan->window / (4 * 4);
	int ret = 0;

	progress_stage(&s->session->progress, "window");
	for (int crossing = CROSSING_NONE; crossing <= CROSSING_32; crossing++) {
		for (unsigned split = 1; split <= 4 && ret == 0; split++) {
			struct cell cell;

			search_cell(s, &cell, &s->plan->seat[split % s->plan->seats], seconds);
			cell.protocol = PROTOCOL_ATOMIC;
			cell.crossing = (enum crossing)crossing;
			cell.split = split;
			cell.pair = search_pair(split, (unsigned)crossing + split);
			ret = search_run_cell(s, "window", 0, &cell, &record);
		}
	}
	return ret;
}
