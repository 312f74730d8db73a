/* SPDX-License-Identifier: MIT */
/*
 * Probes on and off, their functions, and the grace period after which an old function is unused.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "probes/core/core.h"
#include "probes/core/entry.h"

#define PATIENCE      10 /* seconds */
#define WORDS	      64 /* functions whose clobbered registers are remembered */
#define BIT(n)	      (UINT64_C(1) << (n))
#define KEEPS_VECTORS BIT(SLOT_KEEPS_VECTORS)

static inline int check_probe(const struct probe *probe)
{
	if (!probe)
		return -ENOENT;
	if (probe->object->gone)
		return -ENODEV;
	return probe->reason ? -ENOTSUP : 0;
}

static inline void set_function(uint32_t id, uintptr_t function)
{
	atomic_store_explicit(&probe_slots[id].function, function, memory_order_release);
}

/* Give the probe its function, and before the first time its stub. */
static inline int arm_probe(struct probe *probe, uintptr_t function)
{
	int ret = check_probe(probe);

	if (ret < 0)
		return ret;
	set_function(probe->id, function);
	if (probe->armed)
		return 0;
	ret = probe->provider->arm(probe);
	if (ret < 0)
		set_function(probe->id, 0);
	probe->armed = !ret;
	return ret;
}

struct probe_order {
	const uint32_t *ids;
	size_t n;
	bool on;
	uintptr_t function;
};

/* Runs of probes that can be changed are toggled together. */
static int toggle_runs(void *data)
{
	const struct probe_order *wish = data;
	const uint32_t *ids = wish->ids;
	int error = 0, ret;

	for (size_t i = 0, end; i < wish->n; i = end + 1) {
		for (end = i; end < wish->n; end++) {
			ret = wish->on ? arm_probe(probe_get(ids[end]), wish->function)
				       : check_probe(probe_get(ids[end]));
			keep_first_error(&error, ret);
			if (ret < 0)
				break;
		}
		ret = site_toggle(ids + i, end - i, wish->on);
		keep_first_error(&error, ret);
		/* All are on: nothing to take back. */
		if (wish->on && !ret)
			continue;
		for (size_t j = i; j < end; j++)
			if (!probe_get(ids[j])->is_on)
				set_function(ids[j], 0);
	}
	return error;
}

/* With the functions that they had. */
int object_turn_on(void *data)
{
	const struct object *object = data;
	uint32_t *ids = NULL;
	size_t n = 0;
	int ret = 0;

	for (struct probe *probe = object->probes; probe && !ret; probe = probe->sibling) {
		bool again = probe->again;

		probe->again = false;
		if (again && !arm_probe(probe, atomic_load(&probe_slots[probe->id].function)))
			ret = ARRAY_ADD(ids, n, probe->id);
	}
	if (!ret)
		ret = site_toggle(ids, n, true);
	free(ids);
	return ret;
}

/* Probes of the program itself need not be held. */
static bool are_of_program(const uint32_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct probe *probe = probe_get(ids[i]);

		if (probe && !probe->object->stays)
			return false;
	}
	return true;
}

/*
 * The value of slot.function: the function with flags for the vectors that it keeps, or a copy of
 * it, which is never freed. It is remembered as long as the function has the same bytes.
 */
static uintptr_t find_word(uintptr_t function)
{
	static const uintptr_t keeps[] = {
		[CLOBBERS_LOWER_FLAGS] = BIT(SLOT_KEEPS_UPPER),
		[CLOBBERS_LOWER] = BIT(SLOT_KEEPS_UPPER) | BIT(SLOT_KEEPS_FLAGS),
		[CLOBBERS_NONE] = KEEPS_VECTORS,
	};
	static struct known {
		uintptr_t function, word;
		uint8_t bytes[EFFECTS_BYTES];
		size_t len;
	} known[WORDS];
	static size_t n;
	struct known *one;
	struct effects leaf;
	uintptr_t word = 0;

	for (one = known; one < known + n; one++)
		if (one->function == function &&
		    !memcmp(one->bytes, (const void *)function, one->len))
			return one->word;
	leaf = effects_read(function);
	if (n < WORDS && leaf.read)
		word = leaf_word(function, &leaf);
	if (!word)
		word = function | keeps[leaf.clobbers];
	if (n < WORDS && leaf.read) {
		*one = (struct known){ .function = function, .word = word, .len = leaf.read };
		memcpy(one->bytes, (const void *)function, leaf.read);
		n++;
	}
	return word;
}

static int change_probes(const uint32_t *ids, size_t n, bool on, uintptr_t function,
			 bool keeps_vectors)
{
	struct probe_order wish = { ids, n, on, function };
	int ret;

	if (!ids && n)
		return -EINVAL;
	ret = core_lock();
	if (ret < 0)
		return ret;
	if (function)
		wish.function = find_word(function);
	if (function && keeps_vectors && !(wish.function & BIT(SLOT_LEAF)))
		wish.function = function | KEEPS_VECTORS;
	ret = are_of_program(ids, n) ? toggle_runs(&wish) : objects_hold(toggle_runs, &wish);
	core_unlock();
	return ret;
}

int fi_activate_how(const uint32_t *ids, size_t n, fi_function *function, unsigned flags)
{
	if (flags & ~FI_KEEPS_VECTORS)
		return -EINVAL;
	return change_probes(ids, n, true, (uintptr_t)function, flags & FI_KEEPS_VECTORS);
}

int fi_activate_batch(const uint32_t *ids, size_t n, fi_function *function)
{
	return change_probes(ids, n, true, (uintptr_t)function, false);
}

int fi_activate(uint32_t id, fi_function *function)
{
	return change_probes(&id, 1, true, (uintptr_t)function, false);
}

int fi_deactivate_batch(const uint32_t *ids, size_t n)
{
	return change_probes(ids, n, false, 0, false);
}

int fi_deactivate(uint32_t id)
{
	return change_probes(&id, 1, false, 0, false);
}

int fi_set_data(uint32_t id, void *data)
{
	if (!probe_get(id))
		return -ENOENT;
	atomic_store_explicit(&probe_slots[id].data, data, memory_order_release);
	return 0;
}

/* --- The grace period ------------------------------------------------------------------------- */

static long call_membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

static int wait_for_block(const struct block *block, double until)
{
	const struct timespec pause = { .tv_nsec = 100000 };
	uint64_t inside = atomic_load_explicit(&block->inside, memory_order_acquire);

	if (!(inside & 1))
		return 0;
	while (atomic_load_explicit(&block->inside, memory_order_acquire) == inside) {
		if (seconds_now() > until)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
	return 0;
}

int fi_synchronize(void)
{
	const struct block *mine = block_of_thread;
	double until = seconds_now() + PATIENCE;
	int ret = 0;

	if (mine && atomic_load_explicit(&mine->inside, memory_order_relaxed) & 1)
		return -EDEADLK;
	/* Pairs with the trampoline, which stores that it is inside and then loads the function. */
	if (call_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) < 0 ||
	    call_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) < 0)
		return -ENOTSUP;
	for (const struct block *block = block_list(); block && !ret; block = block->next)
		ret = wait_for_block(block, until);
	return ret;
}
