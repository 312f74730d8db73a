/* SPDX-License-Identifier: MIT */
#include "bench/peers/outside.h"

#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stress/base/data_file.h"

#define BUILD_SECONDS 60
#define FLOW_SPARE    30 /* seconds beyond what was asked for */
#define TOGGLE_SPARE  30
#define TOGGLE_MOST   0.05 /* seconds of one change, with the rest before it */
#define COST_SECONDS  60
#define OPEN_FILES    8
#define REQUEST	      96
#define RATE_MOST     1e9

_Static_assert(BENCH_WHY >= PROCESS_WHY, "no room for the reasons of a process");

int outside_source(const char *name, char path[OUTSIDE_PATH], char *why)
{
	char file[OUTSIDE_PATH];
	int ret = -ENAMETOOLONG;

	if (snprintf(file, sizeof(file), "peers/%s", name) < OUTSIDE_PATH)
		ret = data_file(file, path, OUTSIDE_PATH);
	if (ret == -ENAMETOOLONG)
		snprintf(why, BENCH_WHY, "a path is too long");
	else if (ret)
		snprintf(why, BENCH_WHY, "cannot read peers/%s: %s", name, strerror(-ret));
	return ret;
}

int outside_open(struct outside *o, const struct bench_run *run, char *why)
{
	const char *tmp = getenv("TMPDIR");
	int ret = 0;

	o->run = run;
	o->ticks = 1;
	if (snprintf(o->folder, sizeof(o->folder), "%s/tmax-peer-XXXXXX",
		     tmp && tmp[0] == '/' ? tmp : "/tmp") >= OUTSIDE_PATH - REQUEST) {
		ret = -ENAMETOOLONG;
		snprintf(why, BENCH_WHY, "a path is too long");
	} else if (!mkdtemp(o->folder)) {
		ret = -errno;
		snprintf(why, BENCH_WHY, "no temporary folder: %s", strerror(-ret));
	}
	if (ret < 0)
		o->folder[0] = '\0';
	return ret;
}

void outside_path(const struct outside *o, const char *name, char path[OUTSIDE_PATH])
{
	if (snprintf(path, OUTSIDE_PATH, "%s/%s", o->folder, name) >= OUTSIDE_PATH)
		path[0] = '\0';
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	remove(path);
	return 0;
}

void outside_remove(struct outside *o)
{
	if (o->folder[0])
		nftw(o->folder, remove_one, OPEN_FILES, FTW_DEPTH | FTW_PHYS);
	o->folder[0] = '\0';
}

int outside_run(struct outside *o, const char *const argv[], const char *package, double seconds,
		char *why)
{
	hwloc_topology_t topology = o->run->topology;
	hwloc_bitmap_t before = hwloc_bitmap_alloc();
	bool pinned = before && hwloc_get_cpubind(topology, before, HWLOC_CPUBIND_THREAD) == 0;
	struct process_reply ready = { 0 };
	int ret;

	/* What runs beside its two pinned threads, such as a compiler, has all CPUs of the run. */
	if (pinned)
		hwloc_set_cpubind(topology, hwloc_topology_get_topology_cpuset(topology),
				  HWLOC_CPUBIND_THREAD);
	if (seconds <= 0)
		ret = process_run(argv, BUILD_SECONDS, o->run->stop, why);
	else
		ret = process_start(&o->process, argv, o->run->stop, why);
	if (pinned)
		hwloc_set_cpubind(topology, before, HWLOC_CPUBIND_THREAD);
	hwloc_bitmap_free(before);
	if (ret == -ENOENT)
		snprintf(why, BENCH_WHY, "%s is not installed (Debian: %s)", argv[0], package);
	if (ret == 0 && seconds > 0)
		ret = process_ask(o->process, NULL, seconds, &ready, why);
	process_reply_free(&ready);
	return ret;
}

void outside_close(struct outside *o)
{
	process_end(o->process);
	o->process = NULL;
	outside_remove(o);
}

unsigned outside_executor(const struct bench_run *run)
{
	return run->seating.executors ? run->seating.executor[0] : run->seating.patcher;
}

/* The answer has to be so many numbers. */
static int ask_program(struct peer *peer, const char *request, double seconds, size_t count,
		       struct process_reply *reply, char *why)
{
	struct outside *o = peer->state;
	char line[2 * REQUEST];
	int ret;

	snprintf(line, sizeof(line), "%.*s%s", REQUEST, o->head ? o->head : "", request);
	ret = process_ask(o->process, line, seconds, reply, why);
	if (ret < 0 || reply->count == count)
		return ret;
	snprintf(why, BENCH_WHY, "%s gave %zu numbers, not %zu", peer->name, reply->count, count);
	return -EPROTO;
}

int outside_changes(struct peer *peer, const char *request, unsigned pairs, struct samples *s,
		    char *why)
{
	const struct outside *o = peer->state;
	struct process_reply reply = { 0 };
	int ret = ask_program(peer, request, TOGGLE_SPARE + TOGGLE_MOST * 2 * pairs,
			      2 * (size_t)pairs, &reply, why);

	for (size_t i = 0; ret == 0 && i < reply.count; i++)
		samples_add(&s[i % 2], reply.value[i] * o->ticks);
	process_reply_free(&reply);
	return ret;
}

int outside_toggle(struct peer *peer, unsigned pairs, bool hot, struct samples *s, char *why)
{
	char request[REQUEST];

	snprintf(request, sizeof(request), "toggle %u %d", pairs, hot);
	return outside_changes(peer, request, pairs, s, why);
}

int outside_flow(struct peer *peer, double rate, double seconds, bool on_off,
		 struct peer_flow *flow, char *why)
{
	struct process_reply reply = { 0 };
	char request[REQUEST], number[REQUEST / 2] = "max";
	int ret;

	if (rate <= RATE_MOST)
		snprintf(number, sizeof(number), "%.0f", rate);
	snprintf(request, REQUEST, "flow %s %.0f %d", number, fmax(round(seconds * 1e3), 1),
		 on_off);
	ret = ask_program(peer, request, seconds + FLOW_SPARE, 4, &reply, why);
	if (ret == 0)
		*flow = (struct peer_flow){
			.seconds = reply.value[0] * 1e-9,
			.toggles = (uint64_t)reply.value[1],
			.calls = { (uint64_t)reply.value[2], (uint64_t)reply.value[3] },
		};
	process_reply_free(&reply);
	return ret;
}

int outside_cost(struct peer *peer, uint64_t calls, struct peer_cost *cost, char *why)
{
	const struct outside *o = peer->state;
	struct process_reply reply = { 0 };
	char request[REQUEST];
	int ret;

	snprintf(request, sizeof(request), "cost %llu", (unsigned long long)calls);
	ret = ask_program(peer, request, COST_SECONDS, 3, &reply, why);
	if (ret == 0)
		*cost = (struct peer_cost){
			.empty = reply.value[0] * o->ticks,
			.off = reply.value[1] * o->ticks,
			.on = reply.value[2] * o->ticks,
		};
	process_reply_free(&reply);
	return ret;
}
