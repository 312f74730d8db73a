/* SPDX-License-Identifier: MIT */
#include "stress/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "patchcore/machine/cpus.h"
#include "stress/witness/witness.h"

#define LOOK_MS	      250  /* from a CPU that is not measured, */
#define LOOK_RARE_MS  1000 /* and from one that is */
#define HANG_SECONDS  20.0
#define PATIENCE      10  /* times that long, where the child takes no CPU */
#define GRACE_SECONDS 3.0 /* for a child that was asked to stop */

/* What the parent knows of its child. */
struct child_watch {
	const struct isolated *what;
	pid_t pid;
	uint64_t seen; /* of the child's life */
	double life;   /* when that changed */
	double ran;    /* the child's CPU time by then */
	int look_ms;
	hwloc_bitmap_t home; /* where the caller ran before */
	double asked;	     /* when the child was asked to stop, 0: not yet */
	enum outcome ended_for;
};

/* A child that stands on its own: no core file, the terminal's Ctrl-C is the parent's. */
static void detach_child(pid_t parent)
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

/* Seconds for which a process had a CPU, all its threads. */
static double seconds_run(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) == 0 ? clock_seconds(clock) : 0;
}

/* A child that spins takes a CPU. One that takes none may wait for others: it has more time. */
static bool is_hanging(const struct child_watch *w, double now)
{
	double hang = w->what->options->hang_seconds, idle = now - w->life;

	if (hang <= 0)
		hang = HANG_SECONDS;
	return idle > PATIENCE * hang ||
	       (idle > hang && seconds_run(w->pid) - w->ran > idle / PATIENCE);
}

static void look_at_child(struct child_watch *w)
{
	const struct run_options *options = w->what->options;
	struct leash *leash = w->what->leash;
	struct cell_result so_far = { 0 };
	double now = seconds_now();
	uint64_t seen = atomic_load_explicit(&leash->life, memory_order_relaxed);

	if (options->progress) {
		so_far.toggles = seen / w->what->parts;
		so_far.tears[TEAR_OTHER] =
			atomic_load_explicit(&leash->tears, memory_order_relaxed);
		options->progress(options->arg, &so_far);
	}
	if (seen != w->seen) {
		w->seen = seen;
		w->life = now;
		w->ran = seconds_run(w->pid);
	}
	if (options->stop && *options->stop && !w->asked) {
		atomic_store(&leash->stop, 1);
		w->asked = now;
	}
	if (w->asked && now - w->asked > GRACE_SECONDS)
		w->ended_for = OUTCOME_INTERRUPTED;
	else if (is_hanging(w, now))
		w->ended_for = OUTCOME_HANG;
	if (w->ended_for != OUTCOME_DONE)
		kill(w->pid, SIGKILL);
}

/* Bound elsewhere, or if that cannot be, to look rarely. */
static void keep_off(struct child_watch *w)
{
	hwloc_topology_t topology = w->what->options->topology;
	hwloc_bitmap_t cpus = w->what->seating ? seating_cpus(w->what->seating) : NULL;
	bool off;

	w->home = hwloc_bitmap_alloc();
	off = w->home && cpus && hwloc_get_cpubind(topology, w->home, HWLOC_CPUBIND_THREAD) == 0 &&
	      hwloc_bitmap_andnot(cpus, w->home, cpus) == 0 && !hwloc_bitmap_iszero(cpus) &&
	      hwloc_set_cpubind(topology, cpus, HWLOC_CPUBIND_THREAD) == 0;
	hwloc_bitmap_free(cpus);
	w->look_ms = off ? LOOK_MS : LOOK_RARE_MS;
}

int isolate(const struct isolated *what, struct ending *ending)
{
	struct child_watch w = { .what = what, .ended_for = OUTCOME_DONE };
	struct pollfd alive = { .events = POLLIN };
	struct witness_mark before;
	double begin = seconds_now();
	pid_t parent = getpid();
	int sig, status;
	int ends[2]; /* of a pipe whose write end only the child holds open */

	if (what->witness) {
		witness_clear(what->witness);
		witness_mark(what->seating, &before);
	}
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	fflush(NULL);
	w.pid = fork();
	if (w.pid == 0) {
		close(ends[0]);
		detach_child(parent);
		what->inside(what->arg);
		_exit(0);
	}
	close(ends[1]);
	if (w.pid < 0) {
		close(ends[0]);
		return -EAGAIN;
	}
	w.life = seconds_now();
	/* Only now: the child has its own seats to take. */
	keep_off(&w);
	/* The pipe's end of file is the child's end; a signal to us only wakes us early. */
	alive.fd = ends[0];
	while (poll(&alive, 1, w.look_ms) <= 0)
		look_at_child(&w);
	close(ends[0]);
	while (waitpid(w.pid, &status, 0) < 0 && errno == EINTR)
		;
	if (w.look_ms == LOOK_MS)
		hwloc_set_cpubind(what->options->topology, w.home, HWLOC_CPUBIND_THREAD);
	hwloc_bitmap_free(w.home);
	sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	*ending = (struct ending){
		/* Acquire: pairs with the child's release. */
		.finished = atomic_load_explicit(&what->leash->finished, memory_order_acquire),
		.outcome = OUTCOME_KILLED,
		.signal = sig,
		.seconds = seconds_now() - begin,
	};
	if (w.ended_for != OUTCOME_DONE)
		ending->outcome = w.ended_for;
	else if (sig == SIGILL || sig == SIGSEGV || sig == SIGBUS || sig == SIGTRAP)
		ending->outcome = OUTCOME_CRASH;
	if (!what->witness)
		return 0;
	if (!ending->finished)
		witness_threads_lost(what->witness);
	witness_end(what->witness, what->seating, &before, ending->seconds);
	return 0;
}

void isolate_finish(struct leash *leash, int ret, int *error, enum outcome *outcome)
{
	*error = ret;
	*outcome = OUTCOME_DONE;
	if (ret < 0)
		*outcome = OUTCOME_ERROR;
	else if (atomic_load(&leash->stop))
		*outcome = OUTCOME_INTERRUPTED;
	/* Release: pairs with the parent's acquire. */
	atomic_store_explicit(&leash->finished, 1, memory_order_release);
}

int isolate_pin(unsigned cpu)
{
	cpu_set_t set[CPUS_MAX / CPU_SETSIZE] = { 0 };

	CPU_SET_S(cpu, sizeof(set), set);
	return sched_setaffinity(0, sizeof(set), set) < 0 ? -errno : 0;
}
