/* SPDX-License-Identifier: MIT */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

#define RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

/*
 * random_next - splitmix64 (Steele, Lea, Flood 2014): enough to keep stores off
 * any beat, and the same for the same seed everywhere.
 */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += RANDOM_STEP;

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* random_at - what random_next() gives after so many others. Neighbours have nothing in common. */
static inline uint64_t random_at(uint64_t seed, uint64_t before)
{
	uint64_t state = seed + before * RANDOM_STEP;

	return random_next(&state);
}

/* random_about - from half the mean to one and a half of it, each as likely. */
static inline uint64_t random_about(uint64_t *state, uint64_t mean)
{
	return mean / 2 + random_next(state) % (mean + 1);
}

#endif
