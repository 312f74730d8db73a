/* SPDX-License-Identifier: MIT */
#include "calibrate/estimate.h"

#include <stdlib.h>
#include <string.h>

#include "calibrate/bound.h"
#include "calibrate/drift.h"
#include "calibrate/sequential.h"

/*
 * Toggles of a block of time, in units of 1 / promise: enough that a block
 * without tears keeps the promise, also as one of a hundred.
 */
#define DRIFT_BLOCK 8

/* Share of the cells; a distance that is rarer is left to the average. */
#define FAR_SHARE 0.05

static const char *const verdict_names[] = {
	[VERDICT_PASS] = "pass",
	[VERDICT_FAIL] = "fail",
	[VERDICT_INCONCLUSIVE] = "inconclusive",
};

const char *verdict_name(enum verdict verdict)
{
	return verdict_names[verdict];
}

static void torn_raise(struct torn *torn, unsigned which, uint64_t wait)
{
	if (!torn->seen[which] || wait > torn->wait[which])
		torn->wait[which] = wait;
	torn->seen[which] = true;
}

void torn_add(struct torn *torn, const struct cell_record *record)
{
	const uint64_t *tears = record->result.tears;

	if (record->cell.protocol != PROTOCOL_WAIT)
		return;
	/* What cannot be told apart is blamed on both. */
	if (tears[TEAR_OLD_FRONT] || tears[TEAR_OTHER])
		torn_raise(torn, 0, record->cell.first_wait);
	if (tears[TEAR_NEW_FRONT] || tears[TEAR_OTHER])
		torn_raise(torn, 1, record->cell.second_wait);
}

uint64_t torn_highest(const struct torn *torn)
{
	return torn->wait[0] > torn->wait[1] ? torn->wait[0] : torn->wait[1];
}

int claim_of(enum crossing crossing)
{
	if (crossing == CROSSING_LINE)
		return CLAIM_LINE;
	return crossing == CROSSING_PAGE ? CLAIM_PAGE : -1;
}

static struct section *section_of(struct estimate *e, const struct cell *cell)
{
	struct section *s;

	for (unsigned i = 0; i < e->sections; i++) {
		s = &e->section[i];
		if (s->placement == cell->placement && s->crossing == cell->crossing)
			return s;
	}
	s = &e->section[e->sections++];
	*s = (struct section){ .placement = cell->placement, .crossing = cell->crossing };
	return s;
}

static double rate(const struct cell_record *r)
{
	return r->result.toggles ? (double)cell_result_tears(&r->result) / (double)r->result.toggles
				 : 1;
}

/* The wait that a record's tears speak against. */
static uint64_t torn_wait(const struct cell_record *r)
{
	struct torn torn = { 0 };

	torn_add(&torn, r);
	return torn_highest(&torn);
}

static void consider_torn_cell(struct estimate *e, const struct cell_record *r)
{
	if (cell_result_tears(&r->result) == 0)
		return;
	if (e->have_torn_cell && torn_wait(r) < torn_wait(&e->torn_cell))
		return;
	if (e->have_torn_cell && torn_wait(r) == torn_wait(&e->torn_cell) &&
	    rate(r) <= rate(&e->torn_cell))
		return;
	e->torn_cell = *r;
	e->have_torn_cell = true;
}

static bool is_at(const struct cell *cell, const struct waits *waits)
{
	return cell->first_wait == waits->first && cell->second_wait == waits->second;
}

static bool is_campaign_of(const struct cell_record *r, enum crossing crossing, uint64_t stretch)
{
	return strcmp(r->stage, "campaign") == 0 && r->cell.protocol == PROTOCOL_WAIT &&
	       r->cell.crossing == crossing && r->cell.stretch == stretch;
}

/* Is it a cell of the campaign, at the waits that it ended with? */
static bool speaks_for(const struct cell_record *r, const struct claim *claim, uint64_t stretch)
{
	return is_campaign_of(r, claim->crossing, stretch) && is_at(&r->cell, &claim->waits);
}

/* --- Distance --- */

/* 0: threads on one CPU have none, and the dead tell nothing. */
static uint64_t distance_of(const struct cell_record *r)
{
	uint64_t distance = r->result.witness.offset_error;

	return distance == WITNESS_UNKNOWN ? 0 : distance;
}

