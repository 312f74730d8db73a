/* SPDX-License-Identifier: MIT */
/*
 * The call sites of the Java virtual machine: scripts/peers/CallSites.java, see there.
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "patchcore/wait.h"
#include "stress/clock.h"
#include "stress/peers/all.h"

#define PACKAGE	      "openjdk-17-jdk-headless"
#define START_SECONDS 20
#define WARM_SECONDS  30
#define COMM	      32

/* As the threads are called in the program. */
#define PATCHER	 "tmax-patcher"
#define EXECUTOR "tmax-executor"

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
	while (ret == -ESRCH && (e = readdir(dir))) {
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
 * ours. Nothing else is set: the compilers work as they come.
 */
static int start(struct outside *o, const char *site, char *why)
{
	char java[OUTSIDE_PATH], option[64];

	snprintf(option, sizeof(option), "-Dtmax.site=%s", site);
	return outside_start(o,
			     (const char *[]){ jdk_program("java", java), "-XX:+UseSerialGC",
					       "-Xmx64m", option, "-cp", o->folder, "CallSites",
					       NULL },
			     PACKAGE, START_SECONDS, NULL, why);
}

/* Its clock is CLOCK_MONOTONIC, which the warm-up is long enough to compare with the TSC. */
static int warm_up(struct outside *o, char *why)
{
	struct process_reply reply = { 0 };
	double seconds = seconds_now();
	uint64_t ticks = ticks_now();
	int ret = process_ask(o->process, "warm", WARM_SECONDS, &reply, why);

	ticks = ticks_now() - ticks;
	o->ticks = (double)ticks / ((seconds_now() - seconds) * 1e9);
	process_reply_free(&reply);
	return ret;
}

static int jvm_open(struct peer *peer, struct outside *o, const struct bench_run *run,
		    const char *site, char *why)
{
	int ret = outside_open(o, run, why);

	if (ret == 0)
		ret = compile(o, why);
	if (ret == 0)
		ret = start(o, site, why);
	if (ret == 0)
		ret = pin_threads(o, why);
	if (ret == 0)
		ret = warm_up(o, why);
	if (ret < 0)
		outside_close(o);
	/* All classes are loaded by now. */
	outside_remove(o);
	peer->state = ret < 0 ? NULL : o;
	return ret;
}

int jvm_volatile_open(struct peer *peer, const struct bench_run *run, char *why)
{
	static struct outside outside;

	outside = (struct outside){ 0 };
	return jvm_open(peer, &outside, run, "volatile", why);
}

int jvm_mutable_open(struct peer *peer, const struct bench_run *run, char *why)
{
	static struct outside outside;

	outside = (struct outside){ 0 };
	return jvm_open(peer, &outside, run, "mutable", why);
}

void jvm_close(struct peer *peer)
{
	outside_close(peer->state);
	peer->state = NULL;
}
