/* SPDX-License-Identifier: MIT */
#include "patchcore/site/thread.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>

#include "patchcore/machine/sync.h"
#include "patchcore/site/fork.h"
#include "patchcore/syscall/kernel_signal.h"
#include "patchcore/syscall/task.h"

#define CHUNK  256u /* records that are allocated together */
#define GUESTS 64u  /* slots from SLOTS - GUESTS on */
#define SLOTS  (1u << THREAD_SLOT_BITS)
#define CHUNKS (SLOTS / CHUNK - GUESTS / CHUNK - 1)

_Atomic(uint32_t) process_epoch = 1;
__thread struct thread *thread_here __attribute__((tls_model("initial-exec")));

static struct thread *_Atomic chunks[CHUNKS]; /* published with release */
static _Atomic(uint32_t) used;		      /* slots that were ever used; after chunks */
static _Atomic(uint64_t) generations;
static _Atomic(uint64_t) making; /* a lock: the guest that makes a record; 0: it is free */

/* An executor that helps in the trap handler. The kernel sees its word as a robust futex. */
static struct guest {
	_Atomic(uint64_t) id;
	_Atomic(uint32_t) epoch;
	/* The task's id; 0: free. FUTEX_OWNER_DIED: it was killed. ASKED: see thread_ask_end(). */
	_Atomic(uint32_t) word;
	struct robust_list entry;
	struct robust_list_head head;
	struct robust_list_head
		*list; /* that it is in: its own, that of the guest around it, or NULL */
} guests[GUESTS];

/* In the word of a guest that is a thread of this process, which the kernel has no list of. */
#define ASKED FUTEX_WAITERS

_Static_assert(offsetof(pthread_mutex_t, __data.__lock) == 0, "the futex of a mutex comes first");

NOPATCH static struct thread *record_at(uint32_t slot)
{
	struct thread *chunk = load_acquire(&chunks[slot / CHUNK]);

	return &chunk[slot % CHUNK];
}

NOPATCH static _Atomic(uint32_t) *futex_of(struct thread *record)
{
	return (_Atomic(uint32_t) *)(void *)&record->life;
}

/* --- Is it gone? ------------------------------------------------------------------------------ */

/* NULL: the slot was never used. The id is read first: it is stored last when a slot is taken. */
NOPATCH static _Atomic(uint32_t) *read_slot(uint32_t slot, uint64_t *id, uint32_t *epoch)
{
	struct thread *record;

	if (slot >= SLOTS - GUESTS) {
		struct guest *guest = &guests[slot - (SLOTS - GUESTS)];

		*id = load_acquire(&guest->id);
		*epoch = load_relaxed(&guest->epoch);
		return &guest->word;
	}
	if (slot >= load_acquire(&used))
		return NULL;
	record = record_at(slot);
	*id = load_acquire(&record->id);
	/* Acquire: pairs with the last store of make_record(), the mutex stands before it. */
	*epoch = load_acquire(&record->epoch);
	return futex_of(record);
}

NOPATCH bool thread_is_gone(uint64_t id)
{
	uint32_t epoch;
	uint64_t now;
	_Atomic(uint32_t) *futex = read_slot(id % SLOTS, &now, &epoch);

	/* Another id: another thread has the slot now, so the one that is asked for has ended. */
	return !futex || id != now || epoch != load_acquire(&process_epoch) ||
	       (load_acquire(futex) & FUTEX_OWNER_DIED);
}

/*
 * The calling task's list of robust futexes. 1: it is libc's, so the task is a thread of this
 * process. 0: there is none, or it is a guest's. Negative: it could not be read.
 */
NOPATCH static int read_list(struct robust_list_head **list)
{
	uintptr_t first = (uintptr_t)guests, at;
	uint64_t length;
	long ret;

	*list = NULL;
	ret = sys_call(SYS_get_robust_list, 0, list, &length);
	at = (uintptr_t)*list;
	return ret < 0 ? (int)ret : at && (at < first || at >= first + sizeof(guests));
}

/*
 * In a child of vfork() the ids of threads are strangers', and before fork_adopt() those of the
 * parent's: there it is not asked.
 */
