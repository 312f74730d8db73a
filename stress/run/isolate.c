/* SPDX-License-Identifier: MIT */
#include "stress/run/isolate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stress/base/clock.h"

#define LOOK_MS	      250  /* from a CPU that is not measured, */
#define LOOK_RARE_MS  1000 /* and from one that is */
#define HANG_SECONDS  20.0
#define GRACE_SECONDS 3.0 /* for a child that was asked to stop */

/* What the parent knows of its child. */
struct watch {
	const struct isolated *what;
	pid_t pid;
	int alive;     /* read end of a pipe that only the child holds open */
	uint64_t seen; /* *what->life at the last sign of life */
	double life;   /* when that was */
	int look_ms;
	hwloc_bitmap_t home; /* where the caller ran before, or NULL: it runs there still */
	double asked;	     /* when the child was asked to stop, 0: not yet */
	enum outcome ended_for;
};

/* A child that stands on its own: no core file, the terminal's Ctrl-C is the parent's. */
static void detach(pid_t parent)
{
	static const int to_default[] = { SIGILL, SIGSEGV, SIGBUS, SIGTRAP, SIGPIPE };
	struct rlimit none = { 0, 0 };
	sigset_t empty;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	setrlimit(RLIMIT_CORE, &none);
	for (size_t i = 0; i < sizeof(to_default) / sizeof(to_default[0]); i++)
		signal(to_default[i], SIG_DFL);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&empty);
	sigprocmask(SIG_SETMASK, &empty, NULL);
}

static int start(struct watch *w)
{
	int ends[2];
	pid_t parent = getpid();

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	fflush(NULL);
	w->pid = fork();
	if (w->pid == 0) {
		close(ends[0]);
		detach(parent);
		w->what->inside(w->what->arg);
		_exit(0);
	}
	close(ends[1]);
	if (w->pid < 0) {
		close(ends[0]);
		return -EAGAIN;
	}
	w->alive = ends[0];
	w->life = seconds_now();
	return 0;
}

static void end_child(struct watch *w, enum outcome why)
{
	w->ended_for = why;
	kill(w->pid, SIGKILL);
}

static void look(struct watch *w)
{
	const struct run_options *options = w->what->options;
	double now = seconds_now();
	double hang = options->hang_seconds > 0 ? options->hang_seconds : HANG_SECONDS;
	uint64_t seen = atomic_load_explicit(w->what->life, memory_order_relaxed);

	if (w->what->look)
		w->what->look(w->what->arg);
	if (seen != w->seen) {
		w->seen = seen;
		w->life = now;
	}
	if (options->stop && *options->stop && !w->asked) {
		atomic_store(w->what->stop, 1);
		w->asked = now;
	}
	if (w->asked && now - w->asked > GRACE_SECONDS)
		end_child(w, OUTCOME_INTERRUPTED);
	else if (now - w->life > hang)
		end_child(w, OUTCOME_HANG);
}

/* The pipe's end of file is the child's end; a signal to us only wakes us early. */
static int watch(struct watch *w)
{
	struct pollfd fd = { .fd = w->alive, .events = POLLIN };
	int status;

	while (poll(&fd, 1, w->look_ms) <= 0)
		look(w);
	close(w->alive);
	while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* What the caller may use, without the CPUs that are measured. */
static void leave_out(hwloc_bitmap_t cpus, const struct seating *seating)
{
	hwloc_bitmap_clr(cpus, seating->patcher);
	for (unsigned i = 0; i < seating->executors; i++)
		hwloc_bitmap_clr(cpus, seating->executor[i]);
}

/* Bound elsewhere, or if that cannot be, to look rarely. */
static void keep_off(struct watch *w)
{
	hwloc_topology_t topology = w->what->options->topology;
	hwloc_bitmap_t home = hwloc_bitmap_alloc(), cpus = NULL;

	w->look_ms = LOOK_RARE_MS;
	if (home && w->what->seating &&
	    hwloc_get_cpubind(topology, home, HWLOC_CPUBIND_THREAD) == 0)
		cpus = hwloc_bitmap_dup(home);
	if (cpus)
		leave_out(cpus, w->what->seating);
	if (cpus && !hwloc_bitmap_iszero(cpus) &&
	    hwloc_set_cpubind(topology, cpus, HWLOC_CPUBIND_THREAD) == 0) {
		w->look_ms = LOOK_MS;
		w->home = home;
		home = NULL;
	}
	hwloc_bitmap_free(cpus);
	hwloc_bitmap_free(home);
}

static void come_home(struct watch *w)
{
	if (w->home)
		hwloc_set_cpubind(w->what->options->topology, w->home, HWLOC_CPUBIND_THREAD);
	hwloc_bitmap_free(w->home);
}

static bool is_crash(int sig)
{
	return sig == SIGILL || sig == SIGSEGV || sig == SIGBUS || sig == SIGTRAP;
}

int isolate(const struct isolated *what, struct ending *ending)
{
	struct watch w = { .what = what, .ended_for = OUTCOME_DONE };
	int status, ret = start(&w);

	if (ret < 0)
		return ret;
	/* Only now: the child has its own seats to take. */
	keep_off(&w);
	status = watch(&w);
	come_home(&w);
	ending->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	ending->outcome = is_crash(ending->signal) ? OUTCOME_CRASH : OUTCOME_KILLED;
	if (w.ended_for != OUTCOME_DONE)
		ending->outcome = w.ended_for;
	return 0;
}
