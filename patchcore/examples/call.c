/* SPDX-License-Identifier: MIT */
/* Turn a probe, a call that a compiler could have put there, off and on while a thread runs it. */
#include <patchcore/call.h>

#include "example.h"

#define CALL  ACROSS
#define PROBE 256
#define OTHER 1024

static struct runner runner;

/* xor eax, eax; call PROBE; ret */
static void make_code(uint8_t *page)
{
	page[CALL - 2] = 0x31;
	page[CALL - 1] = 0xc0;
	put_branch(page + CALL, 0xe8, CALL, PROBE);
	page[CALL + 5] = 0xc3;
	put_function(page + PROBE, 1);
	put_function(page + OTHER, 2);
}

static int toggle(struct pc_call *call, void *other)
{
	int ret = 0;

	for (int i = 0; i < 100000 && ret == 0; i++)
		ret = i % 2 ? pc_activate_call(call, NULL) : pc_deactivate_call(call);
	/* The first target of its own is given by a word patch, which not every machine allows. */
	if (ret == 0)
		ret = pc_activate_call(call, other);
	return ret == -ENOTSUP ? 0 : ret;
}

int main(void)
{
	uint8_t *page = map_open_code();
	struct pc_call_info info = { 0 };
	struct pc_call call;
	int ret;

	make_code(page);
	ret = pc_init();
	/* Open, so that a toggle needs no system call. */
	if (ret == 0)
		ret = pc_text_open(page, PAGE);
	if (ret == 0)
		ret = pc_call_init(&call, page + CALL);
	if (ret < 0)
		return printf("not ready: %s\n", pc_strerror(ret)), 1;
	runner_start(&runner, page + CALL - 2);
	ret = toggle(&call, page + OTHER);
	runner_stop(&runner);
	pc_call_get(&call, &info);
	/* The place may be had again. The code stays as it is, and runs on. */
	if (ret == 0)
		ret = pc_call_fini(&call);
	printf("%s: off %lu, probe %lu, other %lu times; %u bytes before the boundary\n",
	       pc_strerror(ret), runner.results[0], runner.results[1], runner.results[2],
	       info.split);
	return ret == 0 && info.active && run(page + CALL - 2) > 0 ? 0 : 1;
}
