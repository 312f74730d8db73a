/* SPDX-License-Identifier: MIT */
#include "stress/bench_op.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "patchcore/async.h"
#include "patchcore/baseline/baseline.h"
#include "patchcore/wait.h"

/* --- One change each -------------------------------------------------------------------- */

typedef int time_fn(struct bench_work *work, struct bench_site *site, uint64_t *ticks);
typedef int patch_fn(void *addr, const void *bytes, size_t len);

static int time_by(patch_fn *patch, struct bench_site *site, uint64_t *ticks)
{
	uint8_t bytes[8];
	uint64_t start;
	int ret;

	memcpy(bytes, site->code.bytes[site->next], sizeof(bytes));
	start = ticks_now();
	ret = patch(site->code.site, bytes, CODE_LENGTH);
	*ticks = ticks_now() - start;
	site->next ^= 1;
	return ret;
}

static int time_patch(struct bench_work *work, struct bench_site *site, uint64_t *ticks)
{
	(void)work;
	return time_by(pc_patch, site, ticks);
}

static int time_start(struct bench_work *work, struct bench_site *site, uint64_t *ticks)
{
	int ret = time_by(pc_start_patch, site, ticks);

	(void)work;
	return ret < 0 ? ret : pc_drain();
}

static int time_stop(struct bench_work *work, struct bench_site *site, uint64_t *ticks)
{
	(void)work;
	return time_by(baseline_stop_patch, site, ticks);
}

static int time_ptrace(struct bench_work *work, struct bench_site *site, uint64_t *ticks)
{
	(void)work;
	return time_by(baseline_ptrace_patch, site, ticks);
}

static int time_call(struct bench_work *work, struct bench_site *site, uint64_t *ticks)
{
	uint64_t start = ticks_now();
	int ret =
		site->next ? pc_deactivate_call(&site->call) : pc_activate_call(&site->call, NULL);

	(void)work;
	*ticks = ticks_now() - start;
	site->next ^= 1;
	return ret;
}

static int time_batch(struct bench_work *work, struct bench_site *site, uint64_t *ticks)
{
	uint64_t start;
	int ret;

	(void)site;
	work->next ^= 1;
	for (unsigned i = 0; i < BENCH_BATCH; i++)
		work->batch[i].bytes = work->bytes[i][work->next];
	start = ticks_now();
	ret = pc_patch_batch(work->batch, BENCH_BATCH);
	*ticks = (ticks_now() - start) / BENCH_BATCH;
	return ret;
}

/* --- The table ---------------------------------------------------------------------------- */

static const struct {
	const char *name;
	time_fn *time;
	unsigned split;
	enum pc_policy policy;
} ops[BENCH_OPS] = {
	[BENCH_ALIGNED] = { "aligned", time_patch, 0, PC_POLICY_AUTO },
	[BENCH_CALL_0] = { "call", time_call, 0, PC_POLICY_AUTO },
	[BENCH_CALL_1] = { "call-1|4", time_call, 1, PC_POLICY_AUTO },
	[BENCH_CALL_2] = { "call-2|3", time_call, 2, PC_POLICY_AUTO },
	[BENCH_CALL_3] = { "call-3|2", time_call, 3, PC_POLICY_AUTO },
	[BENCH_CALL_4] = { "call-4|1", time_call, 4, PC_POLICY_AUTO },
	[BENCH_STRADDLER_WAIT] = { "straddler-wait", time_patch, BENCH_SPLIT, PC_POLICY_WAIT },
	[BENCH_START_WAIT] = { "start-wait", time_start, BENCH_SPLIT, PC_POLICY_WAIT },
	[BENCH_BATCH_WAIT] = { "batch-wait", time_batch, BENCH_SPLIT, PC_POLICY_WAIT },
	[BENCH_STRADDLER_MEMBARRIER] = { "straddler-membarrier", time_patch, BENCH_SPLIT,
					 PC_POLICY_MEMBARRIER },
	[BENCH_START_MEMBARRIER] = { "start-membarrier", time_start, BENCH_SPLIT,
				     PC_POLICY_MEMBARRIER },
	[BENCH_BATCH_MEMBARRIER] = { "batch-membarrier", time_batch, BENCH_SPLIT,
				     PC_POLICY_MEMBARRIER },
	[BENCH_BATCH_AUTO] = { "batch-auto", time_batch, BENCH_SPLIT, PC_POLICY_AUTO },
	[BENCH_STOP] = { "stop-the-world", time_stop, BENCH_SPLIT, PC_POLICY_AUTO },
	[BENCH_PTRACE] = { "ptrace", time_ptrace, BENCH_SPLIT, PC_POLICY_AUTO },
};