NOPATCH bool thread_ask_end(uint64_t id)
{
	uint32_t slot = id % SLOTS, epoch, seen, tid;
	struct robust_list_head *list;
	_Atomic(uint32_t) *futex;
	uint64_t now;

	if (thread_is_gone(id))
		return true;
	futex = read_slot(slot, &now, &epoch);
	seen = load_acquire(futex);
	if (slot < SLOTS - GUESTS)
		tid = load_relaxed(&record_at(slot)->tid);
	else
		tid = seen & ASKED ? seen & FUTEX_TID_MASK : 0;
	if (!tid || id != now || fork_is_new() || read_list(&list) <= 0 ||
	    !task_has_ended((pid_t)tid))
		return false;
	/* Release: pairs with the acquire in thread_is_gone(). */
	atomic_compare_exchange_strong_explicit(futex, &seen, seen | FUTEX_OWNER_DIED,
						memory_order_acq_rel, memory_order_relaxed);
	return thread_is_gone(id);
}

/* --- Registering ------------------------------------------------------------------------------ */

/*
 * One that was never finished is not free: its mutex may be in the list of a thread that lives,
 * for which a child of vfork() made it that was killed.
 */
static bool record_is_over(const struct thread *record)
{
	return load_relaxed(&record->epoch) && thread_is_gone(load_relaxed(&record->id));
}

static pid_t process; /* that this memory is of */

__attribute__((constructor)) static void note_process(void)
{
	process = (pid_t)sys_call(SYS_getpid);
}

/*
 * Locks the mutex for good. Its owner is, for libc, the thread of this thread-local storage: in a
 * child of vfork() that is the parent's thread. In a child that was made past libc it still has the
 * id of the parent's.
 */
static void hold_life(struct thread *record)
{
	bool is_here = process == (pid_t)sys_call(SYS_getpid);
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&record->life, &attr);
	pthread_mutexattr_destroy(&attr);
	pthread_mutex_lock(&record->life);
	store_relaxed(&record->tid, is_here ? (uint32_t)sys_call(SYS_gettid)
					    : *futex_of(record) & FUTEX_TID_MASK);
}

/*
 * In the slot of a thread that has ended, or a new one. The id comes last: until then it is that
 * of the thread that had the slot before, which is gone for good, or 0.
 */
static struct thread *make_record(void)
{
	uint32_t count = load_relaxed(&used), slot = 0;
	uint64_t generation = atomic_fetch_add_explicit(&generations, 1, memory_order_relaxed) + 1;
	struct thread *record;

#ifdef __SANITIZE_THREAD__
	/* It believes that a mutex whose holder has ended stays locked for ever. */
	slot = count;
#endif
	while (slot < count && !record_is_over(record_at(slot)))
		slot++;
	if (slot == count && slot % CHUNK == 0) {
		void *chunk = MAP_FAILED;

		if (slot / CHUNK < CHUNKS)
			chunk = mmap(NULL, CHUNK * sizeof(struct thread), PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (chunk == MAP_FAILED)
			return NULL;
		store_release(&chunks[slot / CHUNK], chunk);
	}
	record = record_at(slot);
	store_relaxed(&record->inside, 0);
	record->locks = 0;
	record->holds = 0;
	/* A task that is killed in here, a child of vfork(), is gone, and leaves the slot. */
	store_relaxed(&record->epoch, 0);
	store_release(&record->id, generation << THREAD_SLOT_BITS | slot);
	if (slot == count)
		store_release(&used, count + 1);
	hold_life(record);
	store_release(&record->epoch, load_relaxed(&process_epoch));
	return record;
}

/*
 * Takes the lock, as a guest, or takes it over from one that is gone; 0: another one has it. None
 * waits as a guest: the thread that has the lock may need a guest to get on.
 */
static uint64_t lock_making(void)
{
	uint64_t guest = thread_guest(), holder = 0;

	if (!guest)
		return 0;
	do {
		/* Acquire: pairs with the release of the last one, also of one that is gone. */
		if (atomic_compare_exchange_strong_explicit(
			    &making, &holder, guest, memory_order_acq_rel, memory_order_acquire))
			return guest;
	} while (thread_ask_end(holder));
	thread_guest_leave(guest);
	return 0;
}

/*
 * With all signals blocked: no handler finds libc's list of robust mutexes half changed by
 * this. SIGTRAP stays open, libc may be under patches itself.
 */
struct thread *thread_register(void)
{
	uint64_t before = kernel_mask(SIG_SETMASK, ~kernel_bit(SIGTRAP)), guest;

