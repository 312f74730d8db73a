/* SPDX-License-Identifier: MIT */
/*
 * fork() with aliases.
 *
 * An alias is shared memory, so a child would patch its parent, and the reverse.
 * Before a fork the aliased pages are therefore copied, and the child maps the
 * copy in their place, at both addresses.
 *
 * What must not happen is a store after its page was copied and before the
 * process is: the child would know of it (site held, INT3 put) and not have it.
 * So a gate is closed meanwhile. It is passed by single stores, not by patches: a
 * change that waits, or was started and left, does not hold a fork up. The child
 * finds it as it finds one on private pages: where it stood.
 *
 *   - The forking thread itself may have been interrupted in the middle of a
 *     store, by the signal in whose handler it forks. That store will be made on
 *     both sides, each in its own copy. The gate does not wait for it.
 *   - It may store while it forks: in the trap handler, when a handler of
 *     pthread_atfork(3) runs into an INT3. Such a store goes into the copy, too.
 *   - A thread interrupted in the middle of a store, whose handler stores, must
 *     not wait at the gate while the gate waits for that thread. So stores nest.
 *   - A thread may be stopped for good in the middle of a store (a debugger).
 *     The gate waits a second and no longer. Then a child might miss that store.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "patchcore/alias.h"
#include "patchcore/objects.h"
#include "patchcore/text_page.h"

#define YIELDS	    100
#define NAP_NS	    100000
#define PATIENCE_NS UINT64_C(1000000000)

static atomic_uint storing;	      /* stores between enter and leave */
static _Atomic(uintptr_t) gate_owner; /* forklock_self() of who forks; 0: open */

/* This thread's share of storing. In the static block, for signal handlers. */
static __thread unsigned mine __attribute__((tls_model("initial-exec")));

/* The copy for the child, between prepare and what comes after. */
static struct {
	int fd; /* -1: there is none */
	uint8_t *at;
	size_t len;
} copied = { .fd = -1 };

/* --- The gate -------------------------------------------------------------------------------- */

static void pause_at_gate(unsigned tries)
{
	struct timespec nap = { .tv_nsec = NAP_NS };

	if (tries < YIELDS)
		sched_yield();
	else
		nanosleep(&nap, NULL);
}

/*
 * Sequentially consistent, both here and in close_gate(): of "I store" and "the
 * gate is closed" one is always seen by the other side.
 */
static bool try_enter(void)
{
	uintptr_t owner;

	atomic_fetch_add(&storing, 1);
	owner = atomic_load(&gate_owner);
	if (mine || !owner || owner == forklock_self())
		return true;
	atomic_fetch_sub(&storing, 1);
	return false;
}

void text_gate_enter(void)
{
	for (unsigned tries = 0; !try_enter(); tries++)
		pause_at_gate(tries);
	mine++;
	/* For handlers of this thread: only then the store. */
	atomic_signal_fence(memory_order_seq_cst);
}

static void copy_page(const struct page *page)
{
	if (page && page_shift(page))
		memcpy(copied.at + page->copied_at,
		       (void *)(page->entry.addr + (uintptr_t)page_shift(page)), TEXT_PAGE);
}

/* Release: who sees the count drop sees the store. */
void text_gate_leave(const struct text_span *span)
{
	if (atomic_load_explicit(&gate_owner, memory_order_relaxed) == forklock_self() &&
	    copied.at) {
		copy_page(page_find((uintptr_t)span->addr));
		copy_page(page_find((uintptr_t)span->addr + span->len - 1));
	}
	mine--;
	atomic_fetch_sub_explicit(&storing, 1, memory_order_release);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void close_gate(void)
{
	uint64_t start = now_ns();

	atomic_store(&gate_owner, forklock_self());
	for (unsigned tries = 0; atomic_load(&storing) != mine; tries++) {
		if (now_ns() - start > PATIENCE_NS)
			return;
		pause_at_gate(tries);
	}
}

/* --- The copy -------------------------------------------------------------------------------- */

/* The end of pages whose code and whose aliases are both in one piece. */
static struct page *run_last(struct page *first)
{
	struct page *page = first;

	while (page->next && page->next->entry.addr == page->entry.addr + TEXT_PAGE &&
	       page_shift(page->next) == page_shift(first) &&
	       alias_prot(page->next) == alias_prot(first))
		page = page->next;
	return page;
}

static bool write_all(int fd, const uint8_t *from, size_t len, size_t to)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, from, len, (off_t)to);

		if (n <= 0)
			return false;
		from += n;
		len -= (size_t)n;
		to += (size_t)n;
	}
	return true;
}

