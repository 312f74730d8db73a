/* SPDX-License-Identifier: MIT */
#include "bench/peers/ways.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "patchcore/async.h"
#include "patchcore/machine/wait.h"

#define PAGE 4096u
#define INT3 0xcc

/* --- By hand -------------------------------------------------------------------------------- */

/*
 * What careful people write without a library: the protocol of Linux text_poke_bp()
 * (arch/x86/kernel/alternative.c) in a program, after the SDM's rules for cross-modifying
 * code (vol. 3, 9.1.3).
 *
 *	INT3 on the first byte		membarrier SYNC_CORE
 *	all other bytes			membarrier SYNC_CORE
 *	the new first byte		membarrier SYNC_CORE
 *
 * An executor that meets the INT3 gets SIGTRAP; the handler sends it back to the site, and
 * leaves the CPU once if the INT3 is still there. The third membarrier is text_poke_bp()'s too:
 * when the call returns no CPU is left with the INT3.
 */
static struct {
	struct sigaction before; /* the library's */
	/* It stays one until another is changed: its trap may be delivered after the change. */
	_Atomic(uint8_t *) site;
} hand;

/* Registered, it fails only where the kernel is short of memory for a moment. */
static void sync_all(void)
{
	while (syscall(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) < 0)
		sched_yield();
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
	greg_t *pc = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	uint8_t *site = (uint8_t *)*pc - 1;

	if (info->si_code <= 0 || site != atomic_load_explicit(&hand.site, memory_order_acquire)) {
		hand.before.sa_sigaction(signal, info, context);
		return;
	}
	if (__atomic_load_n(site, __ATOMIC_ACQUIRE) == INT3)
		sched_yield();
	*pc = (greg_t)(uintptr_t)site;
}

static int hand_open(void)
{
	struct sigaction ours = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	if (syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) < 0)
		return -ENOTSUP;
	/* What is there is known before the first trap comes. */
	if (sigaction(SIGTRAP, NULL, &hand.before) < 0)
		return -errno;
	if (!(hand.before.sa_flags & SA_SIGINFO))
		return -EBUSY;
	return sigaction(SIGTRAP, &ours, NULL) < 0 ? -errno : 0;
}

/* No thread is inside the site: a trap on its way would come to a handler that knows it not. */
static void hand_close(void)
{
	if (hand.before.sa_sigaction)
		sigaction(SIGTRAP, &hand.before, NULL);
	hand.before.sa_sigaction = NULL;
}

/* From its INT3 on. */
static int hand_finish(uint8_t *site, const uint8_t *code, size_t len)
{
	sync_all();
	memcpy(site + 1, code + 1, len - 1);
	sync_all();
	__atomic_store_n(site, code[0], __ATOMIC_RELEASE);
	sync_all();
	return 0;
}

static int hand_patch(uint8_t *site, const uint8_t *code, size_t len)
{
	/* It is known before its INT3 is there: an executor that traps must find it. */
	atomic_store_explicit(&hand.site, site, memory_order_release);
	__atomic_store_n(site, INT3, __ATOMIC_RELEASE);
	return hand_finish(site, code, len);
}

/* --- The paper's ---------------------------------------------------------------------------- */

/*
 * The protocols of "Living on the Edge", figures 4 and 6 and section 6, and nothing else: pages are
 * writable, no process forks, no bytes are refused, and no patcher dies. Functions of a library
 * are called, so these are not inlined.
 */
struct paper_patch {
	uint8_t *addr;
	const uint8_t *code;
	uint64_t since;
	int state;
};

static struct paper_patch paper_table[256];
static struct paper_patch *paper_last;

static bool paper_straddles(const uint8_t *addr)
{
	return (uintptr_t)addr % 64 > 64 - LOOP_SITE_BYTES;
}

/* Figure 4, inside a line. The bytes behind keep what they hold. */
static __attribute__((noinline)) int paper_patch(uint8_t *addr, const uint8_t *code)
{
	const uint64_t mask = (UINT64_C(1) << 8 * LOOP_SITE_BYTES) - 1;
	uint64_t old, new;

	if (paper_straddles(addr))
		return -ENOTSUP;
	old = *(volatile uint64_t *)addr;
	memcpy(&new, code, sizeof(new));
	new = (old & ~mask) | (new &mask);
	return __sync_bool_compare_and_swap((uint64_t *)addr, old, new) ? 0 : -EAGAIN;
}