const char *bench_op_name(enum bench_op op)
{
	return ops[op].name;
}

struct bench_site *bench_op_site(struct bench_work *work, enum bench_op op)
{
	return &work->site[ops[op].split];
}

int bench_op_time(struct bench_work *work, enum bench_op op, uint64_t *ticks)
{
	return ops[op].time(work, bench_op_site(work, op), ticks);
}

/* --- Getting ready -------------------------------------------------------------------------- */

static int build_site(struct bench_site *site, unsigned split)
{
	struct cell cell;
	int ret;

	cell_defaults(&cell);
	cell.crossing = split ? CROSSING_LINE : CROSSING_NONE;
	cell.pair = PAIR_CALL_NOP;
	cell.split = split ? split : 1;
	site->next = 1;
	ret = code_build(&site->code, &cell);
	return ret < 0 ? ret : pc_text_open(site->code.site, CODE_LENGTH);
}

/*
 * Sites that nobody runs, each across a line of its own: mov eax, imm32. With
 * lines to spare between them, or the prefetchers would bring one with the other.
 */
static int build_batch(struct bench_work *work)
{
	enum {
		STRIDE = 256,
		BYTES = BENCH_BATCH * STRIDE
	};
	static const uint8_t codes[2][8] = { { 0xb8, 1, 2, 3, 4 }, { 0xb8, 5, 6, 7, 8 } };
	struct bench_site *hot = &work->site[BENCH_SPLIT];
	uint8_t *code = mmap(NULL, BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		return -errno;
	for (unsigned i = 0; i < BENCH_BATCH; i++) {
		uint8_t *at = code + i * STRIDE + 64 - BENCH_SPLIT;

		memcpy(at, codes[0], CODE_LENGTH);
		memcpy(work->bytes[i], i ? (const void *)codes : hot->code.bytes,
		       sizeof(work->bytes[i]));
		work->batch[i] =
			(struct pc_op){ .addr = i ? at : hot->code.site, .len = CODE_LENGTH };
	}
	return pc_text_open(code, BYTES);
}

int bench_work_build(struct bench_work *work)
{
	int ret = 0;

	for (unsigned split = 0; split < CODE_LENGTH && ret == 0; split++)
		ret = build_site(&work->site[split], split);
	return ret < 0 ? ret : build_batch(work);
}

/* The bytes that stand there are those of the call; the other code is next. */
static int put_first(struct bench_site *site)
{
	site->next = 1;
	return pc_patch(site->code.site, site->code.bytes[0], CODE_LENGTH);
}

static int choose_policy(enum bench_op op, char *why, size_t size)
{
	struct pc_status status;
	int ret = pc_set_policy(ops[op].policy);

	if (ret == 0)
		return 0;
	pc_get_status(&status);
	snprintf(why, size, "refused by the library: %.120s",
		 ops[op].policy == PC_POLICY_MEMBARRIER ? "no membarrier SYNC_CORE"
							: status.reason);
	return ret;
}

static bool is_call(enum bench_op op)
{
	return ops[op].time == time_call;
}

/* Baselines and calls need no policy, but the first code must stand there again. */
int bench_op_begin(struct bench_work *work, enum bench_op op, char *why, size_t size)
{
	struct bench_site *site = bench_op_site(work, op);
	bool free = is_call(op) || op == BENCH_STOP || op == BENCH_PTRACE || op == BENCH_ALIGNED;
	int ret = free ? 0 : choose_policy(op, why, size);

	if (ret < 0)
		return ret;
	if (op == BENCH_PTRACE)
		ret = baseline_ptrace_open();
	if (ret == 0 && op != BENCH_STOP && op != BENCH_PTRACE)
		ret = put_first(site);
	if (ret == 0 && is_call(op))
		ret = pc_call_init(&site->call, site->code.site);
	if (ret < 0)
		snprintf(why, size, "%s: %s", ops[op].name, strerror(-ret));
	return ret;
}

void bench_op_end(enum bench_op op)
{
	if (op == BENCH_PTRACE)
		baseline_ptrace_close();
}
