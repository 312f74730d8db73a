/* SPDX-License-Identifier: MIT */
#include "bench/peers/peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text_file.h"
#include "patchcore/machine/wait.h"

#define BUILD_SECONDS  60
#define START_SECONDS  40
#define TOGGLE_SECONDS 30
#define TOGGLE_MOST    0.05 /* seconds of one change, with the rest before it */
#define COST_SECONDS   60
#define REQUEST	       64

_Static_assert(BENCH_WHY >= PROCESS_WHY, "no room for the reasons of a process");

#define GCC "cc -std=gnu11 -O2 -pthread \"$2\" -o \"$1/program\""
#define CLANG                                                                                      \
	"clang -std=gnu11 -O2 -pthread -fxray-instrument -fxray-instruction-threshold=1 \"$2\" "   \
	"-o \"$1/program\""
#define JAVAC "javac -d \"$1\" \"$2\""
/*
 * The serial collector: the cheapest store of a reference, and no threads of its own. The sweeper
 * takes away at once what was compiled and is no longer valid: until it has, every change goes
 * through all that was ever compiled with the site. It leaves alone what has not run for a while.
 * Newer machines have no sweeper and not the first of these two options.
 */
#define JAVA                                                                                       \
	"exec java -XX:+UseSerialGC -Xmx64m -XX:+IgnoreUnrecognizedVMOptions "                     \
	"-XX:SweeperThreshold=0.001 -XX:-UseCodeCacheFlushing -cp \"$1\" CallSites \"$3\" \"$4\""
#define PROGRAM " \"$1/program\" \"$3\" \"$4\""

struct peer peers[] = {
	{ "xray", "xray.c", "clang, libclang-rt-dev", CLANG, .start = "exec" PROGRAM },
	{ "uprobe", "uprobe.c", "gcc", GCC, .start = "exec" PROGRAM },
	/* In two processes, see CallSites.java. */
	{ "jvm-volatile", "CallSites.java", "openjdk-17-jdk-headless", JAVAC, JAVA " 1",
	  .site = true, .hot = true },
	{ "jvm-volatile", "CallSites.java", "openjdk-17-jdk-headless", JAVAC, JAVA " 0",
	  .site = true },
	{ 0 },
};

/* --- Opening -------------------------------------------------------------------------------- */

static int find_source(struct peer *peer, char path[PEER_PATH])
{
	const char *tmp = getenv("TMPDIR");
	char file[REQUEST];
	int ret;

	snprintf(peer->folder, PEER_PATH, "%.400s/tmax-peer-XXXXXX",
		 tmp && tmp[0] == '/' ? tmp : "/tmp");
	if (!mkdtemp(peer->folder)) {
		peer->folder[0] = '\0';
		return bench_say(peer->why, "no temporary folder", -errno);
	}
	snprintf(file, sizeof(file), "peers/%s", peer->source);
	ret = data_file(file, path, PEER_PATH);
	if (ret < 0)
		snprintf(peer->why, BENCH_WHY, "cannot read %s: %s", file, strerror(-ret));
	return ret;
}

static int build_and_start(struct peer *peer, const struct bench_run *run, const char *source)
{
	const struct seating *seating = &run->seating;
	unsigned cpu = seating->executors ? seating->executor[0] : seating->patcher;
	char patcher[16], executor[16], said[BENCH_WHY];
	const char *argv[] = { "/bin/sh", "-c",	   peer->build, "sh", peer->folder,
			       source,	  patcher, executor,	NULL };
	struct process_reply ready = { 0 };
	int ret;

	snprintf(patcher, sizeof(patcher), "%u", seating->patcher);
	snprintf(executor, sizeof(executor), "%u", cpu);
	ret = process_run(argv, BUILD_SECONDS, run->stop, said);
	argv[2] = peer->start;
	if (ret == 0 && peer->start)
		ret = process_start(&peer->process, argv, run->stop, said);
	if (ret == 0 && peer->start)
		ret = process_ask(peer->process, NULL, START_SECONDS, &ready, said);
	process_reply_free(&ready);
	if (ret < 0)
		snprintf(peer->why, BENCH_WHY, "%.100s (Debian: %s)", said, peer->package);
	return ret;
}