/* Section 6, of the splits from 2 on: a jump over the rest. */
static __attribute__((noinline)) int paper_call(uint8_t *addr, const uint8_t *code, unsigned off)
{
	uint16_t front = 0x03eb;

	if (!paper_straddles(addr))
		return paper_patch(addr, code);
	if (!off)
		memcpy(&front, code, sizeof(front));
	__atomic_exchange_n((uint16_t *)addr, front, __ATOMIC_SEQ_CST);
	return 0;
}

/* Figure 6: the lock, the time, and an object in a table. */
static __attribute__((noinline)) int paper_start(uint8_t *addr, const uint8_t *code)
{
	struct paper_patch *patch =
		&paper_table[(uintptr_t)addr * UINT64_C(0x9e3779b97f4a7c15) >> 56];

	if (!paper_straddles(addr))
		return paper_patch(addr, code);
	atomic_store_explicit(&hand.site, addr, memory_order_release);
	if (__atomic_exchange_n(addr, INT3, __ATOMIC_SEQ_CST) == INT3)
		return -EAGAIN;
	*patch = (struct paper_patch){ addr, code, ticks_now(), 1 };
	paper_last = patch;
	return 0;
}

/* Untimed, so no wait is needed whose length would have to be known. */
static int paper_finish(void)
{
	return hand_finish(paper_last->addr, paper_last->code, LOOP_SITE_BYTES);
}

/* --- One change ----------------------------------------------------------------------------- */

/*
 * Two functions: the change, and the same with the clock around it and nothing else. What it
 * reads is read once before: the lines of the benchmark itself are no cost.
 */
#define WAY(what, change)                                                                          \
	static inline int set_##what(struct bench_site *site, unsigned state)                      \
	{                                                                                          \
		(void)state;                                                                       \
		return change;                                                                     \
	}                                                                                          \
	static int time_##what(struct bench_site *site, unsigned state, double *ticks)             \
	{                                                                                          \
		uint64_t start;                                                                    \
		int ret;                                                                           \
                                                                                                   \
		(void)*(uint8_t *volatile *)&site->at;                                             \
		start = ticks_now();                                                               \
		ret = set_##what(site, state);                                                     \
		*ticks = (double)(ticks_now() - start);                                            \
		return ret;                                                                        \
	}

WAY(patch, pc_patch(site->at, site->code[state], LOOP_SITE_BYTES))
WAY(start, pc_start_patch(site->at, site->code[state], LOOP_SITE_BYTES))
WAY(call, state ? pc_deactivate_call(&site->call) : pc_activate_call(&site->call, NULL))
WAY(retarget, pc_activate_call(&site->call, site->target[state]))
WAY(store, (__atomic_exchange_n(site->place, site->word[state], __ATOMIC_SEQ_CST), 0))
WAY(flag, (atomic_store_explicit((_Atomic(uint8_t) *)site->data, !state, memory_order_seq_cst), 0))
WAY(pointer, (atomic_store_explicit((_Atomic(void *) *)site->data, site->target[state],
				    memory_order_seq_cst),
	      0))
WAY(hand, hand_patch(site->at, site->code[state], LOOP_SITE_BYTES))
WAY(paper, paper_patch(site->at, site->code[state]))
WAY(paper_call, paper_call(site->at, site->code[state], state))
WAY(paper_start, paper_start(site->at, site->code[state]))
WAY(stop, baseline_stop_patch(site->at, site->code[state], LOOP_SITE_BYTES))
WAY(ptrace, baseline_ptrace_patch(site->at, site->code[state], LOOP_SITE_BYTES))

/* mov eax, imm32 */
static const uint8_t codes[2][8] = { { 0xb8, 1, 2, 3, 4 }, { 0xb8, 5, 6, 7, 8 } };

/* Another batch, of another size, may have left the sites otherwise. */
static struct pc_op *fill_batch(struct bench_site *site, unsigned state)
{
	struct spare *spare = site->spec.spare;

	/* All but the first are to become the first or the second code of the two. */
	for (unsigned i = 1; i < site->spec.batch; i++)
		spare->op[i].bytes = codes[state];
	spare->op[0] = (struct pc_op){
		.addr = site->at,
		.bytes = site->code[state],
		.len = LOOP_SITE_BYTES,
	};
	return spare->op;
}

static int set_batch(struct bench_site *site, unsigned state)
{
	return pc_patch_batch(fill_batch(site, state), site->spec.batch);
}

