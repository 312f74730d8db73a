/* SPDX-License-Identifier: MIT */
/*
 * XRay of clang: bench/peers/programs/xray.c, compiled where it is used, see there.
 */
#include <errno.h>
#include <stdio.h>

#include "bench/peers/all.h"
#include "bench/peers/compiled.h"

#define CLANG_PACKAGE	"clang"
#define RUNTIME_PACKAGE "libclang-rt-dev"
#define START_SECONDS	10

/* Whether the runtime is there shows when it is linked: what clang says then is the reason. */
static int build(struct outside *o, const char *program, char *why)
{
	char source[OUTSIDE_PATH], said[BENCH_WHY];
	int ret = outside_source("xray.c", source, why);

	if (ret < 0)
		return ret;
	ret = outside_build(o,
			    (const char *[]){ "clang", "-std=gnu11", "-O2", "-pthread",
					      "-fxray-instrument", "-fxray-instruction-threshold=1",
					      source, "-o", program, NULL },
			    CLANG_PACKAGE, why);
	if (ret == -EIO) {
		snprintf(said, sizeof(said), "%s", why);
		snprintf(why, BENCH_WHY, "%.100s (Debian: %s)", said, RUNTIME_PACKAGE);
	}
	return ret;
}

static int start(struct outside *o, const char *program, char *why)
{
	char patcher[16], executor[16];

	snprintf(patcher, sizeof(patcher), "%u", outside_patcher(o->run));
	snprintf(executor, sizeof(executor), "%u", outside_executor(o->run));
	return outside_start(o, (const char *[]){ program, patcher, executor, NULL }, CLANG_PACKAGE,
			     START_SECONDS, NULL, why);
}

int xray_open(struct peer *peer, const struct bench_run *run, char *why)
{
	static const struct compiled how = { "xray", build, start };
	static struct outside outside;
	int ret = compiled_open(peer, &outside, &how, run, why);

	outside_remove(&outside);
	return ret;
}

void xray_close(struct peer *peer)
{
	compiled_close(peer);
}