int peer_open(struct peer *peer, const struct bench_run *run)
{
	hwloc_topology_t topology = run->topology;
	hwloc_bitmap_t before = hwloc_bitmap_alloc();
	uint64_t ticks = ticks_now();
	double seconds = seconds_now();
	char source[PEER_PATH];

	peer->ret = find_source(peer, source);
	/* What runs beside its two pinned threads, such as a compiler, has all CPUs of the run. */
	if (before && hwloc_get_cpubind(topology, before, HWLOC_CPUBIND_THREAD) == 0)
		hwloc_set_cpubind(topology, hwloc_topology_get_topology_cpuset(topology),
				  HWLOC_CPUBIND_THREAD);
	else
		peer->ret = peer->ret < 0 ? peer->ret : -ENOMEM;
	if (peer->ret == 0)
		peer->ret = build_and_start(peer, run, source);
	if (before && !hwloc_bitmap_iszero(before))
		hwloc_set_cpubind(topology, before, HWLOC_CPUBIND_THREAD);
	hwloc_bitmap_free(before);
	ticks = ticks_now() - ticks;
	peer->unit = peer->site ? (double)ticks / ((seconds_now() - seconds) * 1e9) : 1;
	if (peer->ret < 0)
		peer_close(peer);
	return peer->ret;
}

void peer_close(struct peer *peer)
{
	char why[BENCH_WHY];

	process_end(peer->process);
	peer->process = NULL;
	if (peer->folder[0])
		process_run((const char *[]){ "/bin/rm", "-rf", peer->folder, NULL }, BUILD_SECONDS,
			    NULL, why);
	peer->folder[0] = '\0';
}

void peers_open(const struct bench_run *run, bool sites)
{
	for (struct peer *peer = peers; peer->name; peer++) {
		peer->ret = -ECANCELED;
		snprintf(peer->why, BENCH_WHY, "not asked for");
		if (run->peers && peer->site == sites)
			peer_open(peer, run);
	}
}

void peers_close(void)
{
	for (struct peer *peer = peers; peer->name; peer++)
		peer_close(peer);
}

int peer_opened(const struct peer *peer, char *why)
{
	if (peer->ret == 0)
		return 0;
	snprintf(why, BENCH_WHY, "%s", peer->why);
	return -ENODEV;
}

/* --- Asking --------------------------------------------------------------------------------- */

/* The answer has to be so many numbers. */
static int ask_for(struct peer *peer, const char *request, double seconds, size_t count,
		   struct process_reply *reply, char *why)
{
	int ret = peer_opened(peer, why);

	if (ret == 0 && !peer->process) {
		snprintf(why, BENCH_WHY, "not open");
		return -ENODEV;
	}
	if (ret == 0)
		ret = process_ask(peer->process, request, seconds, reply, why);
	if (ret < 0 || reply->count == count)
		return ret;
	snprintf(why, BENCH_WHY, "%s gave %zu numbers, not %zu", peer->name, reply->count, count);
	return -EPROTO;
}

int peer_toggle(struct peer *peer, unsigned pairs, bool hot, struct samples *s, char *why)
{
	struct process_reply reply = { 0 };
	char request[REQUEST];
	int ret;

	snprintf(request, sizeof(request), "toggle %u %d", pairs, hot);
	ret = ask_for(peer, request, TOGGLE_SECONDS + TOGGLE_MOST * 2 * pairs, 2 * (size_t)pairs,
		      &reply, why);
	for (size_t i = 0; ret == 0 && i < reply.count; i++)
		samples_add(&s[i % 2], reply.value[i] * peer->unit);
	process_reply_free(&reply);
	return ret;
}

int peer_cost(struct peer *peer, unsigned calls, bool on, struct samples *s, char *why)
{
	struct process_reply reply = { 0 };
	char request[REQUEST];
	int ret;

	snprintf(request, sizeof(request), "cost %u", calls);
	ret = ask_for(peer, request, COST_SECONDS, 3, &reply, why);
	if (ret == 0) {
		samples_add(&s[0], reply.value[on ? 2 : 1]);
		samples_add(&s[1], reply.value[0]);
	}
	process_reply_free(&reply);
	return ret;
}
