/* SPDX-License-Identifier: MIT */
/*
 * One round at a time. The asker gives each thread a slot and sends it the slot's number with the
 * signal; the handler claims the slot, serves, and says so. Signals of rounds that are over claim
 * nothing; those that are not of the library are passed on.
 */
#include "patchcore/merge/others.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/mman.h>

#include "patchcore/merge/look_signal.h"
#include "patchcore/site/thread.h"
#include "patchcore/syscall/kernel_signal.h"
#include "patchcore/syscall/task.h"

#define CHUNK  256u /* slots per chunk */
#define CHUNKS 1024u
#define CHAINS 1024u
#define SPINS  2000u

/*
 * A signal ends some system calls, though its handler has SA_RESTART. A thread that has slept since
 * it was looked at before may be about to make such a call, or to return from one: it is not sent
 * the signal yet.
 */
#define AWAKE 2u /* times that a thread has to be seen since it slept */

struct thread_slot {
	pid_t tid;
	bool sent;
	unsigned pass; /* the last one that found the thread there */
	unsigned next; /* of the chain: the index of a slot, and 1; 0: none */
	/* As they were when the thread was last asked. */
	struct task_signals signals;
	struct task_call call;
	unsigned awake;	       /* how often it was looked at since it slept */
	_Atomic(bool) is_open; /* it is to answer, and has neither done so nor ended */
};

/* Apart, so that slots are quickly gone through. */
struct thread_chunk {
	struct thread_slot slots[CHUNK];
	struct others_room rooms[CHUNK];
};

/* What one call asks. */
struct round {
	others_fn *fn;
	others_asleep_fn *asleep;
	void *arg;
	pid_t process, self;
	uint64_t began;	  /* by task_clock() */
	uint64_t trapped; /* what a thread blocks in the handler of SIGTRAP */
	int64_t deadline; /* by clock_ns() */
	unsigned pass;
	int error; /* the first */
};

/* The process that has the round, so that the child of a fork can tell. 0: none. */
static _Atomic(pid_t) holder;

/* What the handler reads; written by the holder while no ticket is out. */
static struct round *current;
static struct thread_chunk *chunks[CHUNKS]; /* kept for the next round */
static _Atomic(unsigned) count; /* slots in use; a signal carries only a number below it */
static unsigned chains[CHAINS]; /* of the slots in use, by thread id */

static _Atomic(int) tickets;
static _Atomic(int) ticket;	  /* of the round; 0: none, claim nothing */
static _Atomic(uint32_t) answers; /* futex: counts */
static _Atomic(uint32_t) inside;  /* futex: threads in the handler */

static struct others_room own_room; /* the holder's */

/* May wake early. */
NOPATCH static void futex_wait(_Atomic(uint32_t) *word, uint32_t seen, int64_t ns)
{
	const struct timespec most = { .tv_nsec = ns };

	sys_call(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &most, NULL, 0);
}

