/* SPDX-License-Identifier: MIT */
/* Detour a function whose first instructions are short: a jump replaces several, and back. */
#include <patchcore/merge.h>

#include "example.h"

#define FUNCTION ACROSS
#define DETOUR	 256 /* where the jump leads */

/* xor eax, eax; add eax, 1; ret: starts at 0, 2 and 5, the jump ends behind the first two. */
static const uint8_t old_code[] = { 0x31, 0xc0, 0x83, 0xc0, 0x01, 0xc3 };
#define OLD_STARTS 0x05u
#define JUMP	   5u

static struct runner runner;

static void wait_for(int result)
{
	unsigned long before = runner.results[result];

	while (runner.results[result] < before + 1000)
		;
}

int main(void)
{
	uint8_t *page = map_open_code(), *at = page + FUNCTION, jump[JUMP];
	int ret;

	memcpy(at, old_code, sizeof(old_code));
	put_function(page + DETOUR, 2);
	put_branch(jump, 0xe9, FUNCTION, DETOUR);
	if (pc_init() < 0)
		return 1;
	runner_start(&runner, at);
	/* A thread may be at the second instruction: that start is lost, so all are looked at. */
	ret = pc_patch_over(at, jump, JUMP, OLD_STARTS, 1, PC_CHECK_THREADS);
	if (ret == 0)
		wait_for(2);
	/* Nothing is lost now, and that is checked. */
	if (ret == 0)
		ret = pc_patch_over(at, old_code, JUMP, 1, OLD_STARTS, PC_STARTS_KEPT);
	wait_for(1);
	runner_stop(&runner);
	printf("%s: %lu old, %lu new\n", pc_strerror(ret), runner.results[1], runner.results[2]);
	/* -ENOTSUP, -EAGAIN and so on: the old code is still there. */
	return runner.results[0] || (ret == 0 && !runner.results[2]);
}
