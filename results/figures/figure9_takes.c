/* SPDX-License-Identifier: MIT */
#include "results/figures/figure9_takes.h"

bool figure9_fits(const struct cell *c, enum oracle oracle)
{
	/* The caption of the crash figure tells what differs from the paper; the other has none. */
	if (oracle == ORACLE_COUNT && (c->provokers || c->loop))
		return false;
	return c->oracle == oracle && c->protocol == PROTOCOL_WAIT &&
	       c->first_wait == c->second_wait &&
	       (c->crossing == CROSSING_LINE || c->crossing == CROSSING_PAGE);
}

/*
 * A run that was stopped early has counted as far as it went, but it has not
 * survived. A hang or a kill says nothing about the site.
 */
bool figure9_has_answer(const struct cell_record *r)
{
	switch (r->result.outcome) {
	case OUTCOME_DONE:
	case OUTCOME_CRASH:
		return r->result.toggles > 0;
	case OUTCOME_INTERRUPTED:
		return r->cell.oracle == ORACLE_COUNT && r->result.toggles > 0;
	default:
		return false;
	}
}

bool figure9_takes(const struct cell_record *record, enum oracle oracle)
{
	return figure9_fits(&record->cell, oracle) && figure9_has_answer(record);
}