static bool is_far(const struct distance *d, const struct cell_record *r)
{
	uint64_t least = d->least[r->cell.placement];

	return least && distance_of(r) >= 2 * least;
}

static void find_distances(struct distance *d, const struct cell_record *records, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t distance = distance_of(&records[i]);
		uint64_t *least = &d->least[records[i].cell.placement];
		uint64_t *greatest = &d->greatest[records[i].cell.placement];

		d->cells += distance > 0;
		if (distance && (!*least || distance < *least))
			*least = distance;
		if (distance > *greatest)
			*greatest = distance;
	}
	for (size_t i = 0; i < count; i++)
		d->far += is_far(d, &records[i]);
	d->both = d->far > FAR_SHARE * (double)d->cells;
}

/* --- Sums --- */

static void add_to_claim(struct estimate *e, struct claim *claim, struct section *s,
			 const struct cell_record *r)
{
	uint64_t toggles = record_toggles(r), tears = cell_result_tears(&r->result);

	claim->toggles += toggles;
	claim->tears += tears;
	claim->far_toggles += is_far(&e->distance, r) ? toggles : 0;
	claim->far_tears += is_far(&e->distance, r) ? tears : 0;
	s->toggles += toggles;
	s->tears += tears;
	e->toggles += toggles;
	e->tears += tears;
}

/* Only what ran as the library will run it speaks against a wait. */
static void add_wait_cell(struct estimate *e, const struct cell_record *r)
{
	int which = claim_of(r->cell.crossing);
	struct section *s;

	if (which < 0 || r->cell.stretch != e->stretch)
		return;
	s = section_of(e, &r->cell);
	torn_add(&e->torn, r);
	torn_add(&e->claim[which].torn, r);
	torn_add(&s->torn, r);
	consider_torn_cell(e, r);
	if (strcmp(r->stage, "campaign") == 0) {
		e->cells++;
		e->noisy += r->noisy;
	}
	/* The bracket chose the waits; only the campaign may speak for them. */
	if (speaks_for(r, &e->claim[which], e->stretch))
		add_to_claim(e, &e->claim[which], s, r);
}

/* Window w stands if no boundary inside it tore: 8 is inside 16, 16 inside 32, ... */
static void judge_window(struct estimate *e, const uint64_t toggles[], const uint64_t tears[])
{
	e->window = 8;
	e->word_tore = tears[CROSSING_NONE] > 0;
	e->window_toggles = toggles[CROSSING_NONE];
	e->window_p = bound_upper(tears[CROSSING_NONE], toggles[CROSSING_NONE], CONFIDENCE);
	for (int c = CROSSING_8; !e->word_tore && c <= CROSSING_32; c++) {
		double p = bound_upper(tears[c], toggles[c], CONFIDENCE);

		if (tears[c] || toggles[c] == 0)
			return;
		if (c == CROSSING_8 || p > e->window_p)
			e->window_p = p;
		if (c == CROSSING_8)
			e->window_toggles = 0;
		e->window_toggles += toggles[c];
		e->window = crossing_bytes((enum crossing)c) * 2;
	}
}

static void add_window_cell(const struct cell_record *r, uint64_t toggles[], uint64_t tears[])
{
	toggles[r->cell.crossing] += r->result.toggles;
	tears[r->cell.crossing] += cell_result_tears(&r->result);
}

/* --- Bounds --- */

static void raise_bound(struct claim *claim, double upper_p)
{
	if (upper_p > claim->upper_p)
		claim->upper_p = upper_p;
}

/* The ways in which the campaign was provoked at a claim's waits. */
static void gather_arms(const struct estimate *e, const struct claim *claim,
			const struct cell_record *records, size_t count, struct arms *arms)
{
	*arms = (struct arms){ 0 };
	for (size_t i = 0; i < count; i++) {
		const struct cell_record *r = &records[i];
		struct arm *arm = speaks_for(r, claim, e->stretch) ? arm_of(arms, &r->cell) : NULL;

		if (!arm)
			continue;
		arm->toggles += record_toggles(r);
		arm->tears += cell_result_tears(&r->result);
	}
}

