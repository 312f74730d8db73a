/* SPDX-License-Identifier: MIT */
/*
 * Has a ladder risen? Looks at one machine, one after the other, each by the same cells.
 *
 * Tears come in bursts and storms, and how much looks differ is unknown: so a look is only ranked
 * among those before it. On a machine that stays as it is, each rank is as likely as any other,
 * for storms of any kind. What a look of that rank is worth is bet on (Vovk's conformal test
 * martingale): the capital of the bets grows where late looks are high, and on a machine that stays
 * as it is it never reaches 1 / level but with a chance of level, however many looks there
 * are (Ville 1939). What is taken for granted: looks of a machine that stays as it is could have
 * come in any other order. Looks within one storm could not: a day between two is on the safe side.
 */
#ifndef CALIBRATE_STATISTICS_RISE_H
#define CALIBRATE_STATISTICS_RISE_H

#include <stdbool.h>

#include "calibrate/statistics/sums.h"

#define RISE_LEARN 8 /* looks that others are ranked among before the first bet */

struct rise_look {
	const struct sums *sums; /* only waits count */
	uint64_t seed;		 /* decides among equal ranks; anything but what was counted */
};

struct rise {
	double capital; /* the most that it was; 1 at the beginning */
	double now;	/* and after the last look */
	bool rose;	/* capital has reached 1 / level */
	size_t at;	/* the look at which it did, from 0 */
	size_t since;	/* if a bet was won: the look from which on they are high, as it seems */
	double times;	/* as many tears since then as before; 1: unknown */
};

/*
 * rise_chances - the rank of each look among all up to it, as a number between 0 and 1: the chance
 * of one so high or higher. 0 or -ENOMEM.
 */
int rise_chances(const struct rise_look *looks, size_t count, double *chances);

/* rise_bet - the capital that these chances bring, and whether it has reached 1 / level. 0, -ENOMEM
 */
int rise_bet(const double *chances, size_t count, double level, struct rise *rise);

/* rise_of - both, and how many times the ladder rose. 0 or -ENOMEM. */
int rise_of(const struct rise_look *looks, size_t count, double level, struct rise *rise);

#endif
