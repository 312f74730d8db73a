/* SPDX-License-Identifier: MIT */
/* Start a thousand changes, do something else, and finish them: no caller stands through a wait. */
#include <patchcore/async.h>

#include "example.h"

enum {
	COUNT = 1000,
	SLOT = 64, /* one function ends each line, so that its first instruction straddles */
	BYTES = COUNT * SLOT + SLOT
};

static uint8_t *code;

static uint8_t *site(int i)
{
	return code + (i + 1) * SLOT - 2;
}

int main(void)
{
	uint8_t load[5];
	int ret = pc_init(), asked = 0, sum = 0;

	code = map_code(BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE);
	for (int i = 0; i < COUNT; i++)
		put_function(site(i), 1);
	/* Open pages need no look at their protection for each change. */
	if (ret == 0)
		ret = pc_text_open(code, BYTES);
	put_load(load, 2);
	for (int i = 0; i < COUNT && ret == 0; i++)
		ret = pc_start_patch(site(i), load, sizeof(load));

	/* The first is wanted now: a step when one is due, and time for other things between. */
	while (ret == 0 && pc_finish_patch(site(0)) > PC_FINISHED)
		asked++;

	/* One that is not finished yet finishes when an executor runs it. */
	if (ret == 0 && run(site(1)) != 2)
		ret = -EIO;

	/* The rest: one pair of waits for hundreds. */
	if (ret == 0)
		ret = pc_drain();
	for (int i = 0; i < COUNT; i++)
		sum += run(site(i));
	printf("%s: asked %d times for the first; %d functions return %d\n", pc_strerror(ret),
	       asked, COUNT, sum);
	/* Neither a safe policy nor writable pages need be had. */
	return (ret == 0 && sum == 2 * COUNT) || ret == -ENOTSUP || ret == -EACCES ? 0 : 1;
}
