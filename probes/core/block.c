/* SPDX-License-Identifier: MIT */
/*
 * Blocks of counters, one per thread that has run a probe.
 *
 * The list only grows. A block is taken by one atomic exchange and given back when its thread ends,
 * so that a signal handler may take one at any time, also in the middle of another's taking.
 */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>

#include "patchcore/syscall/sys.h"
#include "probes/core/entry.h"

__thread struct block *block_of_thread;
static _Atomic(struct block *) blocks;
static pthread_key_t key;

/*
 * Destructors that run later may run probes: the thread then takes a block again, and the C
 * library comes back here.
 */
static void give_back_block(void *data)
{
	struct block *block = data;

	block_of_thread = NULL;
	block->room_size = 0;
	block->is_looked_for = false;
	atomic_store_explicit(&block->taken, 0, memory_order_release);
}

int block_start(void)
{
	return -pthread_key_create(&key, give_back_block);
}

void block_unload(void)
{
	struct block *block = atomic_exchange(&blocks, NULL), *next;

	for (; block; block = next) {
		next = block->next;
		munmap(block, sizeof(*block));
	}
	pthread_key_delete(key);
}

struct block *block_list(void)
{
	return atomic_load_explicit(&blocks, memory_order_acquire);
}

uintptr_t block_offset(void)
{
	uintptr_t offset;

	__asm__("mov block_of_thread@gottpoff(%%rip), %0" : "=r"(offset));
	return offset;
}

static struct block *take_free_block(void)
{
	struct block *block = atomic_load_explicit(&blocks, memory_order_acquire);

	for (; block; block = block->next)
		if (!atomic_load_explicit(&block->taken, memory_order_relaxed) &&
		    !atomic_exchange_explicit(&block->taken, 1, memory_order_acquire))
			return block;
	return NULL;
}

static struct block *map_block(void)
{
	/* The program's mmap() may have a probe, which would come back here. */
	long ret = sys_call(SYS_mmap, 0, sizeof(struct block), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct block *block = (struct block *)ret;

	if (ret < 0)
		return NULL;
	sys_call(SYS_mprotect, (uintptr_t)block->stack - GUARD_PAGE, GUARD_PAGE, PROT_NONE);
	atomic_store_explicit(&block->taken, 1, memory_order_relaxed);
	block->next = atomic_load_explicit(&blocks, memory_order_acquire);
	while (!atomic_compare_exchange_weak_explicit(&blocks, &block->next, block,
						      memory_order_release, memory_order_acquire))
		;
	return block;
}

/* In any signal handler: no lock, no errno. */
struct block *block_make(void)
{
	struct block *block = take_free_block();

	if (!block)
		block = map_block();
	if (block)
		block_of_thread = block;
	return block;
}

void block_register(void)
{
	int saved = errno;

	pthread_setspecific(key, block_of_thread);
	errno = saved;
}

void block_forked(void)
{
	struct block *mine = block_of_thread;

	for (struct block *block = block_list(); block; block = block->next) {
		/* The first page has the head; zero pages come for the others when they are asked
		 * for. */
		for (size_t i = 0; i < (4096 - BLOCK_COUNTS) / 8; i++)
			atomic_store_explicit(&block->counts[i], 0, memory_order_relaxed);
		sys_call(SYS_madvise, (char *)block + 4096,
			 (block == mine ? offsetof(struct block, guard) : sizeof(*block)) - 4096,
			 MADV_DONTNEED);
		if (block == mine)
			continue;
		atomic_store_explicit(&block->inside, 0, memory_order_relaxed);
		atomic_store_explicit(&block->taken, 0, memory_order_relaxed);
	}
}
