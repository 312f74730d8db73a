/* SPDX-License-Identifier: MIT */
/* Turn the five NOPs that gcc leaves at a function's entry into a call, while threads run it. */
#include <patchcore/merge.h>

#include "example.h"

#define SITE  ACROSS
#define PROBE 256 /* what is to be called */

static struct runner runner;

int main(void)
{
	/* xor eax, eax; five NOPs; ret */
	static const uint8_t code[] = { 0x31, 0xc0, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3 };
	uint8_t *page = map_open_code(), call[5];
	int ret;

	memcpy(page + SITE - 2, code, sizeof(code));
	put_function(page + PROBE, 1);
	put_branch(call, 0xe8, SITE, PROBE);
	if (pc_init() < 0)
		return 1;
	runner_start(&runner, page + SITE - 2);
	ret = pc_patch_merge(page + SITE, call, sizeof(call), PC_CHECK_THREADS);
	while (ret == 0 && runner.results[1] < 1000)
		;
	runner_stop(&runner);
	printf("%s: %lu runs, then %lu probed\n", pc_strerror(ret), runner.results[0],
	       runner.results[1]);
	/* -ENOTSUP, -EAGAIN and so on: the NOPs are still there. */
	return run(page + SITE - 2) == (ret == 0) ? 0 : 1;
}
