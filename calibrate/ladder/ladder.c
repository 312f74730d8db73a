/* SPDX-License-Identifier: MIT */
#include "calibrate/ladder/ladder.h"

#include <inttypes.h>
#include <stdio.h>

#define LOWEST UINT64_C(100)  /* ticks; above 0 */
#define SURELY UINT64_C(3200) /* ticks; tried however little a membarrier costs */

static void add_rung(struct ladder *ladder, uint64_t wait, uint64_t stretch)
{
	if (ladder->count < RUNGS_MAX)
		ladder->rung[ladder->count++] = (struct rung){ wait, wait, stretch };
}

void ladder_make(struct ladder *ladder, uint64_t ticks)
{
	uint64_t top = ticks ? ticks / 2 : LADDER_TOP;

	*ladder = (struct ladder){ 0 };
	if (top < SURELY)
		top = SURELY;
	if (top > LADDER_TOP)
		top = LADDER_TOP;
	add_rung(ladder, 0, LADDER_STRETCH);
	for (uint64_t wait = LOWEST; wait <= top; wait *= 2)
		add_rung(ladder, wait, LADDER_STRETCH);
	ladder->stretched = ladder->count;
	for (uint64_t wait = 0; wait <= LADDER_PAPER; wait += LADDER_STEP)
		add_rung(ladder, wait, 0);
}

struct rung rung_of(const struct cell *cell)
{
	return (struct rung){ cell->first_wait, cell->second_wait, cell->stretch };
}

bool rung_same(const struct rung *a, const struct rung *b)
{
	return rung_compare(a, b) == 0;
}

static int compare_waits(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

int rung_compare(const struct rung *a, const struct rung *b)
{
	int order = compare_waits(a->stretch == 0, b->stretch == 0);

	if (order == 0)
		order = compare_waits(a->stretch, b->stretch);
	if (order == 0)
		order = compare_waits(a->first, b->first);
	return order ? order : compare_waits(a->second, b->second);
}

int ladder_find(const struct ladder *ladder, const struct cell *cell)
{
	struct rung rung = rung_of(cell);

	for (unsigned i = 0; i < ladder->count; i++)
		if (rung_same(&ladder->rung[i], &rung))
			return (int)i;
	return -1;
}

char *rung_text(const struct rung *rung, char *buf, size_t size)
{
	int length = snprintf(buf, size, "%" PRIu64, rung->first);

	if (rung->second != rung->first && length >= 0 && (size_t)length < size)
		length += snprintf(buf + length, size - (size_t)length, "+%" PRIu64, rung->second);
	if (rung->stretch && length >= 0 && (size_t)length < size)
		snprintf(buf + length, size - (size_t)length, " x%" PRIu64, rung->stretch);
	return buf;
}
