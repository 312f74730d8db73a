/* SPDX-License-Identifier: MIT */
/*
 * A tracepoint of LTTng-UST in a function. The shell that starts this program has started the
 * session daemon, which is asked by lttng(1): the trace goes to files in LTTNG_HOME, and is
 * overwritten in memory where it is not read in time.
 */
#include "lines.h"

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_called.h"

#define PATIENCE 5000 /* ms */

__attribute__((noinline, aligned(64))) void traced(void)
{
	lttng_ust_tracepoint(tmax_bench, called, 1);
	__asm__ volatile("");
}

__attribute__((noinline, aligned(64))) void plain(void)
{
	__asm__ volatile("");
}

#define LTTNG(request) system("lttng --no-sessiond " request " >/dev/null 2>&1")

static void turn_traced(bool on)
{
	if (on ? LTTNG("start tmax-bench") : LTTNG("stop tmax-bench"))
		give_up("LTTng refuses to start or stop");
	/* The daemon tells this program, later. */
	for (int ms = 0; ms < PATIENCE; ms++) {
		if (!!lttng_ust_tracepoint_enabled(tmax_bench, called) == on)
			return;
		usleep(1000);
	}
	give_up("LTTng did not switch the tracepoint");
}

/* The daemon takes a moment until it answers. */
static const char *get_ready(void)
{
	for (int ms = 0; LTTNG("create tmax-bench"); ms += 100) {
		if (ms > PATIENCE)
			return "LTTng's session daemon cannot be used";
		usleep(100000);
	}
	return LTTNG("enable-channel --userspace --session=tmax-bench --overwrite c") ||
			       LTTNG("enable-event --userspace --session=tmax-bench "
				     "--channel=c tmax_bench:called")
		       ? "LTTng has no such event"
		       : NULL;
}
