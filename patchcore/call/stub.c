/* SPDX-License-Identifier: MIT */
#include "patchcore/call/stub.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "patchcore/site/lock.h"
#include "patchcore/text/text.h"
#include "patchcore/text/text_maps.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define REACH  UINT64_C(0x7ffff000)	/* whole pages of the 2 GiB */
#define BOTTOM UINT64_C(0x100000)	/* nothing below, so that NULL plus a little still traps */
#define TOP    UINT64_C(0x7fffffff0000) /* the end of user space with four-level page tables */

/*
 * A pool is a page of code and after it a page of data. In each 16 bytes of the
 * code there is, from `low` on, a jump through the 16 bytes of data at the same
 * place, and behind it the same ret. The last 16 bytes, where not all of that
 * would fit for every low, have no jump; their data is the slot of the ret.
 */
#define STRIDE 16u
#define STUBS  (TEXT_PAGE / STRIDE - 1)
#define LOWS   (256u / STRIDE) /* stubs with the same lowest byte are so many apart */

/* NOTRACK, for targets that do not begin with an ENDBR64 (CET, IBT). */
static const uint8_t jump[] = { 0x3e, 0xff, 0x25 };
#define JUMP (sizeof(jump) + 4)

/* ENDBR64; ret. An indirect call enters at the first, a direct one at the second. */
static const uint8_t ret_code[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xc3 };
#define RET_DIRECT 4

struct pool {
	struct pool *next;
	uint8_t *code;
	unsigned low;	      /* below STRIDE: where in each 16 bytes a jump begins */
	uint16_t taken[LOWS]; /* bit j of i: stub i + LOWS * j */
};

static struct lock lock = LOCK_INIT; /* protects all below */
static struct pool *pools;

/* --- Where ------------------------------------------------------------------------------------ */

/* Free addresses in reach, whole pages. */
struct hole {
	uintptr_t start;
	uintptr_t end;
	bool below_stack; /* which wants to grow into it */
};

static uintptr_t lowest_stub(uintptr_t end)
{
	uintptr_t low = end > REACH + BOTTOM ? end - REACH : BOTTOM;

	return (low + TEXT_PAGE - 1) & ~(uintptr_t)(TEXT_PAGE - 1);
}

static uintptr_t highest_stub(uintptr_t end)
{
	uintptr_t high = end < TOP - REACH ? end + REACH : TOP;

	return high & ~(uintptr_t)(TEXT_PAGE - 1);
}

/*
 * At the end of the hole, as the kernel does it: the heap may grow into its
 * beginning. But the main thread's stack grows the other way.
 */
