/* SPDX-License-Identifier: MIT */
#include "calibrate/plan/ladder.h"

#define LOWEST UINT64_C(100)  /* ticks; above 0 */
#define SURELY UINT64_C(3200) /* ticks; tried however little a membarrier costs */

static void add_rung(struct ladder *ladder, uint64_t wait, uint64_t stretch)
{
	if (ladder->count < RUNGS_MAX)
		ladder->rung[ladder->count++] = (struct waits){ wait, wait, stretch };
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
