/* SPDX-License-Identifier: MIT */
/*
 * The call sites of the Java virtual machine: bench/peers/programs/CallSites.java, see there.
 *
 * Two processes run that program for all peers. In the first, executors run the sites. In the
 * second none ever does: what a change costs there is asked of a site that nothing was ever
 * compiled with.
 */
#include <dirent.h>
#include <errno.h>
#include <hwloc/linux.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/method/hot.h"
#include "bench/peers/outside.h"
#include "patchcore/machine/wait.h"
#include "stress/base/clock.h"

#define PACKAGE	      "openjdk-17-jdk-headless"
#define START_SECONDS 20
#define WARM_SECONDS  30
#define COMM	      32
#define REQUEST	      64

/* As the threads are called in the program. */
#define PATCHER	 "tmax-patcher"
#define EXECUTOR "tmax-executor"

/*
 * One kind of site, with both processes, which are borrowed from jvm. The first is the one that
 * requests go to unless it is said otherwise: see outside.h.
 */
static struct site {
	struct outside hot, still;
	const char *kind; /* and the head of requests */
	bool warm;
} sites[] = { { .kind = "volatile " }, { .kind = "mutable " } };

static struct {
	struct outside hot, still;
	unsigned users; /* peers that are open */
} jvm;

/* A program of the JDK: of $JAVA_HOME if there is one, else of PATH. */
static const char *jdk_program(const char *name, char path[OUTSIDE_PATH])
{
	const char *home = getenv("JAVA_HOME");

	if (home && home[0] &&
	    snprintf(path, OUTSIDE_PATH, "%s/bin/%s", home, name) < OUTSIDE_PATH &&
	    access(path, X_OK) == 0)
		return path;
	return name;
}

/* Java has no word for pinning. There is an executor per kind of site. */
static int pin_named(const struct outside *o, const char *name, unsigned cpu)
{
	int pid = (int)process_pid(o->process);
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	char path[OUTSIDE_PATH], comm[COMM];
	int ret = -ESRCH;
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir || !set || hwloc_bitmap_only(set, cpu))
		ret = -ENOMEM;
	while ((ret == -ESRCH || ret == 0) && (e = readdir(dir))) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/task/%.20s/comm", pid, e->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fscanf(file, "%31[^\n]", comm) == 1 && !strcmp(comm, name))
			ret = hwloc_linux_set_tid_cpubind(o->run->topology, atoi(e->d_name), set)
				      ? -errno
				      : 0;
		fclose(file);
	}
	if (dir)
		closedir(dir);
	hwloc_bitmap_free(set);
	return ret;
}

/*
 * The serial collector: the cheapest store of a reference, and no threads of its own beside
 * ours. The sweeper takes away at once what was compiled and is no longer valid: until it has,
 * every change goes through all that was ever compiled with the site. It leaves alone what has
 * not run for a while. Newer machines have no sweeper and not the first of these two options.
 */
static int start_java(struct outside *o, const char *folder, char *why)
{
	char java[OUTSIDE_PATH];
	const char *const argv[] = { jdk_program("java", java),
				     "-XX:+UseSerialGC",
				     "-Xmx64m",
				     "-XX:+IgnoreUnrecognizedVMOptions",
				     "-XX:SweeperThreshold=0.001",
				     "-XX:-UseCodeCacheFlushing",
				     "-cp",
				     folder,
				     "CallSites",
				     NULL };
	int ret = outside_run(o, argv, PACKAGE, START_SECONDS, why);

	if (ret < 0)
		return ret;
	ret = pin_named(o, PATCHER, o->run->seating.patcher);
	if (ret == 0)
		ret = pin_named(o, EXECUTOR, outside_executor(o->run));
	if (ret < 0)
		snprintf(why, BENCH_WHY, "cannot pin its threads: %s", strerror(-ret));
	return ret;
}

static int ask_warm(const struct outside *o, const char *word, char *why)
{
	struct process_reply reply = { 0 };
	char request[REQUEST];
	int ret;

	snprintf(request, sizeof(request), "%s%s", o->head, word);
	ret = process_ask(o->process, request, WARM_SECONDS, &reply, why);
	process_reply_free(&reply);
	return ret;
}

void jvm_close(struct peer *peer)
{
	peer->state = NULL;
	if (--jvm.users > 0)
		return;
	outside_close(&jvm.hot);
	outside_close(&jvm.still);
	sites[0].warm = sites[1].warm = false;
}

/* Of the kind that the peer's name tells. */
int jvm_open(struct peer *peer, const struct bench_run *run, char *why)
{
	struct site *site = &sites[strncmp(peer->name, "jvm-volatile", 12) != 0];
	char source[OUTSIDE_PATH], javac[OUTSIDE_PATH];
	bool first = jvm.users++ == 0;
	int ret = 0;

	if (first) {
		const char *argv[] = { jdk_program("javac", javac), "-d", jvm.hot.folder, source,
				       NULL };

		ret = outside_open(&jvm.hot, run, why);
		jvm.still.run = run;
		if (ret == 0)
			ret = outside_source("CallSites.java", source, why);
		if (ret == 0)
			ret = outside_run(&jvm.hot, argv, PACKAGE, OUTSIDE_BUILD, why);
		/* All classes are loaded when both are ready. */
		if (ret == 0)
			ret = start_java(&jvm.hot, jvm.hot.folder, why);
		if (ret == 0)
			ret = start_java(&jvm.still, jvm.hot.folder, why);
		outside_remove(&jvm.hot);
	}
	if (ret == 0 && !site->warm) {
		/* Its clock is CLOCK_MONOTONIC; the warm-up is long enough to compare it with the
		 * TSC. */
		double seconds = seconds_now();
		uint64_t ticks = ticks_now();

		site->hot = jvm.hot;
		site->still = jvm.still;
		site->hot.head = site->still.head = site->kind;
		ret = ask_warm(&site->hot, "warm", why);
		ticks = ticks_now() - ticks;
		site->hot.ticks = (double)ticks / ((seconds_now() - seconds) * 1e9);
		site->still.ticks = site->hot.ticks;
		if (ret == 0)
			ret = ask_warm(&site->still, "still", why);
		site->warm = ret == 0;
	}
	if (ret < 0)
		jvm_close(peer);
	else
		peer->state = site;
	return ret;
}

/* The rest between changes is ours, see hot.h. */
int jvm_toggle(struct peer *peer, unsigned pairs, bool hot, struct samples *s, char *why)
{
	const char *mode = !hot ? "still" : peer->hot_only ? "compiled" : "hot";
	struct site *site = peer->state;
	struct peer still = *peer;
	char request[REQUEST];

	if (!hot && peer->hot_only) {
		snprintf(why, BENCH_WHY, "what no executor runs is not compiled");
		return -ENOTSUP;
	}
	still.state = &site->still;
	snprintf(request, sizeof(request), "toggle %u %s %.0f", pairs, mode,
		 HOT_REST / site->hot.ticks);
	return outside_changes(hot ? peer : &still, request, pairs, s, why);
}
