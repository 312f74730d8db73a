/* SPDX-License-Identifier: MIT */
/*
 * All peers; and those in C, in programs of their own that are compiled where they are used:
 * bench/peers/programs/.
 *
 * XRay of clang, see xray.c there. uftrace: uftrace.c under "uftrace record -P", which patches
 * before the program's main() and never after, so there is nothing to toggle: only what a function
 * costs that is traced, or is not. LTTng-UST: lttng.c, with a session daemon of its own.
 */
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>

#include "bench/peers/outside.h"

#define XRAY_SECONDS	10 /* until it is ready */
#define UFTRACE_SECONDS 20
#define LTTNG_SECONDS	30
#define UFTRACE_CALLS	20000 /* at most: each leaves 32 bytes in a file */

typedef int make_fn(struct outside *o, const char *source, const char *program, char *why);

/* In @o, which lives as long as the peer. The folder stays. */
static int open_compiled(struct peer *peer, struct outside *o, const char *source_name,
			 make_fn *make, const struct bench_run *run, char *why)
{
	char source[OUTSIDE_PATH], program[OUTSIDE_PATH];
	int ret;

	*o = (struct outside){ 0 };
	ret = outside_open(o, run, why);
	if (ret == 0)
		ret = outside_source(source_name, source, why);
	outside_path(o, "traced", program);
	if (ret == 0)
		ret = make(o, source, program, why);
	if (ret < 0)
		outside_close(o);
	peer->state = ret < 0 ? NULL : o;
	return ret;
}

static void compiled_close(struct peer *peer)
{
	outside_close(peer->state);
	peer->state = NULL;
}

/* Whether the runtime is there shows when it is linked: what clang says then is the reason. */
static int make_xray(struct outside *o, const char *source, const char *program, char *why)
{
	const char *const build[] = { "clang",
				      "-std=gnu11",
				      "-O2",
				      "-pthread",
				      "-fxray-instrument",
				      "-fxray-instruction-threshold=1",
				      source,
				      "-o",
				      program,
				      NULL };
	int ret = outside_build(o, build, "clang", why);
	char patcher[16], executor[16], said[BENCH_WHY];

	if (ret == -EIO) {
		snprintf(said, sizeof(said), "%s", why);
		snprintf(why, BENCH_WHY, "%.100s (Debian: libclang-rt-dev)", said);
	}
	if (ret < 0)
		return ret;
	snprintf(patcher, sizeof(patcher), "%u", o->run->seating.patcher);
	snprintf(executor, sizeof(executor), "%u", outside_executor(o->run));
	return outside_start(o, (const char *[]){ program, patcher, executor, NULL }, "clang",
			     XRAY_SECONDS, why);
}

static int xray_open(struct peer *peer, const struct bench_run *run, char *why)
{
	static struct outside outside;
	int ret = open_compiled(peer, &outside, "xray.c", make_xray, run, why);

	outside_remove(&outside);
	return ret;
}

/* No library calls, no events of the kernel: only the function. */
static int make_uftrace(struct outside *o, const char *source, const char *program, char *why)
{
	const char *const build[] = { "cc", "-std=gnu11", "-O2", source, "-o", program, NULL };
	char data[OUTSIDE_PATH], cpu[16];
	const char *const start[] = { "uftrace",  "record", "--no-libcall", "--no-event", "-P",
				      "^traced$", "-d",	    data,	    program,	  cpu,
				      NULL };
	int ret = outside_build(o, build, "gcc", why);

	if (ret < 0)
		return ret;
	outside_path(o, "data", data);
	snprintf(cpu, sizeof(cpu), "%u", o->run->seating.patcher);
	return outside_start(o, start, "uftrace", UFTRACE_SECONDS, why);
}

static int uftrace_open(struct peer *peer, const struct bench_run *run, char *why)
{
	static struct outside outside;

	return open_compiled(peer, &outside, "uftrace.c", make_uftrace, run, why);
}

/* Its home is the folder: what it is asked leaves nothing in the user's. */
static int make_lttng(struct outside *o, const char *source, const char *program, char *why)
{
	char folder[OUTSIDE_PATH], include[OUTSIDE_PATH + 2], home[OUTSIDE_PATH + 16], cpu[16];
	const char *const build[] = { "cc", "-std=gnu11", "-O2",	 include, source,
				      "-o", program,	  "-llttng-ust", "-ldl",  NULL };
	const char *const start[] = { "env", home, program, cpu, o->folder, NULL };
	int ret;

	snprintf(folder, sizeof(folder), "%s", source);
	snprintf(include, sizeof(include), "-I%s", dirname(folder));
	ret = outside_build(o, build, "gcc, liblttng-ust-dev", why);
	if (ret < 0)
		return ret;
	snprintf(home, sizeof(home), "LTTNG_HOME=%s", o->folder);
	snprintf(cpu, sizeof(cpu), "%u", o->run->seating.patcher);
	return outside_start(o, start, "lttng-tools", LTTNG_SECONDS, why);
}

static int lttng_open(struct peer *peer, const struct bench_run *run, char *why)
{
	static struct outside outside;

	return open_compiled(peer, &outside, "lttng.c", make_lttng, run, why);
}

static int uftrace_cost(struct peer *peer, uint64_t calls, struct peer_cost *cost, char *why)
{
	return outside_cost(peer, calls < UFTRACE_CALLS ? calls : UFTRACE_CALLS, cost, why);
}

/* --- All ------------------------------------------------------------------------------------ */

#define JVM .open = jvm_open, .close = jvm_close, .toggle = jvm_toggle

#define ASKED .flow = outside_flow, .cost = outside_cost

struct peer peers[] = {
	{ "jvm-volatile", JVM, ASKED },
	{ "jvm-mutable", JVM, ASKED },
	{ "jvm-volatile-compiled", .hot_only = true, JVM },
	{ "jvm-mutable-compiled", .hot_only = true, JVM },
	{ "xray", .open = xray_open, .close = compiled_close, .toggle = outside_toggle, ASKED },
	{ "uprobe", .open = uprobe_open, .close = uprobe_close, .toggle = uprobe_toggle,
	  .cost = uprobe_cost },
	{ "uftrace", .open = uftrace_open, .close = compiled_close, .cost = uftrace_cost },
	{ "lttng", .open = lttng_open, .close = compiled_close, .cost = outside_cost },
	{ 0 },
};

void peers_open(const struct bench_run *run, bool want)
{
	for (struct peer *peer = peers; peer->name; peer++) {
		snprintf(peer->why, sizeof(peer->why), "%s", want ? "" : "not asked for");
		peer->ret = want ? peer->open(peer, run, peer->why) : -ECANCELED;
		if (peer->ret < 0 && !peer->why[0])
			snprintf(peer->why, sizeof(peer->why), "%s", strerror(-peer->ret));
	}
}

void peers_close(void)
{
	for (struct peer *peer = peers; peer->name; peer++) {
		if (peer->ret == 0 && peer->state)
			peer->close(peer);
		peer->ret = -ESHUTDOWN;
		snprintf(peer->why, sizeof(peer->why), "closed");
	}
}
