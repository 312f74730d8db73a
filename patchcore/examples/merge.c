/* SPDX-License-Identifier: MIT */
/* Turn the five NOPs that gcc leaves at a function's entry into a call, while threads run it. */
#include <patchcore/merge.h>
#include <pthread.h>

#include "example.h"

#define SITE  ACROSS
#define PROBE 256 /* what is to be called */

static _Atomic unsigned long runs, probed;
static _Atomic int stop;

static void *execute(void *code)
{
	while (!stop) {
		probed += run(code);
		runs++;
	}
	return NULL;
}

int main(void)
{
	/* xor eax, eax; five NOPs; ret */
	static const uint8_t code[] = { 0x31, 0xc0, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3 };
	uint8_t *page = map_open_code(), call[5];
	unsigned long before;
	pthread_t thread;
	int ret;

	memcpy(page + SITE - 2, code, sizeof(code));
	put_function(page + PROBE, 1);
	put_branch(call, 0xe8, SITE, PROBE);
	if (pc_init() < 0 || pthread_create(&thread, NULL, execute, page + SITE - 2) != 0)
		return 1;
	ret = pc_patch_merge(page + SITE, call, sizeof(call), PC_CHECK_THREADS);
	/* One run may have begun before. */
	before = runs;
	while (ret == 0 && runs < before + 1000)
		;
	stop = 1;
	pthread_join(thread, NULL);
	printf("%s: %lu runs, %lu probed\n", strerror(-ret), runs, probed);
	/* -ENOTSUP, -EAGAIN and so on: the NOPs are still there. */
	return run(page + SITE - 2) == (ret == 0) && (ret < 0 || probed >= 999) ? 0 : 1;
}