/*
 * Every placement has to keep the promise, and so has every way to provoke, and
 * the time when the CPUs were far apart: an average over them is nobody's rate. All these bounds
 * have to hold at once, so each gets its part of what may go wrong; and the campaign is looked at
 * as it goes on, so they are of the kind that holds at every look.
 */
static void bound_sections(struct estimate *e, const struct cell_record *records, size_t count,
			   double promise)
{
	unsigned bounds = e->sections;
	struct arms arms[CLAIMS];
	double alpha;

	for (unsigned i = 0; i < CLAIMS; i++) {
		gather_arms(e, &e->claim[i], records, count, &arms[i]);
		bounds += arms[i].count + e->distance.both;
	}
	alpha = (1 - CONFIDENCE) / (bounds ? bounds : 1);
	for (unsigned i = 0; i < e->sections; i++) {
		struct section *s = &e->section[i];

		s->upper_p = sequential_upper(s->tears, s->toggles, promise, alpha);
		raise_bound(&e->claim[claim_of(s->crossing)], s->upper_p);
	}
	for (unsigned i = 0; i < CLAIMS; i++) {
		struct claim *claim = &e->claim[i];

		for (unsigned k = 0; k < arms[i].count; k++)
			raise_bound(claim,
				    sequential_upper(arms[i].arm[k].tears, arms[i].arm[k].toggles,
						     promise, alpha));
		if (e->distance.both)
			raise_bound(claim, sequential_upper(claim->far_tears, claim->far_toggles,
							    promise, alpha));
	}
}

/* The claim's cells in their order, as blocks of time. */
static size_t gather_blocks(const struct claim *claim, uint64_t stretch,
			    const struct cell_record *records, size_t count,
			    struct drift_block *blocks)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		const struct cell_record *r = &records[i];

		if (speaks_for(r, claim, stretch) && record_toggles(r))
			blocks[used++] = (struct drift_block){ cell_result_tears(&r->result),
							       record_toggles(r) };
	}
	return used;
}

/* An average over good times and bad ones is no bound for the bad ones. */
static void judge_drift(struct claim *claim, uint64_t stretch, const struct cell_record *records,
			size_t count, double promise)
{
	struct drift_block *blocks = calloc(count ? count : 1, sizeof(*blocks));
	struct drift_bound bound;
	size_t used;

	claim->drift_p = 1;
	if (!blocks)
		return;
	used = gather_blocks(claim, stretch, records, count, blocks);
	if (drift_bound(blocks, used, (uint64_t)(DRIFT_BLOCK / promise), CONFIDENCE, 1, &bound) ==
	    0) {
		claim->drift_p = bound.p;
		claim->drifted = !bound.steady;
		if (claim->drifted)
			raise_bound(claim, bound.upper);
	}
	free(blocks);
}

/*
 * How long did shorter waits stay clean before they were given up? If longer than
 * the claimed ones were tried at all, then it may have been a storm that ended
 * them, and nobody knows that the longer waits would weather it.
 */
static void find_clean(struct claim *claim, uint64_t stretch, const struct cell_record *records,
		       size_t count)
{
	uint64_t clean = 0;

	for (size_t i = 0; i < count; i++) {
		const struct cell_record *r = &records[i];

		if (!is_campaign_of(r, claim->crossing, stretch) || is_at(&r->cell, &claim->waits))
			continue;
		clean = cell_result_tears(&r->result) ? 0 : clean + record_toggles(r);
		if (clean > claim->clean_before)
			claim->clean_before = clean;
	}
}

static void bound_claims(struct estimate *e, const struct cell_record *records, size_t count,
			 double promise)
{
	bound_sections(e, records, count, promise);
	for (unsigned i = 0; i < CLAIMS; i++) {
		struct claim *claim = &e->claim[i];

		judge_drift(claim, e->stretch, records, count, promise);
		find_clean(claim, e->stretch, records, count);
		/* Nothing tried, nothing known. */
		if (claim->toggles == 0)
			claim->upper_p = 1;
		if (claim->upper_p > e->upper_p)
			e->upper_p = claim->upper_p;
	}
	e->pooled_p = sequential_upper(e->tears, e->toggles, promise, 1 - CONFIDENCE);
}

