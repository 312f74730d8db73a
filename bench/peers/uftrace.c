/* SPDX-License-Identifier: MIT */
/*
 * uftrace: bench/peers/programs/uftrace.c under "uftrace record -P". It patches before the
 * program's main() and never after, so there is nothing to toggle: only what a function costs that
 * is traced, or is not.
 */
#include <stdio.h>

#include "bench/peers/all.h"
#include "bench/peers/compiled.h"

#define COMPILER_PACKAGE "gcc"
#define PACKAGE		 "uftrace"
#define START_SECONDS	 20
#define CALLS_MOST	 20000 /* each leaves 32 bytes in a file */

static int build(struct outside *o, const char *program, char *why)
{
	char source[OUTSIDE_PATH];
	int ret = outside_source("uftrace.c", source, why);

	if (ret < 0)
		return ret;
	return outside_build(
		o, (const char *[]){ "cc", "-std=gnu11", "-O2", source, "-o", program, NULL },
		COMPILER_PACKAGE, why);
}

/* No library calls, no events of the kernel: only the function. */
static int start(struct outside *o, const char *program, char *why)
{
	char data[OUTSIDE_PATH], cpu[16];

	outside_path(o, "data", data);
	snprintf(cpu, sizeof(cpu), "%u", outside_patcher(o->run));
	return outside_start(o,
			     (const char *[]){ "uftrace", "record", "--no-libcall", "--no-event",
					       "-P", "^traced$", "-d", data, program, cpu, NULL },
			     PACKAGE, START_SECONDS, NULL, why);
}

int uftrace_open(struct peer *peer, const struct bench_run *run, char *why)
{
	static const struct compiled how = { "traced", build, start };
	static struct outside outside;

	return compiled_open(peer, &outside, &how, run, why);
}

void uftrace_close(struct peer *peer)
{
	compiled_close(peer);
}

int uftrace_cost(struct peer *peer, uint64_t calls, struct peer_cost *cost, char *why)
{
	return outside_cost(peer, calls < CALLS_MOST ? calls : CALLS_MOST, cost, why);
}
