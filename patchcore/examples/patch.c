/* SPDX-License-Identifier: MIT */
/* Let a call in generated code go elsewhere, while a thread runs it and it straddles a line. */
#include "example.h"

#define CALL ACROSS
#define ONE  256
#define TWO  1040

static struct runner runner;

int main(void)
{
	uint8_t *page = map_open_code(), call[2][5];
	int ret;

	put_branch(call[0], 0xe8, CALL, ONE);
	put_branch(call[1], 0xe8, CALL, TWO);
	memcpy(page + CALL, call[0], 5);
	page[CALL + 5] = 0xc3; /* ret */
	put_function(page + ONE, 1);
	put_function(page + TWO, 2);
	runner_start(&runner, page + CALL);
	ret = pc_init();
	for (int i = 1; i <= 1000 && ret == 0; i++)
		ret = pc_patch(page + CALL, call[i % 2], 5);
	runner_stop(&runner);
	printf("%s: one %lu, two %lu times\n", pc_strerror(ret), runner.results[1],
	       runner.results[2]);
	/* -ENOTSUP: no policy is safe here, and the code is as it was. */
	return (ret == 0 || ret == -ENOTSUP) && run(page + CALL) == 1 ? 0 : 1;
}
