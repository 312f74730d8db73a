/* SPDX-License-Identifier: MIT */
/*
 * One round at a time. The asker gives each thread a slot and sends it the
 * slot's number with the signal; the handler claims the slot, serves, and says
 * so. Signals of rounds that are over, and signals that somebody else sends,
 * claim nothing.
 */
#include "patchcore/threads.h"

#include <cpuid.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "patchcore/threads_proc.h"

#define CHUNK  256u /* slots per chunk */
#define CHUNKS 1024u
#define MS     INT64_C(1000000) /* in ns */
#define SPINS  2000u

enum answer {
	SLOT_ASKED, /* the thread has a signal on its way, or will get one */
	SLOT_SERVED,
	SLOT_GONE, /* it has ended, or need not answer */
};

struct slot {
	pid_t tid;
	bool sent;
	unsigned pass; /* the last one that found the thread there */
	_Atomic(int) answer;
};

/* What one call asks. */
struct round {
	threads_fn *fn;
	threads_asleep_fn *asleep;
	void *arg;
	bool park;
	bool ask_first;	  /* does the thread take the signal? */
	int64_t deadline; /* ns */
	uint64_t began;	  /* by thread_clock() */
	unsigned pass;
	int error; /* the first */
};

/* The process that has the round, so that the child of a fork can tell. 0: none. */
static _Atomic(pid_t) holder;

/* What the handler reads; written by the holder while no ticket is out. */
static struct round *current;
static struct slot *chunks[CHUNKS]; /* kept for the next round */
static _Atomic(unsigned) count;	    /* slots in use; a signal carries only a number below it */
static int number;		    /* of the signal; 0: none was ever taken */

static _Atomic(int) tickets;
static _Atomic(int) ticket;	  /* of the round; 0: none, claim nothing */
static _Atomic(uint32_t) gate;	  /* futex: the ticket that stands parked, or 0 */
static _Atomic(uint32_t) answers; /* futex: counts */
static _Atomic(uint32_t) inside;  /* futex: threads in the handler */

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* At most a millisecond; also earlier for no reason. */
static void futex_wait(_Atomic(uint32_t) *word, uint32_t seen)
{
	static const struct timespec ms = { .tv_nsec = MS };

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &ms, NULL, 0);
}

static void futex_wake(_Atomic(uint32_t) *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void serialise(void)
{
	unsigned a, b, c, d;

	__cpuid(0, a, b, c, d);
	(void)(a + b + c + d);
}

/* --- The handler ------------------------------------------------------------------------ */

static struct slot *slot_at(unsigned index)
{
	return &chunks[index / CHUNK][index % CHUNK];
}

/* NULL unless the signal is of this round and for this thread. */
static struct slot *slot_of(const siginfo_t *info)
{
	uintptr_t index = (uintptr_t)info->si_value.sival_ptr;
	int open = atomic_load(&ticket);
	struct slot *slot;

	if (info->si_code != SI_QUEUE || !open || info->si_errno != open || index >= count)
		return NULL;
	slot = slot_at((unsigned)index);
	if (slot->tid != (pid_t)syscall(SYS_gettid) || atomic_load(&slot->answer) != SLOT_ASKED)
		return NULL;
	return slot;
}

static void serve(struct slot *slot, ucontext_t *context)
{
	const struct round *round = current;
	uint32_t parked = (uint32_t)atomic_load(&ticket);

	if (round->fn)
		round->fn(context, round->arg);
	/* Release: the asker sees what fn did. */
	atomic_store_explicit(&slot->answer, SLOT_SERVED, memory_order_release);
	atomic_fetch_add(&answers, 1);
	futex_wake(&answers);
	if (!round->park)
		return;
	while (atomic_load(&gate) == parked)
		syscall(SYS_futex, &gate, FUTEX_WAIT_PRIVATE, parked, NULL, NULL, 0);
	serialise();
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	int saved = errno;
	struct slot *slot;

	(void)signal;
	/*
	 * Counted before the ticket is read, and the asker takes the ticket back
	 * before it reads the count: so it either sees us, or we find no ticket.
	 */
	atomic_fetch_add(&inside, 1);
	slot = slot_of(info);
	if (slot)
		serve(slot, context);
	if (atomic_fetch_sub(&inside, 1) == 1)
		futex_wake(&inside);
	errno = saved;
}

/* --- The signal ------------------------------------------------------------------------- */

static int take_signal(void)
{
	struct sigaction ours = { .sa_sigaction = on_signal,
				  .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART };
	struct sigaction now;

	sigfillset(&ours.sa_mask);
	for (int i = SIGRTMAX - 1; i >= SIGRTMIN; i--) {
		if (sigaction(i, NULL, &now) < 0 || (now.sa_flags & SA_SIGINFO) ||
		    now.sa_handler != SIG_DFL)
			continue;
		number = i;
		return sigaction(i, &ours, NULL) < 0 ? -EAGAIN : 0;
	}
	return -EAGAIN;
}

/* Ignoring a signal drops all that is pending of it; the default would kill. */
static void give_signal_back(void)
{
	struct sigaction action = { .sa_handler = SIG_IGN }, now;

	if (!number || sigaction(number, NULL, &now) < 0 || !(now.sa_flags & SA_SIGINFO) ||
	    now.sa_sigaction != on_signal)
		return;
	sigaction(number, &action, NULL);
	action.sa_handler = SIG_DFL;
	sigaction(number, &action, NULL);
}

/* --- Asking ----------------------------------------------------------------------------- */

static bool send_to(pid_t tid, unsigned index)
{
	siginfo_t info = { .si_signo = number, .si_code = SI_QUEUE };

	info.si_errno = atomic_load(&ticket);
	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_ptr = (void *)(uintptr_t)index;
	return syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, number, &info) == 0;
}

