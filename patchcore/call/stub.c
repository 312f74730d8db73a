/* SPDX-License-Identifier: MIT */
#include "patchcore/call/stub.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "patchcore/machine/policy.h"
#include "patchcore/pages/text.h"
#include "patchcore/site/lock.h"

#define REACH  UINT64_C(0x7ffff000)	/* whole pages of the 2 GiB */
#define BOTTOM UINT64_C(0x100000)	/* nothing below, so that NULL plus a little still traps */
#define TOP    UINT64_C(0x7fffffff0000) /* the end of user space with four-level page tables */

/*
 * A pool is code and after it data. In each 16 bytes of the code there is, from `low` on, a jump
 * through the stub at the same place of the data. In place of the first there is a ret, and its
 * slot; the last has no room for every low.
 */
#define STRIDE	 16u
#define LOWS	 (256u / STRIDE) /* stubs with the same lowest byte are so many apart */
#define POOL_MAX (256 * TEXT_PAGE)
#define BUCKETS	 4096u /* with more targets the stubs that are shared are looked for */

/* NOTRACK, for targets that do not begin with an ENDBR64 (CET, IBT). */
static const uint8_t jump[] = { 0x3e, 0xff, 0x25 };
#define JUMP (sizeof(jump) + 4)

/* ENDBR64; ret. An indirect call enters at the first, a direct one at the second. */
static const uint8_t ret_code[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xc3 };
#define RET_DIRECT 4

struct pool {
	struct pool *next;
	uint8_t *code;
	size_t size;		 /* of the code, bytes */
	struct stub *free[LOWS]; /* each of one lowest byte of their code */
};

static struct lock lock; /* protects all below */
static struct pool *pools;
static struct stub *shared[BUCKETS]; /* by target */

/* --- Where ------------------------------------------------------------------------------------ */