/* --- The worst cells, to try again --- */

static bool same_kind(const struct cell *a, const struct cell *b)
{
	return a->placement == b->placement && a->executors == b->executors &&
	       a->crossing == b->crossing && a->split == b->split && a->provokers == b->provokers &&
	       a->loop == b->loop && a->rest == b->rest;
}

/* More tears first; of two that were equally bad, the one that is known less. */
static int by_badness(const void *left, const void *right)
{
	const struct worst *a = left, *b = right;

	if (a->tears != b->tears)
		return a->tears > b->tears ? -1 : 1;
	if (a->toggles != b->toggles)
		return a->toggles < b->toggles ? -1 : 1;
	return 0;
}

static size_t gather_kinds(const struct estimate *e, const struct cell_record *records,
			   size_t count, struct worst *kinds)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		const struct cell_record *r = &records[i];
		int which = claim_of(r->cell.crossing);
		size_t k = 0;

		if (which < 0 || !speaks_for(r, &e->claim[which], e->stretch))
			continue;
		while (k < used && !same_kind(&kinds[k].cell, &r->cell))
			k++;
		if (k == used)
			kinds[used++] = (struct worst){ .cell = r->cell };
		kinds[k].toggles += record_toggles(r);
		kinds[k].tears += cell_result_tears(&r->result);
	}
	return used;
}

/* As many of each claim, so that neither hides the other. */
static void find_worst(struct estimate *e, const struct cell_record *records, size_t count)
{
	struct worst *kinds = calloc(count ? count : 1, sizeof(*kinds));
	unsigned room[CLAIMS] = { WORST_MAX / CLAIMS, WORST_MAX / CLAIMS };
	size_t used;

	if (!kinds)
		return;
	used = gather_kinds(e, records, count, kinds);
	qsort(kinds, used, sizeof(*kinds), by_badness);
	for (size_t i = 0; i < used; i++) {
		unsigned *left = &room[claim_of(kinds[i].cell.crossing)];

		if (*left == 0)
			continue;
		(*left)--;
		e->worst[e->worsts++] = kinds[i];
	}
	free(kinds);
}

/* What was to be tested is told of, also where nothing came of it. */
static void list_sections(struct estimate *e, const struct plan *plan)
{
	for (unsigned i = 0; i < plan->seats; i++) {
		for (unsigned k = 0; k < CLAIMS; k++) {
			struct cell cell = {
				.placement = plan->seat[i].placement,
				.crossing = e->claim[k].crossing,
			};

			section_of(e, &cell);
		}
	}
}

static void set_waits(struct estimate *e, const struct waits waits[CLAIMS])
{
	for (unsigned i = 0; i < CLAIMS; i++) {
		e->claim[i] = (struct claim){
			.crossing = i == CLAIM_LINE ? CROSSING_LINE : CROSSING_PAGE,
			.waits = waits[i],
		};
		if (waits[i].first > e->waits.first)
			e->waits.first = waits[i].first;
		if (waits[i].second > e->waits.second)
			e->waits.second = waits[i].second;
	}
}

void estimate_make(struct estimate *e, const struct cell_record *records, size_t count,
		   const struct waits waits[CLAIMS], const struct plan *plan)
{
	uint64_t window_toggles[CROSSING_COUNT] = { 0 }, window_tears[CROSSING_COUNT] = { 0 };

	*e = (struct estimate){ .stretch = plan->stretch };
	set_waits(e, waits);
	list_sections(e, plan);
	find_distances(&e->distance, records, count);
	for (size_t i = 0; i < count; i++) {
		const struct cell_record *r = &records[i];

		if (r->cell.protocol == PROTOCOL_WAIT)
			add_wait_cell(e, r);
		else if (r->cell.protocol == PROTOCOL_ATOMIC)
			add_window_cell(r, window_toggles, window_tears);
		else if (r->cell.protocol == PROTOCOL_NAIVE && cell_result_tears(&r->result))
			e->tears_here = true;
	}
	judge_window(e, window_toggles, window_tears);
	bound_claims(e, records, count, plan->promise);
	find_worst(e, records, count);
	arms_count(&e->arms, records, count);
}