/* Does the thread sleep where the caller does not mind? Then it need not answer. */
static bool may_sleep_on(const struct round *round, pid_t tid)
{
	uintptr_t pc, sp;

	return round->asleep && thread_sleeps(tid, &pc, &sp) && round->asleep(pc, sp, round->arg);
}

static void ask(const struct round *round, struct slot *slot, unsigned index)
{
	if (round->ask_first && !thread_takes(slot->tid, number)) {
		if (may_sleep_on(round, slot->tid))
			atomic_store(&slot->answer, SLOT_GONE);
		return;
	}
	if (slot->sent)
		return;
	slot->sent = send_to(slot->tid, index);
	/* EAGAIN: too many signals are pending, so try again later. */
	if (!slot->sent && errno == ESRCH)
		atomic_store(&slot->answer, SLOT_GONE);
}

static bool grow(void)
{
	void *chunk;

	if (count % CHUNK || chunks[count / CHUNK])
		return true;
	chunk = mmap(NULL, CHUNK * sizeof(struct slot), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (chunk == MAP_FAILED)
		return false;
	chunks[count / CHUNK] = chunk;
	return true;
}

static struct slot *find(pid_t tid)
{
	for (unsigned i = 0; i < count; i++)
		if (slot_at(i)->tid == tid)
			return slot_at(i);
	return NULL;
}

/* A thread that /proc lists. */
static bool meet(pid_t tid, void *arg)
{
	struct round *round = arg;
	struct slot *slot = find(tid);

	if (tid == (pid_t)syscall(SYS_gettid))
		return true;
	if (slot) {
		slot->pass = round->pass;
		return true;
	}
	/* A look is for those that were there before. So it ends, however many are made. */
	if (!round->park && thread_started(tid) > round->began)
		return true;
	if (count == CHUNK * CHUNKS || !grow()) {
		round->error = -ENOMEM;
		return false;
	}
	slot = &chunks[count / CHUNK][count % CHUNK];
	*slot = (struct slot){ .tid = tid, .pass = round->pass };
	count++;
	ask(round, slot, count - 1);
	return true;
}

static bool is_open(const struct slot *slot)
{
	return atomic_load_explicit(&slot->answer, memory_order_acquire) == SLOT_ASKED;
}

/* Somebody has not answered for a while. */
static void insist(const struct round *round)
{
	for (unsigned i = 0; i < count; i++) {
		struct slot *slot = slot_at(i);

		if (!is_open(slot))
			continue;
		if (thread_has_ended(slot->tid))
			atomic_store(&slot->answer, SLOT_GONE);
		else
			ask(round, slot, i);
	}
}

static bool any_open(unsigned *from)
{
	while (*from < count && !is_open(slot_at(*from)))
		++*from;
	return *from < count;
}

static int await(const struct round *round)
{
	unsigned from = 0;
	uint32_t seen;

	for (unsigned spins = 0; any_open(&from); spins++) {
		if (spins < SPINS) {
			_mm_pause();
			continue;
		}
		if (now_ns() > round->deadline)
			return -ETIMEDOUT;
		seen = atomic_load(&answers);
		if (any_open(&from))
			futex_wait(&answers, seen);
		insist(round);
	}
	return 0;
}

/* Is every thread of the last passes one of this pass? */
static bool nobody_left(const struct round *round)
{
	for (unsigned i = 0; i < count; i++)
		if (slot_at(i)->pass + 1 == round->pass)
			return false;
	return true;
}

/*
 * Pass after pass over the list of threads, until one finds nobody new and
 * misses nobody: a list that is read while threads end may leave others out.
 */
static int ask_all(struct round *round)
{
	unsigned before;
	int ret;

	do {
		before = count;
		round->pass++;
		ret = thread_list(meet, round);
		if (ret == 0)
			ret = round->error;
		if (ret == 0)
			ret = await(round);
		if (ret == 0 && now_ns() > round->deadline)
			ret = -ETIMEDOUT;
	} while (ret == 0 && (count > before || !nobody_left(round)));
	return ret;
}

/* --- The round -------------------------------------------------------------------------- */

/* After fork() in the middle of a round of the parent's: its threads are not here. */
static void drop_round(void)
{
	atomic_store(&ticket, 0);
	atomic_store(&gate, 0);
	atomic_store(&inside, 0);
	give_signal_back();
}

/* Others wait with their signals open, so that they can be interrupted meanwhile. */
static void hold(void)
{
	static const struct timespec pause = { .tv_nsec = MS / 20 };
	pid_t self = getpid(), seen = 0;

	while (!atomic_compare_exchange_strong(&holder, &seen, self)) {
		if (seen == self) {
			syscall(SYS_nanosleep, &pause, NULL);
			seen = 0;
		} else if (seen && atomic_compare_exchange_strong(&holder, &seen, self)) {
			drop_round();
			return;
		}
	}
}

/* Nobody begins any more, and who has begun has left. */
static void close_round(void)
{
	uint32_t left;

	atomic_store(&ticket, 0);
	atomic_store(&gate, 0);
	futex_wake(&gate);
	while ((left = atomic_load(&inside)) != 0)
		futex_wait(&inside, left);
	give_signal_back();
	atomic_store(&holder, 0);
}

static int open_round(struct round *round)
{
	int ret, next = atomic_fetch_add(&tickets, 1) % INT_MAX + 1;

	current = round;
	count = 0;
	round->deadline = now_ns() + THREADS_MS * MS;
	round->began = thread_clock();
	ret = take_signal();
	if (ret < 0)
		return ret;
	if (round->park)
		atomic_store(&gate, (uint32_t)next);
	atomic_store(&ticket, next);
	return 0;
}

static int run_round(struct round *round)
{
	int ret = open_round(round);

	if (ret < 0) {
		atomic_store(&holder, 0);
		return ret;
	}
	ret = ask_all(round);
	if (ret < 0 || !round->park)
		close_round();
	return ret;
}

int threads_look(threads_fn *fn, threads_asleep_fn *asleep, void *arg)
{
	struct round round = { .fn = fn, .asleep = asleep, .arg = arg, .ask_first = true };

	hold();
	return run_round(&round);
}

int threads_stop(threads_fn *fn, void *arg)
{
	static struct round round; /* the parked read it until they are resumed */

	hold();
	round = (struct round){ .fn = fn, .arg = arg, .park = true };
	return run_round(&round);
}

void threads_resume(void)
{
	close_round();
}
