/* SPDX-License-Identifier: MIT */
#include "stress/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stress/child.h"
#include "stress/clock.h"
#include "stress/witness.h"

#define LOOK_MS	      250
#define HANG_SECONDS  20.0
#define GRACE_SECONDS 3.0 /* for a child that was asked to stop */

/* What the parent knows of its child. */
struct watch {
	const struct run_options *options;
	struct shared *shared;
	pid_t pid;
	int alive;	  /* read end of a pipe that only the child holds open */
	uint64_t toggles; /* at the last sign of life */
	double life;	  /* when that was */
	double asked;	  /* when the child was asked to stop, 0: not yet */
	enum outcome ended_for;
};

static size_t shared_size(const struct cell *cell)
{
	return sizeof(struct shared) + cell->executors * sizeof(struct executor_counts);
}

static struct shared *share(const struct cell *cell)
{
	void *p = mmap(NULL, shared_size(cell), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

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

static int start(struct watch *w, const struct cell *cell)
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
		child_run(cell, w->options->topology, w->shared);
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

static void tell_progress(struct watch *w)
{
	struct cell_result so_far = { 0 };

	if (!w->options->progress)
		return;
	so_far.toggles = atomic_load_explicit(&w->shared->toggles, memory_order_relaxed);
	so_far.tears[TEAR_OTHER] = atomic_load_explicit(&w->shared->tears, memory_order_relaxed);
	w->options->progress(w->options->arg, &so_far);
}

static void end_child(struct watch *w, enum outcome why)
{
	w->ended_for = why;
	kill(w->pid, SIGKILL);
}

static void look(struct watch *w)
{
	double now = seconds_now();
	double hang = w->options->hang_seconds > 0 ? w->options->hang_seconds : HANG_SECONDS;
	uint64_t toggles = atomic_load_explicit(&w->shared->toggles, memory_order_relaxed);

	tell_progress(w);
	if (toggles != w->toggles) {
		w->toggles = toggles;
		w->life = now;
	}
	if (w->options->stop && *w->options->stop && !w->asked) {
		atomic_store(&w->shared->stop, 1);
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

	while (poll(&fd, 1, LOOK_MS) <= 0)
		look(w);
	close(w->alive);
	while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static bool is_crash(int sig)
{
	return sig == SIGILL || sig == SIGSEGV || sig == SIGBUS || sig == SIGTRAP;
}

/* The round in which it died was not added, but its slots were counted. */
static uint64_t known_executions(const struct watch *w, struct executor_counts *counts)
{
	uint64_t known = 0, finished = atomic_load(&counts->executions);

	for (unsigned i = 0; i < CODE_SLOTS; i++)
		known += counts->slots.at[i];
	/* NOPs leave no trace: only finished rounds tell of them. */
	return w->shared->code.codes == 2 && finished > known ? finished : known;
}

/* The child did not finish: rescue what its executors had counted. */
static void rescue(struct watch *w, const struct cell *cell, int status, struct cell_result *result)
{
	for (unsigned i = 0; w->shared->code.loop && i < cell->executors; i++) {
		struct executor_counts *counts = &w->shared->executor[i];

		code_collect(&w->shared->code, &counts->slots, known_executions(w, counts), result);
	}
	result->toggles = atomic_load(&w->shared->toggles);
	result->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	result->outcome = is_crash(result->signal) ? OUTCOME_CRASH : OUTCOME_KILLED;
	if (w->ended_for != OUTCOME_DONE)
		result->outcome = w->ended_for;
	/* A mix that was not foreseen; with the crash oracle, any mix. */
	if (result->outcome == OUTCOME_CRASH)
		result->tears[TEAR_OTHER]++;
}

static int run_seated(const struct cell *cell, struct watch *w, struct cell_result *result)
{
	struct seating *seating = &w->shared->result.seating;
	uint64_t steal = witness_steal(seating);
	double begin = seconds_now(), lasted;
	int status, ret = start(w, cell);

	if (ret < 0)
		return ret;
	status = watch(w);
	lasted = seconds_now() - begin;
	*result = w->shared->result;
	if (!atomic_load_explicit(&w->shared->finished, memory_order_acquire)) {
		rescue(w, cell, status, result);
		result->seconds = lasted;
	}
	steal = witness_steal(seating) - steal;
	result->witness.steal = (double)steal / (double)sysconf(_SC_CLK_TCK) / lasted;
	result->witness.load = witness_load();
	return 0;
}

int cell_run(const struct cell *cell, const struct run_options *options, struct cell_result *result)
{
	struct watch w = { .options = options, .ended_for = OUTCOME_DONE };
	char reason[160];
	int ret;

	*result = (struct cell_result){ 0 };
	ret = cell_check(cell, reason, sizeof(reason));
	if (ret < 0)
		return ret;
	w.shared = share(cell);
	if (!w.shared)
		return -ENOMEM;
	ret = placement_seat(options->topology, cell->placement, cell->executors,
			     &w.shared->result.seating, reason, sizeof(reason));
	if (ret == 0)
		ret = run_seated(cell, &w, result);
	munmap(w.shared, shared_size(cell));
	return ret;
}
