/* SPDX-License-Identifier: MIT */
#include "bench/peers/compiled.h"

static int build_and_start(struct outside *o, const struct compiled *how, char *why)
{
	char program[OUTSIDE_PATH];
	int ret;

	outside_path(o, how->name, program);
	ret = how->build(o, program, why);
	return ret < 0 ? ret : how->start(o, program, why);
}

int compiled_open(struct peer *peer, struct outside *o, const struct compiled *how,
		  const struct bench_run *run, char *why)
{
	int ret;

	*o = (struct outside){ 0 };
	ret = outside_open(o, run, why);
	if (ret == 0)
		ret = build_and_start(o, how, why);
	if (ret < 0)
		outside_close(o);
	peer->state = ret < 0 ? NULL : o;
	return ret;
}

void compiled_close(struct peer *peer)
{
	outside_close(peer->state);
	peer->state = NULL;
}
