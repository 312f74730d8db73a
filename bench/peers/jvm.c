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
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/method/hot.h"
#include "bench/peers/all.h"
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

/* Both as a peer of one kind of site has them; borrowed from jvm, below. */
struct site {
	const char *head;
	struct outside hot, still;
	bool warm;
};

static struct {
	struct outside hot, still;
	unsigned users; /* peers that are open */
} jvm;

static struct site volatile_site = { .head = "volatile " };
static struct site mutable_site = { .head = "mutable " };

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

/* --- Pinning: Java has no word for it ------------------------------------------------------- */

static void read_comm(pid_t pid, const char *task, char comm[COMM])
{
	char path[OUTSIDE_PATH];
	FILE *file;

	comm[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/comm", (int)pid, task);
	file = fopen(path, "re");
	if (!file)
		return;
	if (!fgets(comm, COMM, file))
		comm[0] = '\0';
	comm[strcspn(comm, "\n")] = '\0';
	fclose(file);
}

static int pin_task(pid_t task, unsigned cpu)
{
	cpu_set_t *set = CPU_ALLOC(cpu + 1);
	size_t size = CPU_ALLOC_SIZE(cpu + 1);
	int ret;

	if (!set)
		return -ENOMEM;
	CPU_ZERO_S(size, set);
	CPU_SET_S(cpu, size, set);
	ret = sched_setaffinity(task, size, set) ? -errno : 0;
	CPU_FREE(set);
	return ret;
}

/* There is an executor per kind of site. */
static int pin_named(pid_t pid, const char *name, unsigned cpu)
{
	char path[64], comm[COMM];
	int ret = -ESRCH;
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((ret == -ESRCH || ret == 0) && (e = readdir(dir))) {
		read_comm(pid, e->d_name, comm);
		if (!strcmp(comm, name))
			ret = pin_task((pid_t)atoi(e->d_name), cpu);
	}
	closedir(dir);
	return ret;
}

static int pin_threads(const struct outside *o, char *why)
{
	pid_t pid = process_pid(o->process);
	int ret = pin_named(pid, PATCHER, outside_patcher(o->run));

	if (ret == 0)
		ret = pin_named(pid, EXECUTOR, outside_executor(o->run));
	if (ret < 0)
		snprintf(why, BENCH_WHY, "cannot pin its threads: %s", strerror(-ret));
	return ret;
}

/* --- Starting ------------------------------------------------------------------------------- */

static int compile(struct outside *o, char *why)
{
	char source[OUTSIDE_PATH], javac[OUTSIDE_PATH];
	int ret = outside_source("CallSites.java", source, why);

	if (ret < 0)
		return ret;
	return outside_build(
		o, (const char *[]){ jdk_program("javac", javac), "-d", o->folder, source, NULL },
		PACKAGE, why);
}

/*
 * The serial collector: the cheapest store of a reference, and no threads of its own beside
 * ours. The sweeper takes away at once what was compiled and is no longer valid: until it has,
 * every change goes through all that was ever compiled with the site. It leaves alone what has
 * not run for a while. Newer machines have no sweeper and not the first of these two options.
 */
static int start(struct outside *o, const char *folder, char *why)
{
	char java[OUTSIDE_PATH];
	const char *const argv[] = {
		jdk_program("java", java),
		"-XX:+UseSerialGC",
		"-Xmx64m",
		"-XX:+IgnoreUnrecognizedVMOptions",
		"-XX:SweeperThreshold=0.001",
		"-XX:-UseCodeCacheFlushing",
		"-cp",
		folder,
		"CallSites",
		NULL,
	};
	int ret = outside_start(o, argv, PACKAGE, START_SECONDS, NULL, why);

	return ret < 0 ? ret : pin_threads(o, why);
}

/* All classes are loaded when both are ready. */
static int start_both(const struct bench_run *run, char *why)
{
	int ret = outside_open(&jvm.hot, run, why);

	jvm.still.run = run;
	if (ret == 0)
		ret = compile(&jvm.hot, why);
	if (ret == 0)
		ret = start(&jvm.hot, jvm.hot.folder, why);
	if (ret == 0)
		ret = start(&jvm.still, jvm.hot.folder, why);
	outside_remove(&jvm.hot);
	return ret;
}

static void end_both(void)
{
	outside_close(&jvm.hot);
	outside_close(&jvm.still);
	volatile_site.warm = mutable_site.warm = false;
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

/* Its clock is CLOCK_MONOTONIC, which the warm-up is long enough to compare with the TSC. */
static int warm_up(struct site *site, char *why)
{
	double seconds = seconds_now();
	uint64_t ticks = ticks_now();
	int ret;

	site->hot = jvm.hot;
	site->still = jvm.still;
	site->hot.head = site->still.head = site->head;
	ret = ask_warm(&site->hot, "warm", why);
	ticks = ticks_now() - ticks;
	site->hot.ticks = (double)ticks / ((seconds_now() - seconds) * 1e9);
	site->still.ticks = site->hot.ticks;
	if (ret == 0)
		ret = ask_warm(&site->still, "still", why);
	site->warm = ret == 0;
	return ret;
}

static void leave(void)
{
	if (--jvm.users == 0)
		end_both();
}

static int jvm_open(struct peer *peer, struct site *site, const struct bench_run *run, char *why)
{
	int ret = jvm.users++ ? 0 : start_both(run, why);

	if (ret == 0 && !site->warm)
		ret = warm_up(site, why);
	if (ret < 0)
		leave();
	peer->state = ret < 0 ? NULL : site;
	return ret;
}

int jvm_volatile_open(struct peer *peer, const struct bench_run *run, char *why)
{
	return jvm_open(peer, &volatile_site, run, why);
}

int jvm_mutable_open(struct peer *peer, const struct bench_run *run, char *why)
{
	return jvm_open(peer, &mutable_site, run, why);
}

void jvm_close(struct peer *peer)
{
	peer->state = NULL;
	leave();
}

/* --- Requests ------------------------------------------------------------------------------- */

/* As the peer of one of the two. */
static struct peer of(const struct peer *peer, struct outside *o)
{
	struct peer own = *peer;

	own.state = o;
	return own;
}

/* The rest between changes is ours, see hot.h. */
static int changes(struct peer *peer, struct outside *o, const char *mode, unsigned pairs,
		   struct samples *s, char *why)
{
	struct peer own = of(peer, o);
	char request[REQUEST];

	snprintf(request, sizeof(request), "toggle %u %s %.0f", pairs, mode, HOT_REST / o->ticks);
	return outside_changes(&own, request, pairs, s, why);
}

int jvm_toggle(struct peer *peer, unsigned pairs, bool hot, struct samples *s, char *why)
{
	struct site *site = peer->state;

	if (hot)
		return changes(peer, &site->hot, "hot", pairs, s, why);
	return changes(peer, &site->still, "still", pairs, s, why);
}

int jvm_toggle_compiled(struct peer *peer, unsigned pairs, bool hot, struct samples *s, char *why)
{
	struct site *site = peer->state;

	if (hot)
		return changes(peer, &site->hot, "compiled", pairs, s, why);
	snprintf(why, BENCH_WHY, "what no executor runs is not compiled");
	return -ENOTSUP;
}

int jvm_flow(struct peer *peer, double rate, double seconds, bool on_off, struct peer_flow *flow,
	     char *why)
{
	struct site *site = peer->state;
	struct peer own = of(peer, &site->hot);

	return outside_flow(&own, rate, seconds, on_off, flow, why);
}

int jvm_cost(struct peer *peer, uint64_t calls, struct peer_cost *cost, char *why)
{
	struct site *site = peer->state;
	struct peer own = of(peer, &site->hot);

	return outside_cost(&own, calls, cost, why);
}
