/* SPDX-License-Identifier: MIT */
/*
 * All that happens around fork(), in its order. One registration with pthread_atfork(3), when the
 * library is loaded.
 *
 * Before, in the parent:
 *   1. close the gate: threads that come to the library wait outside
 *   2. finish the changes that this very thread was making when a signal came whose
 *      handler forks
 *   3. wait until every other thread is outside: no lock is held, no site is owned, no page is
 *      borrowed. A debugger may have stopped a thread inside, so not for ever.
 *   4. drain: no change is in flight, no INT3 of ours stands. No executor waits for one, so
 *      no lock of the program's, or of libc's, is held by a thread that waits for us. (Not if
 *      this thread was interrupted with a lock in hand, which the drain might want.)
 *   5. copy the pages that have an alias
 *   6. block signals, all but those that code raises: a handler that patched from here on would
 *      change what the child still runs
 * After, in the parent:
 *   7. wait until the child has mapped the copy: until then it runs our pages. A child that is
 *      starved or stopped is late: what has an alias is not changed before it is ready
 *   8. open the gate, and let signals come
 * After, in the child:
 *   7. adopt (below), if a trap or an entry point has not done so before
 *   8. the kernel is told again of the thread's robust mutex; children that are late are the
 *      parent's affair
 *   9. open the gate, and let signals come
 *
 * Handlers of the program that are registered earlier run between 6 and 7, others outside. In both
 * the library works: for the forking thread the gate is open, and what it stores goes into the
 * copy as well.
 *
 * What a child inherits:
 *
 *   fork_adopted   means                                       left by, for
 *   NEW            nothing of the library has run here yet     fork_adopt(): ADOPTING
 *   ADOPTING | id  that task is at it                          the same: REST
 *   REST           code, threads and locks are its own         the next that enters, if no
 *                                                              other is inside: ADOPTING
 *   ADOPTING | id  that task finishes half-made changes        the same: ADOPTED, or REST
 *   ADOPTED        no change is half made any more             fork(2), which wipes it: NEW
 *
 * A child that is made past the handlers (_Fork(3), a system call) is recognised by the word, too.
 * What it finds half done depends on where its parent's threads were: sites whose owner is gone
 * are taken over, locks likewise, borrowed pages get their protection back, and code with an
 * alias stays its parent's: it is refused.
 */
#include "patchcore/site/fork.h"

#include <signal.h>
#include <sys/mman.h>

#include "patchcore/pages/text.h"
#include "patchcore/site/lock.h"
#include "patchcore/syscall/kernel_signal.h"
#include "patchcore/word/flight.h"

#define REST	 2u
#define ADOPTING 0x80000000u

_Atomic(uint64_t) fork_gate;

/* Until watch_fork() has a page that the kernel wipes. */
static _Atomic(uint32_t) never_wiped = FORK_ADOPTED;
_Atomic(uint32_t) *fork_adopted = &never_wiped;

/* --- Adopting --------------------------------------------------------------------------------- */

NOPATCH void fork_adopt(void)
{
	uint32_t self = ADOPTING | (uint32_t)sys_call(SYS_gettid), state = 0;

	if (atomic_compare_exchange_strong_explicit(fork_adopted, &state, self,
						    memory_order_acquire, memory_order_acquire)) {
		thread_adopt();
		text_adopt();
		store_release(fork_adopted, REST);
		return;
	}
	/* This thread itself, interrupted, or another one of a child that has made some already. */
	while (state & ADOPTING && state != self) {
		nap();
		state = load_acquire(fork_adopted);
	}
}

/* False: it is not the turn of this thread. The others wait, so no handler may end or leave it. */
static bool try_adopt_rest(void)
{
	uint64_t before = kernel_mask(SIG_BLOCK, ~KERNEL_RAISED);
	uint32_t me = ADOPTING | (uint32_t)sys_call(SYS_gettid), state = REST;
	bool is_turn = atomic_compare_exchange_strong(fork_adopted, &state, me), all_over;

	if (is_turn) {
		/* A drain fails for want of memory: then what is in flight needs its pages. */
		all_over = !thread_any_inside() && flight_drain() == 0;
		if (all_over)
			text_give_back_borrowed();
		store_release(fork_adopted, all_over ? FORK_ADOPTED : REST);
	}
	kernel_mask(SIG_SETMASK, before);
	return is_turn;
}

/* What comes before the fork is done, what comes after is not begun: the rest is libc's. */
static _Atomic(bool) prepared;

