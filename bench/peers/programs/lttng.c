/* SPDX-License-Identifier: MIT */
/*
 * A tracepoint of LTTng-UST in a function, off and on. Spoken to by lines, see
 * bench/peers/outside.h; times are TSC ticks.
 *
 * The session daemon is a child of this program, in its process group, so that it ends with it. It
 * is asked by lttng(1): the trace goes to files in the folder that is given, and is overwritten in
 * memory where it is not read in time.
 */
#include "lines.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng.h"

#define PATIENCE 5000 /* ms */

__attribute__((noinline, aligned(64))) static void traced(void)
{
	lttng_ust_tracepoint(tmax_bench, called, 1);
	__asm__ volatile("");
}

__attribute__((noinline, aligned(64))) static void plain(void)
{
	__asm__ volatile("");
}

static void quiet(const char *const argv[])
{
	if (!freopen("/dev/null", "w", stdout))
		_Exit(127);
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	_Exit(127);
}

static int ask_lttng(const char *const argv[])
{
	pid_t child = fork();
	int status;

	if (!child)
		quiet(argv);
	return child < 0 || waitpid(child, &status, 0) != child || status ? -1 : 0;
}

#define LTTNG(...) ask_lttng((const char *const[]){ "lttng", "--no-sessiond", __VA_ARGS__, NULL })

static int await_state(int on)
{
	for (int ms = 0; ms < PATIENCE; ms++) {
		if (!!lttng_ust_tracepoint_enabled(tmax_bench, called) == on)
			return 0;
		usleep(1000);
	}
	return -1;
}

/* The daemon takes a moment until it answers. */
static int make_session(const char *folder)
{
	char output[512];

	snprintf(output, sizeof(output), "--output=%s/trace", folder);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		quiet((const char *const[]){ "lttng-sessiond", "--no-kernel", "--quiet", NULL });
	}
	for (int ms = 0; LTTNG("create", "tmax-bench", output); ms += 100) {
		if (ms > PATIENCE)
			return -1;
		usleep(100000);
	}
	return LTTNG("enable-channel", "--userspace", "--session=tmax-bench", "--overwrite", "c") ||
			       LTTNG("enable-event", "--userspace", "--session=tmax-bench",
				     "--channel=c", "tmax_bench:called")
		       ? -1
		       : 0;
}

static int cost(uint64_t calls)
{
	uint64_t empty, off, on;

	calls += !calls;
	TIME(plain, calls, empty);
	TIME(traced, calls, off);
	if (LTTNG("start", "tmax-bench") || await_state(1))
		return -1;
	TIME(traced, calls, on);
	if (LTTNG("stop", "tmax-bench") || await_state(0))
		return -1;
	put_costs(empty, off, on, calls);
	return 0;
}

int main(int argc, char **argv)
{
	char line[128];
	unsigned long long calls;

	if (argc != 3 || pin(argv[1]))
		return 1;
	if (make_session(argv[2])) {
		fputs("LTTng's session daemon cannot be used\n", stderr);
		return 1;
	}
	put_end();
	while (fgets(line, sizeof(line), stdin) && sscanf(line, "cost %llu", &calls) == 1)
		if (cost(calls)) {
			fputs("LTTng did not switch the tracepoint\n", stderr);
			return 1;
		}
	LTTNG("destroy", "tmax-bench");
	return 0;
}