	/* In a child that came past the handlers, what its parent's threads hold is free. */
	if (fork_is_new())
		fork_adopt();
	if (!thread_here) {
		while (!(guest = lock_making()))
			nap();
		thread_here = make_record();
		store_release(&making, 0);
		thread_guest_leave(guest);
	}
	kernel_mask(SIG_SETMASK, before);
	return thread_here;
}

/* --- Which owner a signal has interrupted ---------------------------------------------------- */

#define LOOKS 3

NOPATCH bool thread_is_interrupted(uint64_t id)
{
	const struct thread *record = thread_here;
	uint32_t tid;

	if (!record || load_relaxed(&record->id) != id)
		return false;
	tid = load_relaxed(&record->tid);
	if ((uint32_t)sys_call(SYS_gettid) == tid)
		return true;
	/*
	 * A thread that waits for its child of vfork() sleeps uninterruptibly for as long as the
	 * child runs. One that waits for a disk does not, look after look.
	 */
	for (unsigned i = 0; i < LOOKS; i++) {
		if (task_state((pid_t)tid) != 'D')
			return false;
		nap();
	}
	return true;
}

/* --- Waiting for all ------------------------------------------------------------------------- */

static bool has_left(const struct thread *record, uint64_t first)
{
	uint64_t now = load_acquire(&record->inside);

	return !(now & THREAD_INSIDE) || now / THREAD_PASSED != first / THREAD_PASSED ||
	       thread_ask_end(load_relaxed(&record->id));
}

bool thread_runs(uint64_t id)
{
	const struct thread *record = record_at(id % SLOTS);
	char state = task_state((pid_t)load_relaxed(&record->tid));

	return state == 'R' || state == 'D';
}

/* Is another thread inside? that_runs: one that only lacks a CPU, or a page. */
static bool any_inside(uint32_t count, bool that_runs)
{
	for (uint32_t slot = 0; slot < count; slot++) {
		const struct thread *record = record_at(slot);

		if (record != thread_here && !has_left(record, atomic_load(&record->inside)) &&
		    (!that_runs || thread_runs(load_relaxed(&record->id))))
			return true;
	}
	return false;
}

#define ASLEEP_NS	INT64_C(1000000000)
#define STARVED_NS	(16 * ASLEEP_NS)
#define STARVED_LOOK_NS (20 * CLOCK_MS)

/*
 * One thread enters while another closes the gate (or a page): one of the two must see the
 * other's store. A membarrier sees to that, or else a nap: no store stays in a buffer for so
 * long. Returns how many records there are then.
 */
static uint32_t see_all(void)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (membarrier_sync() < 0)
		nap();
	return load_acquire(&used);
}

bool thread_any_inside(void)
{
	return any_inside(see_all(), false);
}

bool thread_await_all(void)
{
	int64_t start = clock_ns(), deadline = start + ASLEEP_NS;
	uint32_t count = see_all();
	bool all = true;

	for (uint32_t slot = 0; slot < count; slot++) {
		const struct thread *record = record_at(slot);
		uint64_t first = load_acquire(&record->inside);

		while (record != thread_here && !has_left(record, first)) {
			int64_t now = clock_ns();

			/* At the end only as long as one inside runs, in a fork too. */
			if (now > start + STARVED_NS ||
			    (now > deadline && !any_inside(load_acquire(&used), true))) {
				/* It may have left since, and sleep outside. */
				all &= has_left(record, first);
				break;
			}
			if (now > deadline)
				deadline = now + STARVED_LOOK_NS;
			nap();
		}
	}
	return all;
}

/* --- Guests ---------------------------------------------------------------------------------- */

#define FUTEX_OFFSET ((long)offsetof(struct guest, word) - (long)offsetof(struct guest, entry))

NOPATCH static void set_list(struct robust_list_head *list)
{
	sys_call(SYS_set_robust_list, list, sizeof(*list));
}

NOPATCH static void begin_list(struct robust_list_head *list)
{
	*list = (struct robust_list_head){ { &list->list }, FUTEX_OFFSET, NULL };
}