static bool map_at(uint8_t **at, uintptr_t wanted, size_t size)
{
	*at = mmap((void *)wanted, size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	/* Else another thread was faster, or this is no place for a mapping. */
	if ((uintptr_t)*at == wanted)
		return true;
	/* Before Linux 4.17 that address is only a hint. */
	if (*at != MAP_FAILED)
		munmap(*at, size);
	return false;
}

struct stub_search {
	uintptr_t start, end; /* what is left to search */
	size_t size;
	uint8_t **at;
};

/*
 * Before a mapping: at the end of a hole, as the kernel does it, since the heap may grow into its
 * beginning. But the main thread's stack grows the other way. 1: found.
 */
static int use_hole(const struct mapping *next, void *arg)
{
	struct stub_search *search = arg;
	uintptr_t start = search->start, on_stack = getauxval(AT_RANDOM);
	uintptr_t to = next->start < search->end ? next->start : search->end;
	bool is_stack = next->start <= on_stack && on_stack < next->end;

	search->start = next->end;
	return to > start && to - start >= search->size &&
	       map_at(search->at, is_stack ? start : to - search->size, search->size);
}

/* For reading and writing. 0, -ENOSPC: no room there, or an error. */
static int map_in_reach(uint8_t **at, uintptr_t end, size_t size)
{
	const uintptr_t page = ~(uintptr_t)(TEXT_PAGE - 1);
	struct stub_search search = {
		.start = end > REACH + BOTTOM ? (end - REACH + TEXT_PAGE - 1) & page : BOTTOM,
		.end = (end < TOP - REACH ? end + REACH : TOP) & page,
		.size = size,
		.at = at,
	};
	const struct mapping past = { .start = UINTPTR_MAX, .end = UINTPTR_MAX };
	int ret = mappings_each(search.start, UINTPTR_MAX, MAPPING_ANY, use_hole, &search);

	if (ret == 0)
		ret = use_hole(&past, &search);
	return ret == -ENOMEM ? ret : ret == 1 ? 0 : -ENOSPC;
}

/* --- Pools ------------------------------------------------------------------------------------ */

static struct stub *pool_stub(const struct pool *pool, size_t index)
{
	return (struct stub *)(pool->code + pool->size) + index;
}

static size_t pool_bytes(const struct pool *pool)
{
	return pool->size + pool->size / STRIDE * sizeof(struct stub);
}

static bool pool_in_reach(const struct pool *pool, uintptr_t end)
{
	return stub_in_reach(end, (uintptr_t)pool->code) &&
	       stub_in_reach(end, (uintptr_t)pool->code + pool_bytes(pool));
}

static void pool_put(struct pool *pool, struct stub *stub)
{
	struct stub **free = &pool->free[(uintptr_t)stub->code % (LOWS * STRIDE) / STRIDE];

	stub->next = *free;
	*free = stub;
}

static int pool_fill(struct pool *pool, unsigned low)
{
	uint8_t *code = pool->code;
	struct memory file;
	int ret = -ENOSPC;

	memset(code, 0xcc, pool->size);
	memcpy(code, ret_code, sizeof(ret_code));
	*pool_stub(pool, 0) = (struct stub){ .target = code, .code = code };
	for (size_t i = pool->size / STRIDE - 2; i > 0; i--) {
		uint8_t *at = code + i * STRIDE + low;
		struct stub *stub = pool_stub(pool, i);
		int32_t displacement = (int32_t)((uint8_t *)stub - (at + JUMP));

		memcpy(at, jump, sizeof(jump));
		memcpy(at + sizeof(jump), &displacement, sizeof(displacement));
		*stub = (struct stub){ .target = code, .code = at };
		pool_put(pool, stub);
	}
	if (mprotect(code, pool->size, PROT_READ | PROT_EXEC) == 0)
		return 0;
	/*
	 * Where memory that was writable may not become executable (SELinux, MDWE): the
	 * page of a file that holds the same bytes may be.
	 */
	if (memory_make(&file, pool->size) < 0)
		return -ENOSPC;
	memcpy(file.at, code, pool->size);
	if (mmap(code, pool->size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file.fd, 0) ==
	    code)
		ret = 0;
	memory_drop(&file);
	return ret;
}

/* As large as all of its kind that are in reach together, so that there are few. */
static int pool_new(struct pool **made, uintptr_t end, int low)
{
	unsigned from = low == STUB_ANY ? 0 : (unsigned)low % STRIDE;
	struct pool *pool = choice_is_quiet() ? NULL : calloc(1, sizeof(*pool));
	int ret;

	if (choice_is_quiet())
		return -ENOSPC;
	if (!pool)
		return -ENOMEM;
	for (struct pool *other = pools; other && pool->size < POOL_MAX; other = other->next)
		if ((uintptr_t)pool_stub(other, 1)->code % STRIDE == from &&
		    pool_in_reach(other, end))
			pool->size += other->size;
	pool->size = pool->size > TEXT_PAGE ? pool->size : TEXT_PAGE;
	while ((ret = map_in_reach(&pool->code, end, pool_bytes(pool))) == -ENOSPC &&
	       pool->size > TEXT_PAGE)
		pool->size = pool->size / 2 & ~(size_t)(TEXT_PAGE - 1);
	if (ret == 0) {
		ret = pool_fill(pool, from);
		if (ret < 0)
			munmap(pool->code, pool_bytes(pool));
	}
	if (ret < 0) {
		free(pool);
		return ret;
	}
	pool->next = pools;
	pools = *made = pool;
	return 0;
}

/* --- Stubs, with the lock --------------------------------------------------------------------- */

/* NULL: no free one whose code has that lowest byte. */
static struct stub *take_from(struct pool *pool, int low)
{
	for (unsigned i = 0; i < LOWS; i++) {
		struct stub *stub = pool->free[i];

		if (!stub || !stub_fits(stub, low))
			continue;
		pool->free[i] = stub->next;
		/* Without a target, go back. */
		atomic_store(&stub->target, pool->code);
		return stub;
	}
	return NULL;
}

static int take_stub(struct stub **stub, uintptr_t end, int low)
{
	int ret;

	*stub = NULL;
	for (struct pool *pool = pools; !*stub; pool = pool->next) {
		if (!pool && (ret = pool_new(&pool, end, low)) < 0)
			return ret;
		if (pool_in_reach(pool, end))
			*stub = take_from(pool, low);
	}
	return 0;
}

static void give_stub(struct stub *stub)
{
	struct pool *pool = pools;

	while (stub < pool_stub(pool, 0) || stub >= pool_stub(pool, pool->size / STRIDE))
		pool = pool->next;
	pool_put(pool, stub);
}

static struct stub **bucket_of(const void *target)
{
	return &shared[(uintptr_t)target * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (BUCKETS - 1)];
}

static int share_stub(struct stub **found, uintptr_t end, int low, void *target)
{
	struct stub **bucket = bucket_of(target), *stub = *bucket;
	int ret;

	while (stub &&
	       !(stub->target == target && stub_fits(stub, low) &&
		 stub_in_reach(end, (uintptr_t)stub->code) && stub_in_reach(end, (uintptr_t)stub)))
		stub = stub->next;
	if (!stub) {
		ret = take_stub(&stub, end, low);
		if (ret < 0)
			return ret;
		atomic_store(&stub->target, target);
		stub->next = *bucket;
		*bucket = stub;
	}
	stub->users++;
	*found = stub;
	return 0;
}

static void unshare_stub(struct stub *stub)
{
	struct stub **at = bucket_of(stub->target);

	if (--stub->users)
		return;
	while (*at != stub)
		at = &(*at)->next;
	*at = stub->next;
	give_stub(stub);
}

/* --- Stubs of a place ------------------------------------------------------------------------- */

int stub_get(struct stub **stub, struct stubs *stubs, uintptr_t end, int low, void *shared_by)
{
	int ret = 0;

	lock_take(&lock);
	if (shared_by && !stubs->shared && !stubs->own)
		ret = share_stub(&stubs->shared, end, low, shared_by);
	*stub = stubs->shared;
	if (ret == 0 &&
	    !(shared_by && *stub && (*stub)->target == shared_by && stub_fits(*stub, low))) {
		for (*stub = stubs->own; *stub && !stub_fits(*stub, low); *stub = (*stub)->next)
			;
		if (!*stub && (ret = take_stub(stub, end, low)) == 0) {
			(*stub)->next = stubs->own;
			stubs->own = *stub;
		}
	}
	lock_drop(&lock);
	return ret;
}

void stubs_put(struct stubs *stubs)
{
	struct stub *stub, *next;

	lock_take(&lock);
	if (stubs->shared)
		unshare_stub(stubs->shared);
	for (stub = stubs->own; stub; stub = next) {
		next = stub->next;
		give_stub(stub);
	}
	*stubs = (struct stubs){ NULL, NULL };
	lock_drop(&lock);
}

int stub_ret_get(void **found, uintptr_t end, bool slot)
{
	struct pool *pool;
	int ret = 0;

	lock_take(&lock);
	for (pool = pools; pool && !pool_in_reach(pool, end); pool = pool->next)
		;
	if (!pool)
		ret = pool_new(&pool, end, STUB_ANY);
	if (ret == 0)
		*found = slot ? (void *)pool_stub(pool, 0) : pool->code + RET_DIRECT;
	lock_drop(&lock);
	return ret;
}
