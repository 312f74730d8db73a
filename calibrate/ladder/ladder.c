/* SPDX-License-Identifier: MIT */
#include "calibrate/ladder/ladder.h"

#define LOWEST UINT64_C(100)  /* ticks; above 0 */
#define SURELY UINT64_C(3200) /* ticks; tried however little a membarrier costs */

void ladder_make(struct ladder *ladder, uint64_t ticks)
{
	uint64_t top = ticks ? ticks / 2 : LADDER_TOP;

	*ladder = (struct ladder){ 0 };
	if (top < SURELY)
		top = SURELY;
	if (top > LADDER_TOP)
		top = LADDER_TOP;
	/* RUNGS_MAX has room for the highest top. */
	for (uint64_t wait = 0; wait <= top; wait = wait ? 2 * wait : LOWEST)
		ladder->rung[ladder->count++] = (struct waits){ wait, wait, LADDER_STRETCH };
	ladder->stretched = ladder->count;
	for (uint64_t wait = 0; wait <= LADDER_PAPER; wait += LADDER_STEP)
		ladder->rung[ladder->count++] = (struct waits){ wait, wait, 0 };
}