static bool map_in_hole(uint8_t **at, const struct hole *hole, size_t size)
{
	uint8_t *wanted, *got;

	if (hole->end <= hole->start || hole->end - hole->start < size)
		return false;
	wanted = (uint8_t *)(hole->below_stack ? hole->start : hole->end - size);
	got = mmap(wanted, size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	/* Another thread was faster, or this is no place for a mapping. */
	if (got == MAP_FAILED)
		return false;
	/* Before Linux 4.17 that address is only a hint. */
	if (got != wanted) {
		munmap(got, size);
		return false;
	}
	*at = got;
	return true;
}

/* Map size bytes, for reading and writing, all in reach. 0, -ENOSPC: no room there, or an error. */
static int map_in_reach(uint8_t **at, uintptr_t end, size_t size)
{
	uintptr_t high = highest_stub(end), on_stack = getauxval(AT_RANDOM);
	struct hole hole = { .start = lowest_stub(end) };
	struct mapping *map;
	int count = mappings_read(hole.start, UINTPTR_MAX, &map);
	bool done = false;

	for (int i = 0; i < count && !done && hole.start < high; i++) {
		hole.end = map[i].start < high ? map[i].start : high;
		hole.below_stack = map[i].start <= on_stack && on_stack < map[i].end;
		done = map_in_hole(at, &hole, size);
		hole.start = map[i].end > hole.start ? map[i].end : hole.start;
	}
	free(map);
	if (count < 0)
		return count;
	hole.end = high;
	hole.below_stack = false;
	return done || map_in_hole(at, &hole, size) ? 0 : -ENOSPC;
}

/* --- Pools ------------------------------------------------------------------------------------ */

static struct stub *pool_stub(const struct pool *pool, unsigned index)
{
	return (struct stub *)(pool->code + TEXT_PAGE + index * STRIDE);
}

static uint8_t *pool_code(const struct pool *pool, unsigned index)
{
	return pool->code + index * STRIDE + pool->low;
}

static bool pool_in_reach(const struct pool *pool, uintptr_t end)
{
	return stub_in_reach(end, (uintptr_t)pool->code) &&
	       stub_in_reach(end, (uintptr_t)pool->code + 2 * TEXT_PAGE);
}

static int pool_fill(const struct pool *pool)
{
	uint8_t *code = pool->code, *ret = pool_code(pool, 0) + JUMP;
	struct rlimit limit;
	int fd, error = -EACCES;

	memset(code, 0xcc, TEXT_PAGE);
	for (unsigned i = 0; i < STUBS; i++) {
		uint8_t *at = pool_code(pool, i);
		int32_t displacement = (int32_t)((uint8_t *)pool_stub(pool, i) - (at + JUMP));

		memcpy(at, jump, sizeof(jump));
		memcpy(at + sizeof(jump), &displacement, sizeof(displacement));
		memcpy(at + JUMP, ret_code, sizeof(ret_code));
	}
	/* Without a target, go back. */
	for (unsigned i = 0; i <= STUBS; i++)
		*pool_stub(pool, i) = (struct stub){ .target = ret, .code = pool_code(pool, i) };
	if (mprotect(code, TEXT_PAGE, PROT_READ | PROT_EXEC) == 0)
		return 0;
	/*
	 * Where memory that was writable may not become executable (SELinux, MDWE): the
	 * page of a file that holds the same bytes may be. Beyond the limit of its size the
	 * kernel sends a signal instead of returning an error.
	 */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < TEXT_PAGE)
		return -EACCES;
	fd = memfd_create("patchcore", MFD_CLOEXEC);
	if (fd < 0)
		return -EACCES;
	if (write(fd, code, TEXT_PAGE) == (ssize_t)TEXT_PAGE &&
	    mmap(code, TEXT_PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == code)
		error = 0;
	close(fd);
	return error;
}

static int pool_new(struct pool **made, uintptr_t end, unsigned low)
{
	struct pool *pool = calloc(1, sizeof(*pool));
	int ret;

	if (!pool)
		return -ENOMEM;
	pool->low = low;
	ret = map_in_reach(&pool->code, end, 2 * TEXT_PAGE);
	if (ret == 0) {
		ret = pool_fill(pool);
		if (ret < 0)
			munmap(pool->code, 2 * TEXT_PAGE);
	}
	if (ret < 0) {
		free(pool);
		return ret;
	}
	pool->next = pools;
	pools = pool;
	*made = pool;
	return 0;
}

/* NULL: no free one whose code has that lowest byte. */
static struct stub *take_stub(struct pool *pool, int low)
{
	unsigned first = low == STUB_ANY ? 0 : (unsigned)low / STRIDE;
	unsigned last = low == STUB_ANY ? LOWS - 1 : first;

	if (low != STUB_ANY && (unsigned)low % STRIDE != pool->low)
		return NULL;
	for (unsigned i = first; i <= last; i++)
		for (unsigned j = 0; i + LOWS * j < STUBS; j++) {
			if (pool->taken[i] & 1u << j)
				continue;
			pool->taken[i] |= (uint16_t)(1u << j);
			return pool_stub(pool, i + LOWS * j);
		}
	return NULL;
}

int stub_get(struct stub **stub, uintptr_t end, int low)
{
	struct pool *pool;
	int ret = 0;

	lock_take(&lock);
	*stub = NULL;
	for (pool = pools; pool && !*stub; pool = pool->next)
		if (pool_in_reach(pool, end))
			*stub = take_stub(pool, low);
	if (!*stub)
		ret = pool_new(&pool, end, low == STUB_ANY ? 0 : (unsigned)low % STRIDE);
	if (!*stub && ret == 0)
		*stub = take_stub(pool, low);
	lock_drop(&lock);
	return ret;
}

void stub_put(struct stub *stub)
{
	uint8_t *code = (uint8_t *)((uintptr_t)stub & ~(uintptr_t)(TEXT_PAGE - 1)) - TEXT_PAGE;
	unsigned index = (unsigned)((uintptr_t)stub % TEXT_PAGE / STRIDE);

	lock_take(&lock);
	for (struct pool *pool = pools; pool; pool = pool->next)
		if (pool->code == code)
			pool->taken[index % LOWS] &= (uint16_t) ~(1u << index / LOWS);
	lock_drop(&lock);
}

int stub_ret_get(struct stub_ret *found, uintptr_t end)
{
	struct pool *pool;
	int ret = 0;

	lock_take(&lock);
	for (pool = pools; pool && !pool_in_reach(pool, end); pool = pool->next)
		;
	if (!pool)
		ret = pool_new(&pool, end, 0);
	if (ret == 0) {
		found->code = (uintptr_t)pool_code(pool, 0) + JUMP + RET_DIRECT;
		found->slot = (uintptr_t)pool_stub(pool, STUBS);
	}
	lock_drop(&lock);
	return ret;
}

bool stub_is_ret(uintptr_t addr)
{
	bool is = false;

	lock_take(&lock);
	for (struct pool *pool = pools; pool && !is; pool = pool->next)
		is = addr == (uintptr_t)pool_code(pool, 0) + JUMP + RET_DIRECT ||
		     addr == (uintptr_t)pool_stub(pool, STUBS);
	lock_drop(&lock);
	return is;
}