#define GATE_LOOK_NS (20 * CLOCK_MS)

/*
 * 1. Adopt. The rest of it needs more than a trap handler may do: to see to what threads have left
 *    half done that are not here. A fork that waited for all of them left nothing. Other threads
 *    wait outside meanwhile, and it is put off while one is inside, as the forking one may be in
 *    the middle of a change of its own, or while a change cannot be finished.
 * 2. Wait at the gate. This thread may hold a lock that fork() itself needs after our handlers, as
 *    malloc()'s where its signal handler patches. So it must not wait without end for a thread
 *    that sleeps in fork(). Nor may it go past: the child's copy of the code is made, or its
 *    memory is being copied, and a change would be in a part of them only.
 */
int fork_enter_slowly(struct thread *self, int64_t ns)
{
	int64_t deadline = 0, now;
	uint64_t gate;

	if (fork_is_new())
		fork_adopt();
	while (load_acquire(fork_adopted) != FORK_ADOPTED && !thread_is_nested(self) &&
	       !self->locks && !try_adopt_rest()) {
		thread_leave(self);
		nap();
		thread_enter_as(self);
	}
	while ((gate = load_acquire(&fork_gate)) != 0) {
		if (fork_is_mine(self) || thread_is_nested(self) || thread_is_gone(gate))
			return 0;
		thread_leave(self);
		/* The limit runs from the fork's preparation on, while the forking thread sleeps.
		 */
		now = clock_ns();
		if (!deadline || !load_relaxed(&prepared))
			deadline = now + ns;
		if (now > deadline) {
			/* It may have opened the gate since, and sleep outside. */
			if (!thread_runs(gate) && load_acquire(&fork_gate) == gate)
				return -EAGAIN;
			deadline = now + GATE_LOOK_NS;
		}
		nap();
		thread_enter_as(self);
	}
	return 0;
}

/* --- The handlers ----------------------------------------------------------------------------- */

/* The gate's owner's. */
static unsigned depth;	     /* forks inside the handlers of a fork */
static int cancel_before;    /* 1 */
static uint64_t mask_before; /* 6 */

static void before_fork(void)
{
	struct thread *self = thread_self();
	uint64_t id, gate = 0;
	bool all_outside;

	if (!self)
		return;
	if (fork_is_mine(self)) {
		depth++;
		return;
	}
	/* 1 to 6 of the list above. */
	id = load_relaxed(&self->id);
	/* Sequentially consistent: pairs with the barrier in thread_await_all(). */
	while (!atomic_compare_exchange_strong(&fork_gate, &gate, id)) {
		if (thread_is_gone(gate))
			continue;
		nap();
		gate = 0;
	}
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_before);
	thread_enter_as(self);
	flight_finish_own();
	all_outside = thread_await_all();
	if (all_outside && !self->locks)
		flight_drain();
	objects_before_fork();
	text_before_fork();
	mask_before = kernel_mask(SIG_BLOCK, ~KERNEL_RAISED);
	store_relaxed(&prepared, true);
}

/* In parent and child; after a nested fork nothing is to be done. */
static void after_fork(struct thread *self, void (*drop_copy)(void))
{
	uint64_t mask = mask_before;
	int cancel = cancel_before;

	if (!self || !fork_is_mine(self))
		return;
	if (depth > 0) {
		depth--;
		return;
	}
	store_relaxed(&prepared, false);
	drop_copy();
	store_release(&fork_gate, 0);
	thread_leave(self);
	pthread_setcancelstate(cancel, NULL);
	kernel_mask(SIG_SETMASK, mask);
}

static void fork_in_parent(void)
{
	after_fork(thread_here, text_after_fork);
}

static void fork_in_child(void)
{
	if (fork_adopted == &never_wiped)
		store_relaxed(fork_adopted, FORK_NEW);
	if (fork_is_new())
		fork_adopt();
	thread_rearm();
	objects_in_child();
	text_drop_late();
	after_fork(thread_here, text_drop_copy);
}

/* First of all, and not with the first change: a fork under way then would know nothing of it. */
__attribute__((constructor(101))) static void watch_fork(void)
{
	void *word =
		mmap(NULL, TEXT_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	pthread_atfork(before_fork, fork_in_parent, fork_in_child);
	if (word == MAP_FAILED || madvise(word, TEXT_PAGE, MADV_WIPEONFORK) < 0)
		return;
	*(_Atomic(uint32_t) *)word = FORK_ADOPTED;
	fork_adopted = word;
}