/* By step 4 below, or not. The task may be killed after any instruction. */
NOPATCH static bool claim_guest(struct guest *guest, uint32_t epoch, uint32_t mine)
{
	/* Acquire, before the word: pairs with step 5. */
	uint64_t last = load_acquire(&guest->id);
	/* Acquire: pairs with step 4, the epoch is the claim's. */
	uint32_t word = load_acquire(&guest->word);

	/* One that was left behind, by a task that was killed or by fork(), is free. */
	if (word && !(word & FUTEX_OWNER_DIED) && load_relaxed(&guest->epoch) == epoch)
		return false;
	/* Release: a task that finds the place free finds that id gone. */
	if (word && (!atomic_compare_exchange_strong_explicit(
			     &guest->id, &last, 0, memory_order_relaxed, memory_order_relaxed) ||
		     !atomic_compare_exchange_strong_explicit(
			     &guest->word, &word, 0, memory_order_acq_rel, memory_order_relaxed)))
		return false;
	store_relaxed(&guest->epoch, epoch);
	word = 0;
	return atomic_compare_exchange_strong_explicit(&guest->word, &word, mine,
						       memory_order_acq_rel, memory_order_relaxed);
}

/*
 * To take a place, while others may try to:
 *
 *  0. A task that is no thread of this process, as a child of vfork(), has no list of robust
 *     futexes, or that of the guest around it. It gets one, whose pending operation is the place
 *     that it is about to claim: the kernel marks that if the claim was made.
 *  1. Where the last guest was left behind, its id goes. It is gone for good, also if this guest
 *     is killed.
 *  2. Then its word goes, and the place is free for all.
 *  3. The epoch, before the word: what is claimed never looks as if fork() had left it behind.
 *  4. The word. One task succeeds, and the others look further.
 *  5. The id, and of such a task the entry in its list.
 */
NOPATCH uint64_t thread_guest(void)
{
	uint32_t epoch = load_relaxed(&process_epoch), i;
	uint32_t tid = (uint32_t)sys_call(SYS_gettid);
	struct robust_list_head first, *list;
	int theirs = read_list(&list);
	struct guest *guest;
	uint64_t id;

	if (theirs) {
		tid |= theirs > 0 ? ASKED : 0;
		list = NULL;
	} else if (!list) {
		begin_list(list = &first);
		set_list(list);
	}
	for (i = 0; i < GUESTS; i++) {
		if (list)
			list->list_op_pending = &guests[i].entry;
		atomic_signal_fence(memory_order_seq_cst);
		if (claim_guest(&guests[i], epoch, tid))
			break;
	}
	if (i == GUESTS) {
		if (list)
			list->list_op_pending = NULL;
		if (list == &first)
			set_list(NULL);
		for (i = 0; i < GUESTS; i++)
			thread_ask_end(load_relaxed(&guests[i].id));
		return 0;
	}
	guest = &guests[i];
	id = (atomic_fetch_add_explicit(&generations, 1, memory_order_relaxed) + 1)
		     << THREAD_SLOT_BITS |
	     (SLOTS - GUESTS + i);
	store_release(&guest->id, id);
	guest->list = list;
	if (!list)
		return id;
	if (list == &first)
		begin_list(guest->list = &guest->head);
	guest->entry.next = guest->list->list.next;
	/* The task may be killed in between: the entry leads on before it is led to. */
	atomic_signal_fence(memory_order_release);
	guest->list->list.next = &guest->entry;
	if (list == &first)
		set_list(&guest->head);
	list->list_op_pending = NULL;
	return id;
}

NOPATCH void thread_guest_leave(uint64_t id)
{
	struct guest *guest = &guests[id % SLOTS - (SLOTS - GUESTS)];
	struct robust_list_head *list = guest->list;
	struct robust_list *next = guest->entry.next;
	bool is_own = list == &guest->head;

	store_release(&guest->word, 0);
	/* After the word: if the task is killed before, the kernel marks the word as its own. */
	if (is_own)
		set_list(NULL);
	else if (list)
		list->list.next = next;
}

/* --- fork() ---------------------------------------------------------------------------------- */

NOPATCH void thread_adopt(void)
{
	uint32_t epoch = load_relaxed(&process_epoch) + 1;
	struct thread *self = thread_here;

	process = (pid_t)sys_call(SYS_getpid);
	if (self) {
		store_relaxed(&self->tid, (uint32_t)sys_call(SYS_gettid));
		store_relaxed(&self->epoch, epoch);
	}
	/* Release: pairs with the acquire in thread_is_gone(). */
	store_release(&process_epoch, epoch);
}

void thread_rearm(void)
{
	if (thread_here)
		hold_life(thread_here);
}
