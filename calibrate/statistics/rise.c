/* SPDX-License-Identifier: MIT */
#include "calibrate/statistics/rise.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "stress/base/random.h"

#define HAZARD 0.02 /* that the ladder rises just before a look: one in fifty */

/*
 * A bet that the ladder rose at a look pays by the ranks of the looks from there on. The first kind
 * pays e * p^(e - 1) for each: for looks that are often high. The second puts a part of its
 * capital on the ranks that these looks have if all of them are higher than all before. Both pay 1
 * in the mean where every rank is as likely.
 */
static const struct {
	double e, part; /* one of them, and 0 */
} bet[] = { { 0.25, 0 }, { 0.5, 0 }, { 0.75, 0 }, { 0, 0.5 }, { 0, 0.9 } };
#define BETS	 (sizeof(bet) / sizeof(bet[0]))
#define TOP_MOST 0.5 /* share of the ranks that the second kind bets on */

/* --- Ranks ------------------------------------------------------------------------------------ */

static double score_of(const struct sums *look, const struct sums *all)
{
	double score;

	sums_excess(look, all, 1, &score);
	return score;
}

static int add_waits(struct sums *all, const struct sums *look)
{
	int ret = 0;

	for (size_t i = 0; i < look->count && ret == 0; i++)
		if (look->sum[i].kind == SUM_WAIT && look->sum[i].count.toggles)
			ret = sums_add(all, &look->sum[i]);
	return ret;
}

int rise_chances(const struct rise_look *looks, size_t count, double *chances)
{
	struct sums all = { 0 };
	int ret = 0;

	for (size_t last = 0; last < count && ret == 0; last++) {
		double between = (double)(random_at(looks[last].seed, last) >> 11) * 0x1p-53;
		size_t higher = 0, equal = 1;
		double score;

		/* By the rates of all, these look the same in any order: as ranks
		 * need it. */
		ret = add_waits(&all, looks[last].sums);
		if (ret < 0)
			break;
		score = score_of(looks[last].sums, &all);
		for (size_t i = 0; i < last; i++) {
			double other = score_of(looks[i].sums, &all);

			higher += other > score;
			equal += other == score;
		}
		chances[last] =
			((double)higher + (1 - between) * (double)equal) / (double)(last + 1);
	}
	sums_free(&all);
	return ret;
}

/* --- Bets ------------------------------------------------------------------------------------- */

/* What the bets on a rise just before look `start` have become of 1 after look i, in the mean. */
static double bet_on(double capital[BETS], const double *chances, size_t start, size_t i)
{
	double top = fmin(TOP_MOST, (double)(i + 1 - start) / (double)(i + 1)), sum = 0;

	for (unsigned k = 0; k < BETS; k++) {
		double e = bet[k].e, part = bet[k].part;

		capital[k] *= e > 0 ? e * pow(chances[i], e - 1)
				    : 1 - part + (chances[i] <= top ? part / top : 0);
		sum += capital[k] / (double)BETS;
	}
	return sum;
}

/*
 * The capital is shared out among all looks before which the ladder may rise, with a share of
 * HAZARD of what is left for each; what is not yet bet is kept. So the sum is one martingale.
 */
int rise_bet(const double *chances, size_t count, double level, struct rise *rise)
{
	size_t bets = count > RISE_LEARN ? count - RISE_LEARN : 0;
	double(*capital)[BETS] = calloc(bets + 1, sizeof(*capital)), left = 1;

	*rise = (struct rise){ .capital = 1, .now = 1, .since = count, .times = 1 };
	if (!capital)
		return -ENOMEM;
	for (size_t i = RISE_LEARN; i < count; i++) {
		double best = 0;

		for (unsigned k = 0; k < BETS; k++)
			capital[i - RISE_LEARN][k] = left * HAZARD;
		left -= left * HAZARD;
		rise->now = left;
		for (size_t start = RISE_LEARN; start <= i; start++) {
			double won = bet_on(capital[start - RISE_LEARN], chances, start, i);

			rise->now += won;
			if (won > best) {
				best = won;
				rise->since = start;
			}
		}
		rise->capital = fmax(rise->capital, rise->now);
		if (!rise->rose && rise->capital >= 1 / level) {
			rise->rose = true;
			rise->at = i;
		}
	}
	free(capital);
	return 0;
}

int rise_of(const struct rise_look *looks, size_t count, double level, struct rise *rise)
{
	double *chances = malloc((count + 1) * sizeof(*chances));
	struct sums all = { 0 };
	double before = 0, after = 0;
	int ret = chances ? rise_chances(looks, count, chances) : -ENOMEM;

	if (ret == 0)
		ret = rise_bet(chances, count, level, rise);
	for (size_t i = 0; i < count && ret == 0; i++)
		ret = add_waits(&all, looks[i].sums);
	if (ret == 0 && rise->since > 0 && rise->since < count) {
		for (size_t i = 0; i < count; i++)
			*(i < rise->since ? &before : &after) += score_of(looks[i].sums, &all);
		rise->times =
			exp(after / (double)(count - rise->since) - before / (double)rise->since);
	}
	sums_free(&all);
	free(chances);
	return ret;
}
