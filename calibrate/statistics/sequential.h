/* SPDX-License-Identifier: MIT */
/*
 * Bounds of a tear rate that hold however often one looks, and whenever one stops.
 *
 * The bounds of calibrate/statistics/bound.h hold for a number of toggles fixed beforehand.
 * Looking at them after every cell and stopping at the first that pleases makes
 * them wrong more often than they say. These here are the beta-binomial mixture
 * (H. Robbins, Ann. Math. Stat. 41, 1970): under a rate p, the likelihood of the
 * tears under a mixture of rates divided by that under p is a martingale that
 * starts at 1. By Ville's inequality it ever reaches 1 / alpha with probability
 * alpha at most. The rates for which it has not done so are the confidence set:
 * an interval, both ends of which hold at all times together.
 *
 * The mixture is Beta(1/2, 1/(2 scale)), with a mean of about scale. Any scale gives bounds
 * that are true; near the rate in question they are narrowest. It must be chosen
 * before the first look: take the promise. Without tears, a promise is then reached
 * after 4.2 / promise toggles at 95 %, where a single look takes 3.0.
 */
#ifndef CALIBRATE_STATISTICS_SEQUENTIAL_H
#define CALIBRATE_STATISTICS_SEQUENTIAL_H

#include <stdint.h>

enum decision {
	DECISION_CONTINUE, /* not known yet */
	DECISION_ACCEPT,   /* the rate is not above what was promised */
	DECISION_REJECT,   /* it is */
};

/*
 * sequential_upper / _lower - bounds after so many tears in so many toggles; each
 * is wrong at any time at all with probability alpha at most, and so are both
 * together. Nothing tried: 1 and 0.
 */
double sequential_upper(uint64_t tears, uint64_t toggles, double scale, double alpha);
double sequential_lower(uint64_t tears, uint64_t toggles, double scale, double alpha);

/*
 * sequential_decide - does the rate keep the promise? Ask as often as you like;
 * of all runs of a machine, a share of alpha at most gets a wrong answer.
 */
enum decision sequential_decide(uint64_t tears, uint64_t toggles, double promise, double alpha);

#endif
