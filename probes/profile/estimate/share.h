/* SPDX-License-Identifier: MIT */
/*
 * What share of the program's time a function has, by a random sample of that time.
 *
 * Samples are dealt out to groups in turn. How much groups differ tells how far off all together
 * may be, also where one sample has to do with the next part of the program.
 */
#ifndef PROBES_PROFILE_ESTIMATE_SHARE_H
#define PROBES_PROFILE_ESTIMATE_SHARE_H

#define SHARE_GROUPS 10

/* From 0 to 1; the interval of 95 %. */
struct share {
	double value, low, high;
};

/*
 * share_of - @part: of @all, by group; a group without all says nothing. @samples: in all groups.
 * What no sample has seen may have up to three of them. Of fewer than two groups: 0 to 1.
 */
struct share share_of(const double part[SHARE_GROUPS], const double all[SHARE_GROUPS],
		      double samples);

#endif