static size_t number_pages(void)
{
	size_t len = 0;

	for (struct page *page = alias_first; page; page = page->next, len += TEXT_PAGE)
		page->copied_at = len;
	return len;
}

static bool fill(int fd)
{
	struct page *last;

	for (struct page *page = alias_first; page; page = last->next) {
		size_t len;

		last = run_last(page);
		len = last->entry.addr - page->entry.addr + TEXT_PAGE;
		/* The code may not be readable; its alias is. */
		if (!write_all(fd, (uint8_t *)(page->entry.addr + (uintptr_t)page_shift(page)), len,
			       page->copied_at))
			return false;
	}
	return true;
}

static void give_up_copy(void)
{
	if (copied.at)
		munmap(copied.at, copied.len);
	copied.at = NULL;
	if (copied.fd >= 0)
		close(copied.fd);
	copied.fd = -1;
}

static void make_copy(void)
{
	void *at;

	copied.len = number_pages();
	copied.fd = alias_memory(copied.len);
	if (copied.fd < 0 || !fill(copied.fd)) {
		give_up_copy();
		return;
	}
	at = mmap(NULL, copied.len, PROT_READ | PROT_WRITE, MAP_SHARED, copied.fd, 0);
	if (at == MAP_FAILED)
		give_up_copy();
	else
		copied.at = at;
}

/* --- In the child ---------------------------------------------------------------------------- */

static bool map_at(uintptr_t at, size_t len, int prot, size_t from)
{
	return mmap((void *)at, len, prot, MAP_SHARED | MAP_FIXED, copied.fd, (off_t)from) !=
	       MAP_FAILED;
}

/* The code first: an alias of its own for code that it shares would be of no use. */
static bool map_run(const struct page *first, size_t len)
{
	uintptr_t alias = first->entry.addr + (uintptr_t)page_shift(first);

	return copied.fd >= 0 &&
	       map_at(first->entry.addr, len, alias_prot(first), first->copied_at) &&
	       map_at(alias, len, PROT_READ | PROT_WRITE, first->copied_at);
}

static void take_run(struct page *first, const struct page *last, const struct stat *stat)
{
	bool taken = map_run(first, last->entry.addr - first->entry.addr + TEXT_PAGE);

	for (struct page *page = first; page && page->entry.addr <= last->entry.addr;
	     page = page->next) {
		if (taken)
			page->origin =
				(struct origin){ stat->st_dev, stat->st_ino, page->copied_at };
		else
			atomic_store_explicit(&page->stale, true, memory_order_relaxed);
	}
}

static void take_copy(void)
{
	struct stat stat = { 0 };
	struct page *last;

	if (copied.fd >= 0)
		fstat(copied.fd, &stat);
	for (struct page *page = alias_first; page; page = last->next) {
		last = run_last(page);
		/* What the parent could not write to, it could not copy either. */
		if (!atomic_load_explicit(&page->stale, memory_order_relaxed))
			take_run(page, last, &stat);
	}
}

/* --- Around fork() --------------------------------------------------------------------------- */

static void before_fork(void)
{
	objects_before_fork();
	forklock_before_fork(&text_lock);
	forklock_before_fork(&text_pages.lock);
	if (!alias_first)
		return;
	close_gate();
	make_copy();
}

static void open_gate(void)
{
	give_up_copy();
	atomic_store(&gate_owner, 0);
	forklock_after_fork(&text_pages.lock);
	forklock_after_fork(&text_lock);
}

static void in_child(void)
{
	/* Nobody else is here any more. */
	atomic_store(&storing, mine);
	objects_in_child();
	take_copy();
	alias_now_ours();
	open_gate();
}

static int watching;

static void watch(void)
{
	watching = pthread_atfork(before_fork, open_gate, in_child) == 0 ? 0 : -ENOMEM;
}

int text_watch_fork(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
	return watching;
}

/* First of all of the library, whose other handlers hold locks while they call in here. */
__attribute__((constructor)) static void watch_fork(void)
{
	text_watch_fork();
}
