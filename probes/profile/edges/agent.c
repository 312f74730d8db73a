/* SPDX-License-Identifier: MIT */
/*
 * What "fastinst profile --edges" puts into a program by LD_PRELOAD. Its environment:
 *
 *	FASTINST_OUTPUT	folder; the process leaves its lines there in a file named by its PID
 *	FASTINST_EDGES	"PERIOD ON", seconds
 *
 * Its lines:
 *
 *	phases NUMBER WALL ON TOGGLING LATE LOST BLOCKS REFUSED
 *	block ID FUNCTION+OFFSET OBJECT ADDRESS	all; the address is that in the file, in hex, and
 *						names are escaped (probes/text/text.h)
 *	edge FROM TO ODD EVEN SEEN		counts of odd and of even phases, each as often as
 *its phase counts, in all as many as were seen; what was seen moment START LENGTH PHASES ON
 *TOGGLING RUNS	a stretch of time; runs of blocks in phases
 *
 * "fastinst profile --edges --pid" puts it into a process that runs, and calls fastinst_profile().
 * A child of fork() is not profiled: the thread of phases is its parent's.
 */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probes/agent/file.h"
#include "probes/agent/leave.h"
#include "probes/agent/pin.h"
#include "probes/agent/visit.h"
#include "probes/include/fastinst.h"
#include "probes/profile/edges/edges.h"
#include "probes/profile/edges/phases.h"
#include "probes/text/text.h"

static _Atomic pid_t
	owner; /* the process that has not reported yet; 0: it has, or has nothing to */
static const char *folder;

int fastinst_profile(const char *text);

static void name_block(FILE *out, uint32_t id)
{
	const struct link_map *map = NULL;
	struct fi_probe probe;
	Dl_info info;

	if (fi_get(id, &probe) < 0 || probe.kind != FI_BLOCK ||
	    !dladdr1(probe.address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return;
	fprintf(out, "block\t%u\t", id);
	text_put(out, probe.function);
	fputc('\t', out);
	text_put(out, probe.object);
	fprintf(out, "\t%lx\n", (unsigned long)((uintptr_t)probe.address - map->l_addr));
}

static void tell_moments(FILE *out)
{
	const struct moment *moment;
	size_t n = phases_moments(&moment);

	for (size_t i = 0; i < n; i++)
		fprintf(out, "moment\t%.9f\t%.9f\t%" PRIu64 "\t%.9f\t%.9f\t%" PRIu64 "\n",
			moment[i].start, moment[i].length, moment[i].phases, moment[i].on,
			moment[i].toggling, moment[i].runs);
}

/* What was seen has a count. */
static uint64_t estimated(const struct edge *edge, int half, double scale)
{
	double count = edge->weighed[half] * scale + 0.5;

	return count >= 1 || !edge->count[half] ? (uint64_t)count : 1;
}

static void tell_edges(FILE *out)
{
	double seen = 0, weighed = 0, scale;
	uint32_t place = 0;
	struct edge edge;

	while (edges_next(&place, &edge)) {
		seen += (double)(edge.count[0] + edge.count[1]);
		weighed += edge.weighed[0] + edge.weighed[1];
	}
	scale = weighed > 0 ? seen / weighed : 0;
	for (place = 0; edges_next(&place, &edge);)
		fprintf(out, "edge\t%u\t%u\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", edge.from,
			edge.to, estimated(&edge, 1, scale), estimated(&edge, 0, scale),
			edge.count[0] + edge.count[1]);
}

static void report_edges(FILE *out)
{
	const struct phases *sum = phases_get();
	uint32_t n = fi_probes();

	fprintf(out,
		"phases\t%" PRIu64 "\t%.9f\t%.9f\t%.9f\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
		"\t%" PRIu64 "\n",
		sum->number, sum->wall, sum->on, sum->toggling, edges_late(), edges_lost(),
		sum->blocks, sum->refused);
	for (uint32_t id = 0; id < n; id++)
		name_block(out, id);
	tell_edges(out);
	tell_moments(out);
}

/*
 * The child of vfork() has its parent's memory, and another PID. Where the thread does not end,
 * there is still something to report.
 */
static int finish_edges(bool reports)
{
	pid_t me = getpid(), expected = me;
	int ret;

	if (!folder || !atomic_compare_exchange_strong(&owner, &expected, 0))
		return 0;
	ret = phases_stop();
	if (ret < 0) {
		owner = me;
		return ret;
	}
	if (reports)
		file_report(folder, report_edges);
	return 0;
}

static void end_phases(void)
{
	finish_edges(true);
}

static int stop_edges(bool reports)
{
	int ret = finish_edges(reports);

	if (!ret)
		ret = fi_synchronize();
	if (!ret)
		pins_drop();
	return ret;
}

/* What was counted is its parent's to report. It may be profiled itself. */
static void forget_edges(void)
{
	phases_forked();
	owner = 0;
}

static int begin_edges(const char *text, bool visit)
{
	static const struct leaving leaving = { end_phases, end_phases, NULL };
	static bool known;
	double period, on;
	int ret = text && sscanf(text, "%lf %lf", &period, &on) == 2 ? fi_init() : -EINVAL;

	if (!ret)
		ret = edges_start();
	/* At a fork no block is on. */
	if (!ret && !known)
		ret = -pthread_atfork(phases_lock, phases_unlock, forget_edges);
	if (!ret)
		ret = phases_start(period, on, visit);
	if (ret)
		return ret;
	known = true;
	owner = getpid();
	leave_by(&leaving);
	return 0;
}

__attribute__((constructor)) static void start(void)
{
	const char *text = getenv("FASTINST_EDGES");
	int ret;

	folder = file_folder(getenv("FASTINST_OUTPUT"));
	if (!text || !folder)
		return;
	ret = begin_edges(text, false);
	if (ret < 0)
		quiet_say("no profile, the program runs without it: %s\n", error_cause(ret));
}

/*
 * @text: "start", the folder of the report, a line that is not for this agent, FASTINST_EDGES; or
 *	  "stop": the report is written, and blocks are off.
 */
int fastinst_profile(const char *text)
{
	struct visit visit;

	if (!visit_begin(&visit, text))
		return -ENAMETOOLONG;
	if (!strcmp(visit.line[0], "stop"))
		return stop_edges(true);
	if (owner) {
		int ret = visit_abandoned(folder) ? stop_edges(false) : -EBUSY;

		if (ret < 0)
			return ret;
	}
	folder = file_folder(visit.line[1]);
	return begin_edges(visit.line[3], true);
}

/*
 * No block of an object that goes may be on meanwhile. No lock is held: this waits for the loader,
 * and a constructor, which has that, may call it.
 */
int dlclose(void *handle)
{
	int (*close)(void *) = (int (*)(void *))dlsym(RTLD_NEXT, "dlclose");
	int ret;

	phases_hold();
	ret = close(handle);
	fi_scan();
	phases_let();
	return ret;
}
