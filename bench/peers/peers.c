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
	int ret = outside_run(o, build, "clang", OUTSIDE_BUILD, why);
	char patcher[16], executor[16], said[BENCH_WHY];

	if (ret == -EIO) {
		snprintf(said, sizeof(said), "%s", why);
		snprintf(why, BENCH_WHY, "%.100s (Debian: libclang-rt-dev)", said);
	}
	if (ret < 0)
		return ret;
	snprintf(patcher, sizeof(patcher), "%u", o->run->seating.patcher);
	snprintf(executor, sizeof(executor), "%u", outside_executor(o->run));
	ret = outside_run(o, (const char *[]){ program, patcher, executor, NULL }, "clang",
			  XRAY_SECONDS, why);
	outside_remove(o);
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
	int ret = outside_run(o, build, "gcc", OUTSIDE_BUILD, why);

	if (ret < 0)
		return ret;
	outside_path(o, "data", data);
	snprintf(cpu, sizeof(cpu), "%u", o->run->seating.patcher);
	return outside_run(o, start, "uftrace", UFTRACE_SECONDS, why);
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
	ret = outside_run(o, build, "gcc, liblttng-ust-dev", OUTSIDE_BUILD, why);
	if (ret < 0)
		return ret;
	snprintf(home, sizeof(home), "LTTNG_HOME=%s", o->folder);
	snprintf(cpu, sizeof(cpu), "%u", o->run->seating.patcher);
	return outside_run(o, start, "lttng-tools", LTTNG_SECONDS, why);
}

/* The program is NAME.c. Its folder stays as long as the peer, unless make removes it. */
static struct compiled {
	const char *name;
	int (*make)(struct outside *o, const char *source, const char *program, char *why);
	struct outside outside;
} compiled[] = {
	{ "xray", make_xray, { 0 } },
	{ "uftrace", make_uftrace, { 0 } },
	{ "lttng", make_lttng, { 0 } },
};

static int compiled_open(struct peer *peer, const struct bench_run *run, char *why)
{
	char name[16], source[OUTSIDE_PATH], program[OUTSIDE_PATH];
	struct compiled *c = compiled;
	int ret;

	while (strcmp(c->name, peer->name) != 0)
		c++;
	c->outside = (struct outside){ 0 };
	snprintf(name, sizeof(name), "%s.c", c->name);
	ret = outside_open(&c->outside, run, why);
	if (ret == 0)
		ret = outside_source(name, source, why);
	outside_path(&c->outside, "traced", program);
	if (ret == 0)
		ret = c->make(&c->outside, source, program, why);
	if (ret < 0)
		outside_close(&c->outside);
	peer->state = ret < 0 ? NULL : &c->outside;
	return ret;
}

static void compiled_close(struct peer *peer)
{
	outside_close(peer->state);
	peer->state = NULL;
}

static int uftrace_cost(struct peer *peer, uint64_t calls, struct peer_cost *cost, char *why)
{
	return outside_cost(peer, calls < UFTRACE_CALLS ? calls : UFTRACE_CALLS, cost, why);
}

#define JVM .open = jvm_open, .close = jvm_close, .toggle = jvm_toggle

#define COMPILED .open = compiled_open, .close = compiled_close

#define ASKED .flow = outside_flow, .cost = outside_cost

struct peer peers[] = {
	{ "jvm-volatile", JVM, ASKED },
	{ "jvm-mutable", JVM, ASKED },
	{ "jvm-volatile-compiled", .hot_only = true, JVM },
	{ "jvm-mutable-compiled", .hot_only = true, JVM },
	{ "xray", COMPILED, .toggle = outside_toggle, ASKED },
	{ "uprobe", .open = uprobe_open, .close = uprobe_close, .toggle = uprobe_toggle,
	  .cost = uprobe_cost },
	{ "uftrace", COMPILED, .cost = uftrace_cost },
	{ "lttng", COMPILED, .cost = outside_cost },
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