NOPATCH static void futex_wake(_Atomic(uint32_t) *word)
{
	sys_call(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* --- The handler ------------------------------------------------------------------------ */

NOPATCH static struct thread_slot *slot_at(unsigned index)
{
	return &chunks[index / CHUNK]->slots[index % CHUNK];
}

NOPATCH static void on_look_signal(int signal, siginfo_t *info, void *context)
{
	uint64_t value = (uintptr_t)info->si_value.sival_ptr;
	unsigned index = (unsigned)value;
	struct thread_slot *slot;
	int open;

	if (!others_is_ours(info->si_code, value)) {
		look_signal_pass_on(signal, info);
		return;
	}
	/*
	 * Counted before the ticket is read, and the asker takes the ticket back
	 * before it reads the count: so it either sees us, or we find no ticket.
	 */
	atomic_fetch_add(&inside, 1);
	open = atomic_load(&ticket);
	slot = open && info->si_errno == open && index < count ? slot_at(index) : NULL;
	/* Is the signal of this round, and for this thread? */
	if (slot && slot->tid == (pid_t)sys_call(SYS_gettid) && atomic_load(&slot->is_open)) {
		const struct round *round = current;

		if (round->fn)
			round->fn(context, &chunks[index / CHUNK]->rooms[index % CHUNK],
				  round->arg);
		/* Release: the asker sees what fn did. */
		store_release(&slot->is_open, false);
		atomic_fetch_add(&answers, 1);
		futex_wake(&answers);
	}
	if (atomic_fetch_sub(&inside, 1) == 1)
		futex_wake(&inside);
}

/* --- Asking ----------------------------------------------------------------------------- */

NOPATCH static long send_to(const struct round *round, pid_t tid, unsigned index)
{
	/* The holder alone sends. What is not set stays 0. */
	static siginfo_t info;

	info.si_signo = look_signal;
	info.si_code = OTHERS_CODE;
	info.si_errno = atomic_load(&ticket);
	info.si_pid = round->process;
	info.si_uid = (uid_t)sys_call(SYS_getuid);
	info.si_value.sival_ptr = (void *)(uintptr_t)(OTHERS_MAGIC << 32 | index);
	return sys_call(SYS_rt_tgsigqueueinfo, round->process, tid, look_signal, &info);
}

NOPATCH static bool is_late(const struct round *round)
{
	return clock_ns() > round->deadline;
}

/*
 * A thread that has ended is asked, which will show it. One that sleeps in a call that may not be
 * read could be in sigwait(): a signal would be taken from the program's own.
 */
NOPATCH static int learn_thread(const struct round *round, struct thread_slot *slot)
{
	uint64_t sleeps = slot->signals.sleeps;
	int ret = task_signals(slot->tid, &slot->signals);

	slot->awake = slot->signals.sleeps == sleeps ? slot->awake + 1 : 1;
	slot->call = (struct task_call){ .sleeps = false };
	if (ret == 0)
		ret = task_call(slot->tid, &slot->call);
	if (ret < 0 && !task_has_ended(slot->tid))
		return -EACCES;
	return is_late(round) ? -ETIMEDOUT : 0;
}

/*
 * Does it sleep where it need not answer? Each time it goes to sleep is counted. If it sleeps
 * afterwards, and there was no other time since its mask was read, it has slept all the while.
 */
NOPATCH static bool is_settled(const struct round *round, const struct thread_slot *slot,
			       bool takes)
{
	const struct task_call *call = &slot->call;
	uint64_t blocked = call->masks ? ~UINT64_C(0) : slot->signals.blocked | call->waited;
	struct task_signals signals;
	struct task_call after;

	return round->asleep && call->sleeps &&
	       round->asleep(slot->tid, call, blocked, takes, &own_room, round->arg) &&
	       task_call(slot->tid, &after) == 0 && after.sleeps &&
	       task_signals(slot->tid, &signals) == 0 && signals.switches == slot->signals.switches;
}

NOPATCH static void ask_thread(const struct round *round, struct thread_slot *slot, unsigned index)
{
	bool takes = !(slot->signals.blocked & kernel_bit(look_signal)) && !slot->call.waits;
	bool is_trapped = slot->signals.blocked == round->trapped;
	long ret;

	if (is_settled(round, slot, takes)) {
		atomic_store(&slot->is_open, false);
		return;
	}
	/*
	 * An executor that waits at an INT3 of ours blocks all signals, but for a short while
	 * between one trap and the next. What is on its way by then comes through before anything
	 * else.
	 */
	if (slot->sent || (!takes && (slot->call.waits || !is_trapped)))
		return;
	if (!is_trapped && slot->awake < AWAKE)
		return;
	ret = send_to(round, slot->tid, index);
	slot->sent = ret == 0;
	/* EAGAIN: too many signals are pending, so try again later. */
	if (ret == -ESRCH)
		atomic_store(&slot->is_open, false);
}

NOPATCH static struct thread_slot *find_slot(pid_t tid)
{
	unsigned index = chains[(unsigned)tid % CHAINS];

	while (index && slot_at(index - 1)->tid != tid)
		index = slot_at(index - 1)->next;
	return index ? slot_at(index - 1) : NULL;
}

/* A thread that /proc lists. */
NOPATCH static bool note_thread(pid_t tid, void *arg)
{
	struct round *round = arg;
	struct thread_slot *slot = find_slot(tid);
	struct task_stat stat;
	long chunk;

	if (tid == round->self)
		return true;
	if (slot) {
		slot->pass = round->pass;
		return true;
	}
	/*
	 * A look is for those that were there before: so it ends, however many are made. Threads
	 * of the kernel's never answer.
	 */
	if (round->pass > 1 && task_stat(tid, &stat) == 0 &&
	    (stat.is_kernel_thread || stat.started > round->began))
		return true;
	if (count % CHUNK == 0 && count < CHUNK * CHUNKS && !chunks[count / CHUNK]) {
		chunk = sys_call(SYS_mmap, NULL, sizeof(struct thread_chunk),
				 PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (chunk > 0 || chunk <= -4096)
			chunks[count / CHUNK] = (struct thread_chunk *)chunk;
	}
	if (count == CHUNK * CHUNKS || !chunks[count / CHUNK]) {
		round->error = -ENOMEM;
		return false;
	}
	slot = slot_at(count);
	slot->tid = tid;
	slot->sent = false;
	slot->awake = 0;
	slot->pass = round->pass;
	slot->next = chains[(unsigned)tid % CHAINS];
	atomic_store(&slot->is_open, true);
	chains[(unsigned)tid % CHAINS] = atomic_fetch_add(&count, 1) + 1;
	return true;
}

/* Some have not been asked, or have not answered for a while. How many have not been asked. */
NOPATCH static int ask_again(const struct round *round)
{
	int unasked = 0, ret = 0;

	for (unsigned i = 0; i < count && ret == 0; i++) {
		struct thread_slot *slot = slot_at(i);
		struct task_stat stat;

		if (!atomic_load(&slot->is_open))
			continue;
		/* These never answer. */
		if ((task_stat(slot->tid, &stat) == 0 && stat.is_kernel_thread) ||
		    task_has_ended(slot->tid)) {
			atomic_store(&slot->is_open, false);
			continue;
		}
		ret = learn_thread(round, slot);
		if (ret == 0)
			ask_thread(round, slot, i);
		unasked += !slot->sent;
	}
	return ret < 0 ? ret : unasked;
}

NOPATCH static bool any_open(unsigned *from)
{
	/* Acquire: what fn did is seen. */
	while (*from < count && !load_acquire(&slot_at(*from)->is_open))
		++*from;
	return *from < count;
}

NOPATCH static int await_answers(const struct round *round)
{
	unsigned from = 0;
	uint32_t seen;
	int ret = 1; /* some may not have been asked */

	for (unsigned spins = 0; ret >= 0 && any_open(&from); spins++) {
		if (spins < SPINS) {
			__builtin_ia32_pause();
			continue;
		}
		if (is_late(round))
			return -ETIMEDOUT;
		seen = atomic_load(&answers);
		if (any_open(&from))
			futex_wait(&answers, seen, ret ? CLOCK_MS / 20 : CLOCK_MS);
		/* A millisecond without an answer. */
		if (ret || atomic_load(&answers) == seen)
			ret = ask_again(round);
	}
	return ret < 0 ? ret : 0;
}

/*
 * Pass after pass over the list of threads, until one finds none that is new and
 * misses none: a list that is read while threads end may leave others out. There are
 * few: a look is not for threads that begin later.
 */
NOPATCH static int ask_all(struct round *round)
{
	unsigned before;
	bool again;
	int ret;

	do {
		/* The signals that some thread uses, or has pending, the library's too. */
		uint64_t used = 0, pending = 0, own = 0;
		bool first = ++round->pass == 1;

		before = count;
		ret = task_list(0, note_thread, round) < 0 ? -EACCES : round->error;
		if (ret < 0)
			return ret;
		/* The new ones are asked. The signal is chosen once they are known. */
		for (unsigned i = before; i < count && ret == 0; i++) {
			const struct thread_slot *slot = slot_at(i);

			ret = learn_thread(round, slot_at(i));
			used |= task_uses(slot->signals.blocked, slot->call.waited);
			pending |= slot->signals.pending;
		}
		if (first && ret == 0) {
			/* This thread blocks all of them, and its mask is not its own now. */
			sys_call(SYS_rt_sigpending, &own, sizeof(own));
			pending |= own;
			ret = look_signal_choose(on_look_signal, used, pending);
		}
		if (ret < 0)
			return ret;
		for (unsigned i = before; i < count && !is_late(round); i++)
			ask_thread(round, slot_at(i), i);
		ret = await_answers(round);
		again = count > before;
		for (unsigned i = 0; i < count; i++)
			again |= slot_at(i)->pass + 1 == round->pass;
	} while (ret == 0 && again);
	return ret;
}

/* --- The round -------------------------------------------------------------------------- */

/* Others wait with their signals open, so that they can be interrupted meanwhile. */
NOPATCH static void take_round(void)
{
	pid_t self = (pid_t)sys_call(SYS_getpid), seen = 0;

	while (!atomic_compare_exchange_strong(&holder, &seen, self)) {
		if (seen == self) {
			/* So long that the thread that has the round can see it asleep. */
			clock_sleep(CLOCK_MS / 2);
			seen = 0;
		} else if (seen && atomic_compare_exchange_strong(&holder, &seen, self)) {
			/* After fork() in a round of the parent's: its threads are not here. */
			atomic_store(&ticket, 0);
			atomic_store(&inside, 0);
			look_signal_forget_change();
			return;
		}
	}
}

/* None begins any more, and those that have begun have left. */
NOPATCH static void end_round(void)
{
	uint32_t left;

	atomic_store(&ticket, 0);
	while ((left = atomic_load(&inside)) != 0)
		futex_wait(&inside, left, CLOCK_MS);
	atomic_store(&holder, 0);
}

NOPATCH int others_may_look(void)
{
	/* Where ids were found to be ours, and the process that found it; 0: there is none. */
	static _Atomic(uint64_t) known_mount;
	static _Atomic(uint32_t) known_epoch;
	uint32_t epoch = atomic_load(&process_epoch);
	uint64_t mount = task_mount();
	struct task_call call;

	/* Signals to the ids of another namespace would find no thread, as if all had ended. */
	if (!mount || mount != known_mount || epoch != known_epoch) {
		if (!task_ids_are_ours())
			return -EACCES;
		known_mount = mount;
		known_epoch = epoch;
	}
	return task_call((pid_t)sys_call(SYS_gettid), &call) < 0 ? -EACCES : 0;
}

NOPATCH int others_look(others_fn *fn, others_asleep_fn *asleep, void *arg)
{
	struct round round = { .fn = fn, .asleep = asleep, .arg = arg };
	struct kernel_action trap;
	int ret;

	take_round();
	current = &round;
	count = 0;
	for (unsigned i = 0; i < CHAINS; i++)
		*(volatile unsigned *)&chains[i] = 0; /* no memset() of libc's */
	round.process = (pid_t)sys_call(SYS_getpid);
	round.self = (pid_t)sys_call(SYS_gettid);
	round.began = task_clock();
	round.deadline = clock_ns() + OTHERS_MS * CLOCK_MS;
	/* Else 0, which is no mask of such a thread: there is no handler. */
	if (kernel_action(SIGTRAP, NULL, &trap) == 0 && trap.handler != (uintptr_t)SIG_DFL &&
	    trap.handler != (uintptr_t)SIG_IGN)
		round.trapped = trap.mask | kernel_bit(SIGTRAP);
	atomic_store(&ticket, atomic_fetch_add(&tickets, 1) % INT_MAX + 1);
	ret = ask_all(&round);
	end_round();
	return ret;
}

NOPATCH void others_give_back(void)
{
	take_round();
	look_signal_give_back();
	atomic_store(&holder, 0);
}