static int time_batch(struct bench_site *site, unsigned state, double *ticks)
{
	struct pc_op *op = fill_batch(site, state);
	uint64_t start = ticks_now();
	int ret = pc_patch_batch(op, site->spec.batch);

	*ticks = (double)(ticks_now() - start) / site->spec.batch;
	return ret;
}

/* --- The ways ------------------------------------------------------------------------------- */

#define BY(what) .set = set_##what, .time = time_##what
#define OURS	 .loop = LOOP_SITE, .pairs = 100
#define THEIRS	 .peer = true, .loop = LOOP_SITE
#define ON_OFF	 .first = "on", .second = "off"

const struct way ways[WAYS] = {
	[WAY_ALIGNED] = { "aligned", ON_OFF, OURS, BY(patch) },
	[WAY_STRADDLER] = { "straddler", ON_OFF, OURS, BY(patch) },
	[WAY_START] = { "start", ON_OFF, OURS, BY(start), .settle = pc_drain },
	[WAY_CALL] = { "call", ON_OFF, OURS, BY(call) },
	[WAY_RETARGET] = { "call", "retarget", OURS, BY(retarget), .two_targets = true },
	[WAY_BATCH] = { "batch", "change", .loop = LOOP_SITE, .pairs = 20, BY(batch) },
	[WAY_STORE] = { "floor", ON_OFF, THEIRS, BY(store) },
	[WAY_FLAG] = { "flag", ON_OFF, .peer = true, .loop = LOOP_FLAG, .pairs = 100, BY(flag) },
	[WAY_POINTER] = { "pointer", "retarget", .peer = true, .two_targets = true,
			  .loop = LOOP_POINTER, .pairs = 100, BY(pointer) },
	[WAY_HAND] = { "hand-membarrier", ON_OFF, THEIRS, .pairs = 50, BY(hand),
		       .needs = "membarrier SYNC_CORE, or SIGTRAP", .open = hand_open,
		       .close = hand_close },
	[WAY_PAPER] = { "paper", ON_OFF, THEIRS, .pairs = 100, BY(paper) },
	[WAY_PAPER_CALL] = { "paper", ON_OFF, THEIRS, .pairs = 100, BY(paper_call) },
	[WAY_PAPER_START] = { "paper", ON_OFF, THEIRS, .pairs = 100, BY(paper_start),
			      .settle = paper_finish, .open = hand_open, .close = hand_close },
	[WAY_STOP] = { "stop-the-world", ON_OFF, THEIRS, .pairs = 20, BY(stop) },
	[WAY_PTRACE] = { "ptrace", ON_OFF, THEIRS, .pairs = 10, BY(ptrace),
			 .open = baseline_ptrace_open, .close = baseline_ptrace_close },
};

/* --- Sites ---------------------------------------------------------------------------------- */

static const char *const mappings[] = { "open", "protect", "alias", "" };

static int map_site(struct bench_site *site, char *why)
{
	/* Both pages, where it crosses. */
	uintptr_t first = (uintptr_t)site->at & ~(uintptr_t)(PAGE - 1);
	uintptr_t last = ((uintptr_t)site->at + LOOP_SITE_BYTES - 1) & ~(uintptr_t)(PAGE - 1);
	int ret = 0;

	switch (site->spec.mapping) {
	case SITE_PROTECT:
		if (mprotect((void *)first, last - first + PAGE, PROT_READ | PROT_EXEC) < 0)
			ret = -errno;
		break;
	case SITE_ALIAS:
		ret = pc_text_alias(site->at, LOOP_SITE_BYTES);
		site->opened = ret == 0;
		break;
	case SITE_OPEN:
		ret = pc_text_open(site->at, LOOP_SITE_BYTES);
		site->opened = ret == 0;
		break;
	default:
		break;
	}
	return ret < 0 ? bench_say(why, mappings[site->spec.mapping], ret) : 0;
}

/* A displacement is in the second word where its call has a split. */
static int build_call(struct bench_site *site)
{
	struct pc_call_info info;
	int ret = pc_call_init(&site->call, site->at);

	if (ret == 0)
		ret = pc_call_get(&site->call, &info);
	if (ret == 0 && info.split && info.way == PC_CALL_DISPLACEMENT)
		site->place++;
	return ret;
}

void bench_site_params(struct bench_row *row, const struct site_spec *spec)
{
	row->peer = ways[spec->way].peer;
	if (spec->batch)
		bench_row_param(row, "batch", spec->batch);
	if (spec->has_split)
		bench_row_param_text(row, "split", loop_split_name(spec->split));
	if (spec->page)
		bench_row_param_text(row, "crossing", "page");
	if (spec->has_policy)
		bench_row_param_text(row, "policy", bench_policy_name(spec->policy));
	if (spec->mapping == SITE_PROTECT || spec->mapping == SITE_ALIAS)
		bench_row_param_text(row, "mapping", mappings[spec->mapping]);
}

