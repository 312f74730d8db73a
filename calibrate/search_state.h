/* SPDX-License-Identifier: MIT */
/*
 * What the stages of a search share. Private to search.c and its stages.
 */
#ifndef CALIBRATE_SEARCH_STATE_H
#define CALIBRATE_SEARCH_STATE_H

#include "calibrate/arm.h"
#include "calibrate/estimate.h"
#include "calibrate/plan.h"
#include "calibrate/session.h"

#define ARMS_CAMPAIGN 3	   /* the campaign runs on: none, and the two worst */
#define CELL_MIN      0.05 /* seconds; shorter cells are mostly set-up */
#define CELL_SHORT    0.1  /* seconds; rather fewer cells than shorter ones */
#define WAIT_STEP     100  /* ticks; candidates are multiples */
#define WAIT_MIN      200  /* a smaller candidate saves nothing */

/* The waits that the campaign tries for one claim. */
struct candidate {
	struct waits waits;
	unsigned round; /* counts them; part of seed and key */
};

struct search {
	struct session *session;
	const struct plan *plan;
	struct torn torn[CLAIMS];
	struct waits proposed[CLAIMS]; /* by the fit of the tail; 0: it proposes nothing */
	struct candidate candidate[CLAIMS];
	struct arm arm[ARMS_CAMPAIGN]; /* ways to run the cells of the campaign */
	unsigned arms;
	unsigned pass;
	bool sighted; /* the protocols that are broken for certain tore */
	bool beyond;  /* a candidate had to go above the ceiling */
};

/* search_cell - a cell of `seconds` at a seat, with a seed of its own. */
void search_cell(const struct search *s, struct cell *cell, const struct seat *seat,
		 double seconds);

/* search_run_cell - run it and take note of what tore. As session_run(). */
int search_run_cell(struct search *s, const char *stage, unsigned round, const struct cell *cell,
		    const struct cell_record **record);

/* search_pair - the code pair for a split, one after the other with each turn. */
enum code_pair search_pair(unsigned split, unsigned turn);

/* search_round_up - to a wait that a candidate may have. */
uint64_t search_round_up(double wait);

/* The stages, in order. 0 or as session_run(). */
int stage_proof(struct search *s);
int stage_window(struct search *s);
int stage_bracket(struct search *s);
int stage_provoke(struct search *s);
int stage_gaps(struct search *s);
int stage_campaign(struct search *s);

/* campaign_cells - cells of one pass; campaign_tried - of them, those tried at the last waits. */
unsigned campaign_cells(const struct search *s);
unsigned campaign_tried(const struct search *s);

#endif