int bench_site_build(struct bench_site *site, const struct site_spec *spec, char *why)
{
	const struct way *way = &ways[spec->way];
	bool two_targets = spec->two_targets || way->two_targets;
	struct loop *loop = &site->loop;
	int ret;

	memset(site, 0, sizeof(*site));
	site->spec = *spec;
	ret = loop_build(loop, &(struct loop_spec){ .kind = way->loop,
						    .target = spec->target,
						    .split = spec->split,
						    .boundary = spec->page ? PAGE : 0 });
	if (ret < 0)
		return bench_say(why, way->name, ret);
	site->work = (struct hot_work){ .run = hot_loop, .arg = loop };
	site->at = loop->site;
	site->data = loop->flag ? (void *)loop->flag : (void *)loop->pointer;
	site->place = (uint64_t *)((uintptr_t)(site->at ? site->at : site->data) & ~(uintptr_t)7);
	memcpy(site->target, loop->target, sizeof(site->target));
	if (!site->at)
		return 0;
	memcpy(site->code[0], loop->bytes[LOOP_CALL_0], sizeof(site->code[0]));
	memcpy(site->code[1], loop->bytes[two_targets ? LOOP_CALL_1 : LOOP_NOP],
	       sizeof(site->code[1]));
	for (unsigned state = 0; state < 2; state++) {
		memcpy(&site->word[state], site->place, sizeof(site->word[state]));
		if (spec->split == 0)
			memcpy(&site->word[state], site->code[state], LOOP_SITE_BYTES);
	}
	ret = map_site(site, why);
	if (ret == 0 && (spec->way == WAY_CALL || spec->way == WAY_RETARGET)) {
		ret = build_call(site);
		if (ret < 0)
			bench_say(why, way->name, ret);
	}
	return ret;
}

void bench_site_free(struct bench_site *site)
{
	if (site->opened)
		pc_text_close(site->at, LOOP_SITE_BYTES);
	site->opened = false;
	loop_free(&site->loop);
}

int bench_site_set(void *arg, unsigned state)
{
	struct bench_site *site = arg;

	return ways[site->spec.way].set(site, state);
}

int bench_site_begin(struct bench_site *site, char *why)
{
	const struct way *way = &ways[site->spec.way];
	int ret = way->open ? way->open() : 0;

	if (ret < 0)
		return bench_say(why, way->needs ? way->needs : way->name, ret);
	for (unsigned i = 0; i < 2 && ret == 0; i++) {
		ret = way->set(site, 1 - i);
		if (ret == 0 && way->settle)
			ret = way->settle();
	}
	if (ret < 0) {
		bench_site_end(site);
		snprintf(why, BENCH_WHY, "the first change failed: %s", strerror(-ret));
	}
	return ret;
}

void bench_site_end(struct bench_site *site)
{
	if (ways[site->spec.way].close)
		ways[site->spec.way].close();
}

/* --- Spare sites ---------------------------------------------------------------------------- */

/* Lines to spare between two sites, or the prefetchers would bring one with the other. */
enum {
	LENGTH = 5,
	LINE = 64,
	STRIDE = 256
};

static size_t bytes_of(const struct spare *spare)
{
	return (size_t)spare->count * STRIDE;
}

int spare_open(struct spare *spare, unsigned count, unsigned split)
{
	void *map = mmap(NULL, (size_t)count * STRIDE, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*spare = (struct spare){ .count = count };
	if (map == MAP_FAILED)
		return -errno;
	spare->map = map;
	spare->op = calloc(count, sizeof(*spare->op));
	if (!spare->op)
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++) {
		uint8_t *at = spare->map + i * STRIDE + LINE - split;

		memcpy(at, codes[0], LENGTH);
		spare->op[i] = (struct pc_op){ .addr = at, .len = LENGTH };
	}
	return pc_text_open(map, bytes_of(spare));
}

void spare_close(struct spare *spare)
{
	if (spare->map) {
		pc_text_close(spare->map, bytes_of(spare));
		pc_forget(spare->map, bytes_of(spare));
		munmap(spare->map, bytes_of(spare));
	}
	free(spare->op);
	*spare = (struct spare){ 0 };
}
